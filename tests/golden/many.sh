# Smaller versions of the examples train as PyTorch does, also on several ranks: losses of 20 steps and gradients of
# the first, under data-parallel, tensor-parallel, ZeRO-3 and mixed plans.  With --long all of them on 2 and 4 ranks.
. "$HERE/common.bash"
. "$ROOT/tests/equiv/recipes.bash"
as() { # model, kind of plan, shape of the mesh...
	local model=$1 kind=$2 shape
	shift 2
	for shape in "$@"; do
		recipe "$model" "$kind" "$shape" >plan.place
		ranks "$model-$kind-on-${shape//, /x}" "$HERE/$model/want.txt" plan.place
	done
}
if [ -n "$LONG" ]; then
	for m in bert cnn dropout gpt llama losses lstm mlp resnet wide_deep; do
		for kind in data tensor zero3; do as $m $kind 2 4; done
		as $m mixed '2, 2'
	done
	exit
fi
as gpt tensor 2
as cnn data 4
as llama zero3 2
as bert mixed '2, 2'
