# Generated trees build without a warning, as C with gcc and clang and as CUDA with nvcc, and run.
export CUDA=${CUDA:-/usr/local/cuda}
quiet() { # name, command...
	local name=$1
	shift
	"$@" >log 2>&1 && [ ! -s log ] && echo "ok $name" || { echo "not ok $name: it fails or warns" && sed 's/^/ /' log; }
}
model=$ROOT/examples/mlp.ir
for cc in gcc clang; do
	command -v $cc >/dev/null || { echo "skip c-with-$cc: no $cc here" && continue; }
	"$SBPCC" "$model" --ranks=2 --machine=cpu -o "c-$cc" >/dev/null
	quiet "c-with-$cc" make -s -C "c-$cc" CC=$cc
done
"$SBPCC" "$model" --ranks=2 -o asan >/dev/null
quiet c-with-sanitizers make -s -C asan STATIC= LOOPS= CFLAGS='-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all'
asan/trainer --steps=3 --data="$ROOT/examples/data/digits" >log 2>&1 && echo "ok runs-under-sanitizers" || { echo "not ok runs-under-sanitizers: fails" && sed 's/^/ /' log; }
[ "$(ldd c-gcc/trainer 2>&1 | grep -c '=>')" -eq 0 ] && echo "ok static" || echo "not ok static: needs shared libraries"
# Over an older tree: files with the same contents keep their time, so make compiles only the others.
make_again() { make -C c-gcc CC=gcc >log 2>&1; }
"$SBPCC" "$model" --ranks=2 --machine=cpu -o c-gcc >/dev/null
make_again && ! grep -q -- ' -c ' log && echo "ok same-tree-again" || { echo "not ok same-tree-again: compiled again" && sed 's/^/ /' log; }
"$SBPCC" "$model" --ranks=2 --machine=cpu --train='steps: 7' -o c-gcc >/dev/null
make_again && grep -q -- ' -c .*model.o' log && ! grep -q -- ' -c .*kernels/' log && [ "$(c-gcc/trainer --data="$ROOT/examples/data/digits" --every=1 2>&1 | grep -c '^step ')" = 7 ] && echo "ok other-tree-over-it" ||
	{ echo "not ok other-tree-over-it: not what changed, and only that, was compiled" && sed 's/^/ /' log | cut -c1-200; }

"$SBPCC" "$model" --ranks=2 --machine=cpu --target=cuda -o cuda >/dev/null
if [ -x "$CUDA/bin/nvcc" ]; then
	quiet cuda-with-nvcc make -s -C cuda CUDA="$CUDA" WARN='-Wall -Wextra -Wconversion -Wpointer-arith -Werror'
	cuda/trainer --steps=1 --data="$ROOT/examples/data/digits" >log 2>&1
	case $? in
	0) echo "ok cuda-runs" ;;
	*) grep -q '^rank .: ' log && echo "skip cuda-runs: no GPU here, so nothing ran on one; the program says so: $(head -n 1 log)" || echo "not ok cuda-runs: $(head -n 1 log)" ;;
	esac
else
	echo "skip cuda-with-nvcc: no nvcc here"
fi
diff c-gcc/role0/schedule.c cuda/role0/schedule.c >log && diff c-gcc/blocks.c cuda/blocks.c >>log && echo "ok one-schedule-for-both-targets" || { echo "not ok one-schedule-for-both-targets: they differ" && sed 's/^/ /' log; }

# Each template compiles on its own; those of the CUDA target need its headers.
for f in "$ROOT"/templates/*.c; do
	if grep -q '"slab_cuda.h"' "$f" && [ ! -f "$CUDA/include/cuda_runtime_api.h" ]; then
		echo "skip template-$(basename "$f"): no CUDA headers here"
		continue
	fi
	quiet "template-$(basename "$f")" gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wconversion -Wpointer-arith -Werror -I"$ROOT/templates" -I"$ROOT/runtime" -I"$ROOT/kernels" -I"$ROOT/kernels/cpu" \
		$([ -d "$CUDA/include" ] && echo "-isystem $CUDA/include") -c "$f" -o /dev/null
done
