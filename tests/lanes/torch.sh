# Ten schedules that PyTorch 2.13 dumped (tests/golden/schedules.py) are read, proved and written back byte for byte; that of
# Schedule1F1B, which is wrong on its last rank, is refused. What our schedules write loads in PyTorch, if PYTHON (default: python3) has it.
n=0
for file in "$ROOT"/tests/golden/schedules/*.csv; do
	name=$(basename "$file" .csv) n=$((n + 1))
	cp "$file" .
	printf 'F 1 ms\nB 1 ms\nW 1 ms\nhop 0.25 ms\ncsv %s.csv\n' "$name" >"$name.pipe"
	"$SBPCC" --simulate="$name.pipe" --write-schedule="$name.out" >out 2>err
	status=$?
	up=$(grep -c '^micro-batches do not ascend' out)
	case $name:$status in
	bad-*:1)
		grep -q '^bad-1f1b.csv:1:65: error: stage 0 has no F of micro-batch 8; the last one is 8$' err &&
			grep -q '^bad-1f1b.csv:4:[0-9]*: note: micro-batch 8 stands here$' err && echo "ok $name is refused" ||
			echo "not ok $name: $(head -n 1 err)" ;;
	*:0)
		if ! cmp -s "$file" "$name.out"; then echo "not ok $name: it is written in another way"
		elif [ "$(grep -c '^proved:' out)" != 1 ]; then echo "not ok $name: it is not proved"
		elif [ "$name" = looped-bfs ] && [ "$up" = 0 ]; then echo "not ok $name: its micro-batches descend"
		elif [ "$name" != looped-bfs ] && [ "$up" = 1 ]; then echo "not ok $name: its micro-batches ascend"
		else echo "ok $name"; fi ;;
	*) echo "not ok $name: exit status $status, $(head -n 1 err)" ;;
	esac
done
[ $n = 11 ] || echo "not ok files: $n of 11"

python=${PYTHON:-python3}
"$python" -c 'import torch.distributed.pipelining' 2>/dev/null || { echo "skip PyTorch loads ours: $python has no PyTorch" && exit; }
for s in gpipe 1f1b pe zb-h1 zb-h2 interleaved zb-v v-half v-min dualpipev; do
	stages=4
	case $s in interleaved | *-v | v-* | dualpipev) stages=8 ;; esac
	printf 'ranks 4\nmicros 7\nstages %d\nF 1 ms\nB 1 ms\nW 1 ms\nschedule %s\n' $stages $s >ours.pipe
	"$SBPCC" --simulate=ours.pipe --write-schedule=ours-$s.csv >out 2>err || echo "not ok $s: $(head -n 1 err)"
done
for s in 1f1b zb-h2 interleaved dualpipev; do       # of a model
	stages=3
	case $s in interleaved | dualpipev) stages=6 ;; esac
	"$SBPCC" "$ROOT/tests/pipelines/net.ir" --ranks=3 --stages=$stages --schedule=$s --write-schedule=ours-model-$s.csv --stop-after=prove >out 2>err ||
		echo "not ok a model under $s: $(head -n 1 err)"
done
"$python" "$ROOT/tests/golden/schedules.py" ours-*.csv | sed -n 's/^ours-\(.*\).csv: loads$/ok PyTorch loads \1/p; t; s/^ours-\(.*\).csv: /not ok PyTorch loads \1: /p'
