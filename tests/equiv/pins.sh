# Examples under random pins: random values (inputs, weights, activations, gradients, optimizer state) split along
# random axes and factors, broadcast or partial, along the axes of random meshes.  An impossible pin is refused with a
# message.  For all others, the plan, read again, gives the same tree, which has the losses of one rank.  With
# --deterministic=any-ranks, also on a model of equal nodes and copies, losses and checkpoints have the bits of one
# rank without pins.  FROM and COUNT choose other seeds, PINS_OF the examples; with --long there are 40 seeds for
# each.
. "$HERE/ranks.bash"
STEPS=8                         # after which some of these models, on so few samples, double what rounding differs by with each step
how="data: points(classes: 2), steps: $STEPS"
many=(2 3 4 5 8 '2, 2' '2, 3' '2, 2, 2' '3, 1, 2' '1, 4')
pins() { # seed, shape: lines for --place, from the table of --explain
	awk -v seed="$1" -v shape="$2" '
	function some(n) { return int(rand() * n) }
	function entry(i, c) {
		c = some(20)
		if (c < 12 && rank[i]) return "S(" some(rank[i]) ")"
		if (c == 12 && rank[i]) return "S(" some(rank[i]) "/" some(3) ")"
		return c > 17 && real[i] && !kept[i] ? "P" : c == 17 ? "_" : "B"
	}
	{ kept[NR] = / kept$/; name[NR] = $1; real[NR] = $2 ~ /^float/; sub(/^[^ ]+ +/, ""); rank[NR] = match($0, /^[a-z0-9]+\[[^]]*\]/) ? split(substr($0, RSTART, RLENGTH), dim, ",") : 0 }
	END {
		srand(seed)
		n = 1
		for (d = split(shape, dim, ","); d; d--) n *= dim[d]
		order = ""                                      # of ranks: every third time from the last to the first
		while (seed % 3 == 2 && n) order = order ", " --n
		print "@mesh(m, cpu, [" shape "]" order ")"
		for (k = 1 + some(6); k--;) {
			list = entry(i = 1 + some(NR))
			for (d = split(shape, dim, ","); --d;) list = list ", " entry(i)
			if (!used[i]++) print "@pin(\"" name[i] "\", sbp: [" list "])"
		}
	}' table
}
# Names that pins may use, with their shapes: those of the model, and those that training adds.
table() {
	"$SBPCC" "$model" --train="$how, batch: $batch" --ranks=2 --stop-after=boxing --explain | sed '1,2d; /^transfers$/,$d; /^local /d' >all
	awk '{ print "@pin(\"" $1 "\", sbp: [_])" }' all >names.place
	"$SBPCC" "$model" --train="$how, batch: $batch" --ranks=2 --place=names.place --max-errors=100000 --stop-after=params 2>&1 | sed -n 's/.*error: @pin: nothing is called \([^ ;]*\).*/\1/p' >unknown
	grep -o '[^ ]* @init' "$model" | tr -d '"' >kept
	awk 'FILENAME == "unknown" { no[$1] = 1; next } FILENAME == "kept" { keep[$1] = 1; next }
		!($1 in no) { print $0, $1 in keep || $1 ~ /\.(m|v|next|sum|square)$/ ? "kept" : "" }' unknown kept all | sed 's/ *$//' >table
}
reread() { # the plan that lies in a tree gives the same tree
	"$SBPCC" tree/plan.ir -o again >log 2>&1 || return 1
	diff -r again tree | grep -v '^Only in tree' >log
	[ ! -s log ]
}
try() { # seed
	local what=$name-$1 shape=${many[$1 % ${#many[@]}]}
	pins "$1" "$shape" >plan.ir && grep -q '^@pin' plan.ir || { echo "not ok $what: no pins" && return; }
	"$SBPCC" "$model" --place=plan.ir --train="$how, batch: $batch" -o tree >log 2>&1
	case $? in
	0) ;;
	1 | 3)
		grep -q '^plan.ir:[0-9]*:[0-9]*: error: .' log && echo "ok $what-is-refused" || { echo "not ok $what: refused without a place" && sed 's/^/ /' plan.ir log; }
		return
		;;
	*) echo "not ok $what: does not compile" && sed 's/^/ /' plan.ir log && return ;;
	esac
	reread || { echo "not ok $what: its plan, read again, is another: $(head -n 1 log)" && sed 's/^/ /' plan.ir; }
	make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 || { echo "not ok $what: $(head -n 1 log)" && return; }
	losses tree/trainer --threads=1 >many.txt
	near && echo "ok $what" || { echo "not ok $what: losses differ from one rank's $(head -n 1 err)" && sed 's/^/ /' plan.ir && head -n 4 why; }
}
# The bits of losses (9 digits distinguish floats) and of the checkpoint.
bits() { # option...
	"$SBPCC" "$model" --deterministic=any-ranks --train="$how, batch: $batch" "$@" -o tree >log 2>&1 || return
	make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 || return 70
	rm -rf saved json
	tree/trainer --log=json --checkpoint=saved --threads=1 >log 2>&1 && grep -o '"step":[0-9]*,"loss":[^,]*' json && cat saved/step-*/state.safetensors
}
any() { # seed
	local powers=(1 2 4 8 '2, 2' '2, 4' '4, 2') what=$name-any-ranks-$1
	pins "$1" "${powers[$1 % ${#powers[@]}]}" >plan.ir
	bits --place=plan.ir >many.bits
	case $? in
	0) cmp -s one.bits many.bits && echo "ok $what" || { echo "not ok $what: other bits than one rank's without pins" && sed 's/^/ /' plan.ir && diff -a one.bits many.bits | grep -a '^[<>] "step' | head -n 4; } ;;
	1 | 3) grep -q '^plan.ir:[0-9]*:[0-9]*: error: .' log && echo "ok $what-is-refused" || { echo "not ok $what: refused without a place" && sed 's/^/ /' plan.ir log; } ;;
	*) echo "not ok $what: $(head -n 1 log)" && sed 's/^/ /' plan.ir ;;
	esac
}
from=${FROM:-1} count=${COUNT:-4} models='mlp cnn'
[ -z "$LONG" ] || { count=${COUNT:-40} models='mlp cnn wide_deep lstm llama bert resnet gpt'; }
plain=$how
for m in ${PINS_OF:-$models}; do
	how=$plain
	case $m in cnn | resnet) how="$plain, optimizer: momentum(lr: 0.0005, momentum: 0.9)" ;; esac    # at their own rates they magnify rounding a thousandfold in four steps
	one "$m" 5 && table && [ -s table ] || { echo "not ok $m: no table" && continue; }
	for ((seed = from; seed < from + count; seed++)); do try $seed; done
done
how=$plain
for m in ${PINS_OF:-"$HERE/twins" ${LONG:+$models}}; do
	one "$m" 8 && table && bits >one.bits && [ -s one.bits ] || { echo "not ok ${m##*/}-any-ranks: $(head -n 1 log)" && continue; }
	[ "$name" = twins ] && printf '%s float[8, 8]\n' a b c d e f g h k shown i j >>table   # also what folding leaves nothing of
	for ((seed = from; seed < from + 2 * count; seed++)); do any $seed; done
done
