# The memory that the compiler announces, the plan of the trainer and what the process measures agree within one part in a hundred;
# of programs below two megabytes within five pages, because where the stack and the heap begin in a page is chance.
run() { # name, model, options of sbpcc: one tree, whose files change from model to model
	local name=$1 m=$2 told saver line
	"$SBPCC" "$ROOT/examples/$m.ir" "$3" --train='data: points(classes: 2)' -o tree >told.log 2>&1 || { echo "not ok $name: $(head -n 1 told.log)" && return; }
	make -s -C tree >log 2>&1 || { echo "not ok $name: $(head -n 1 log)" && return; }
	told=$(sed -n 's/.*memory of a rank: \([0-9]*\) bytes.*/\1/p' told.log) saver=$(sed -n 's/.* \([0-9]*\) for checkpoints$/\1/p' told.log)
	for more in '' '--checkpoint=saved' '--log=log.json --tensorboard=events --plot=plot.svg'; do
		tree/trainer --steps=4 --threads=1 $more >run.log 2>&1
		rm -rf saved events
		line=$(grep '^memory of rank 0' run.log)
		set -- $(echo "${line#memory of rank 0}" | grep -o '[0-9][0-9]*')
		[ "$more" != '--checkpoint=saved' ] || told=$((told + saver))
		# What options of the trainer draw, the compiler does not know.
		if [ "$told" != "$1" ] && [ "${more#--log}" = "$more" ]; then echo "not ok $name-told: the compiler says $told, the trainer plans $1"; continue; fi
		if awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a > 0 && (d <= 0.01 * a || (a < 2000000 && d <= 20480))) }'; then
			echo "ok $name ${more%%=*}"
		else
			echo "not ok $name ${more%%=*}: $line"
		fi
	done
}
for m in mlp cnn gpt; do
	run $m $m --ranks=1
done
run gpt-on-two-ranks gpt --ranks=2
run gpt-on-three-ranks gpt --ranks=3
run gpt-on-two-by-two gpt --place="$ROOT/examples/plans/hybrid.place"
