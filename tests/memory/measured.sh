# The memory that the compiler announces, the plan of the trainer and what the process measures agree within one part in a hundred.
for m in mlp cnn gpt; do
	"$SBPCC" "$ROOT/examples/$m.ir" --ranks 1 --train='data: points(classes: 2)' -o $m >$m.log 2>&1 && make -s -C $m STATIC=-static >log 2>&1 || { echo "not ok $m: $(head -n 1 $m.log log)"; continue; }
	told=$(sed -n 's/.*memory of a rank: \([0-9]*\) bytes.*/\1/p' $m.log)
	for more in '' '--checkpoint=saved'; do
		$m/trainer --steps=4 --threads=1 $more >run.log 2>&1
		line=$(grep '^memory of rank 0' run.log)
		set -- $(echo "$line" | grep -o '[0-9][0-9]*' | tail -n 2)
		rm -rf saved
		if [ -z "$more" ] && [ "$told" != "$1" ]; then echo "not ok $m-told: the compiler says $told, the trainer plans $1"; continue; fi
		if awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && d <= 0.01 * a) }'; then
			echo "ok $m${more:+-with-checkpoints}"
		else
			echo "not ok $m${more:+-with-checkpoints}: $line"
		fi
	done
done
