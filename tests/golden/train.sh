# Smaller versions of the examples train as PyTorch does: losses of 20 steps and gradients of the first, also in
# micro-batches.
. "$HERE/common.bash"
all "$HERE"/*/want.txt
# The models are still the examples, except for the numbers in their text.
text() { sed -n '/^[a-z_]* (.*=> /,$p' "$1" | sed 's/#.*//; s/@init([^()]*\(([^()]*)\)*[^()]*)//g; s/[0-9][0-9.]*/0/g; s/0\(, 0\)*/0/g' | grep -v '^ *$'; }
for f in "$ROOT"/examples/*.ir; do
	name=$(basename "$f" .ir)
	[ "$name" = finetune ] && continue      # begins from weights of its own: tests/examples/finetune.sh
	if cmp -s <(text "$f") <(text "$HERE/$name/model.ir"); then echo "ok $name-is-the-example"; else echo "not ok $name-is-the-example: make it again" && diff <(text "$f") <(text "$HERE/$name/model.ir") | head -n 6 | sed 's/^/ /'; fi
done
