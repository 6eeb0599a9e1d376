# The CUDA kernels: each prototype of kernels*.h has a launcher (except sums in chunks, which this target refuses),
# each launcher has device code, and all of it compiles as one file.
k=$ROOT/kernels
grep -ohE '\bk_[a-z0-9_]+\(Ctx' "$k"/kernels*.h | grep -v '_tree_' | sort -u >want
"$SBPCC" "$ROOT/examples/mlp.ir" --deterministic=any-ranks --target=cuda -o out 2>err; grep -q 'the kernels of CUDA do not sum in chunks' err && echo "ok chunks-are-refused" || echo "not ok chunks-are-refused: $(cat err)"
grep -ohE '^int k_[a-z0-9_]+\(Ctx' "$k/cuda/launch.c" | sed 's/^int //' | sort -u >got
lack=$(comm -23 want got | tr '\n' ' ')
[ -z "$lack" ] && echo "ok launchers" || echo "not ok launchers: none for $lack"
grep -ohE '"g_[a-z0-9_]+"' "$k/cuda/launch.c" | tr -d '"' | sort -u >want
grep -ohE '^KERNEL g_[a-z0-9_]+' "$k"/cuda/*.cu | sed 's/^KERNEL //' | sort -u >got
lack=$(comm -23 want got | tr '\n' ' ')
[ -z "$lack" ] && echo "ok device-code" || echo "not ok device-code: none for $lack"
PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo "skip compiles: there is no nvcc"; exit 0; }
{
	echo '#define EXPR_FN __device__ static inline'       # as expr.h of a tree has it
	echo '#include "halves.h"'
	for f in "$k"/cuda/*.cu; do
		echo "#include \"$(basename "$f")\""
	done
} >all.cu
nvcc -I"$k/cuda" -I"$k/cpu" -I"$k" -cubin -o all.cubin all.cu 2>log && echo "ok compiles" || { echo "not ok compiles: $(head -n 1 log)"; sed 's/^/    /' log | head -n 20; }
