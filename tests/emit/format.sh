# Generated text is formatted as clang-format does with the .clang-format of the tree, and its lines have at most 120
# columns: all of a tree except the copies of runtime and kernels, of which only the macros that generated text uses are
# checked.
why=$("$ROOT/tests/setup" clang-format 2>&1) || { echo "$why" | tail -n 1 && exit 77; }
check() { # name, files...
	local name=$1
	shift
	clang-format --dry-run -Werror "$@" >log 2>&1 && echo "ok $name" || { echo "not ok $name: clang-format would change it" && head -n 20 log | sed 's/^/ /'; }
	for f in "$@"; do
		expand -t 8 "$f" | awk -v f="$f" 'length > 120 { print f ":" NR ": " length " columns" }'
	done >log
	[ ! -s log ] && echo "ok $name-columns" || { echo "not ok $name-columns: lines of more than 120 columns" && head -n 20 log | sed 's/^/ /'; }
}
check macros "$ROOT/runtime/tables.h" "$ROOT/kernels/cpu/loops.h"
for m in "$ROOT"/examples/*.ir; do
	name=$(basename "$m" .ir)
	"$SBPCC" "$m" -o "$name" >/dev/null || { echo "not ok $name: does not compile" && continue; }
	check "$name" "$name"/*.[ch] "$name"/role*/*.c "$name"/kernels/pointwise.[ch]
done
"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=2 --prefix=own -o two >/dev/null && check two-ranks two/*.[ch] two/role*/*.c two/kernels/pointwise.[ch]
"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=2 --stages=2 -o stages >/dev/null && check stages stages/*.[ch] stages/role*/*.c stages/kernels/pointwise.[ch]
"$SBPCC" "$ROOT/examples/resnet.ir" --infer -o infer >/dev/null && check infer infer/*.[ch] infer/role*/*.c infer/kernels/pointwise.[ch]
"$SBPCC" "$ROOT/examples/mlp.ir" --target=cuda -o cuda >/dev/null && check cuda cuda/*.[ch] cuda/role*/*.c cuda/kernels/pointwise.h cuda/kernels/launch_pointwise.c
