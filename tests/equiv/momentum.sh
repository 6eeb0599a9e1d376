# Momentum is state that is updated in place; two ranks train as one.
sed 's/sgd(lr: 0.1)/sgd(lr: 0.02, momentum: 0.9)/' "$ROOT/examples/mlp.ir" >m.ir
grep -q momentum m.ir || exit 1
for n in 1 2; do
	"$SBPCC" m.ir --ranks=$n -o "tree$n" >/dev/null && make -s -C "tree$n" STATIC= && "tree$n/trainer" --steps=20 --every=1 --data="$ROOT/examples/data/digits" | grep -o '^step *[0-9]* *loss [^ ]*' >"$n.txt" || exit 1
done
paste 1.txt 2.txt | awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 1e-5 * $4) { print; bad = 1 } n++ } END { exit bad || n < 20 }'
