# What an .onnx file of PyTorch says about parameters, buffers, scalars and frozen parameters; sbpcc then trains what
# PyTorch trains. tests/golden/parameters.py made the files in parameters/.
set -u
files=$HERE/parameters
compile() { # file, options
	local file=$1
	shift
	rm -rf tree.new
	"$SBPCC" "$file" --train="loss: loss, batch: 6, steps: 6, data: npy(\"$files/data\", shuffle: false), $how" "$@" -o tree.new >table 2>messages
}
check() { # what, pattern, file, expected count
	local n
	n=$(grep -c -e "$2" "$3")
	if [ "$n" -eq "$4" ]; then echo "ok $1"; else echo "not ok $1: $n, expected $4" && sed 's/^/    /' "$3"; fi
}
how='optimizer: sgd(lr: 0.1)'

# Recorded: nothing is guessed.  A tied parameter has the first of its names in one file and the last in the other.
for kind in script dynamo; do
	compile "$files/all.$kind.onnx"
	check "$kind-recorded-trains" '^  trained  *9  54 numbers: gain, shrink, one\.weight' table $([ $kind = script ] && echo 1 || echo 0)
	check "$kind-recorded-trained" '^  trained  *9  54 numbers: ' table 1
	check "$kind-recorded-freezes" '^  frozen  *2  20 numbers: still.weight, still.bias$' table 1
	check "$kind-recorded-missing" '^  not in file  *1  unused$' table 1
	check "$kind-statistics" '^  statistics  *2  8 numbers: bn.running_mean, bn.running_var$' table 1
	check "$kind-says-so" 'parameters as recorded by the export$' table 1
	check "$kind-guesses-nothing" 'is trained, but\|is not trained' messages 0
done

# Not recorded: sbpcc warns about each one that does not look like a weight, and names the annotation that decides.
compile "$files/bare.script.onnx"
check guess-hand 'warning: table is not trained: its numbers were written by hand; @param("table") if it is a parameter' messages 1
check guess-behind-it 'warning: offset is not trained: it stands behind a buffer of its module' messages 1
check guess-infinite 'warning: mask is not trained: it holds numbers that are not finite' messages 1
check guess-sines 'warning: pe is not trained: it is a table of sines and cosines' messages 1
check guess-scalar 'warning: shrink is trained, but nothing in the file distinguishes it from a buffer; @state("shrink") if it is a buffer' messages 1
check guess-how 'records named_parameters() leaves nothing to guess' messages 1
check guess-only-these 'warning: .*trained' messages 5
check guess-table '^  trained  *11  74 numbers: gain, shrink' table 1
# A name is no proof: numbers and use can contradict it, and then it proves nothing of its neighbours either.
compile "$files/misnamed.script.onnx"
check misnamed-hand 'warning: inner.bias is trained, but its numbers look as if they were written by hand; @state("inner.bias") if it is' messages 1
check misnamed-before-it 'warning: inner.gate is trained, but nothing in the file distinguishes it from a buffer' messages 1
check misnamed-by-use '^  state .*class_weight' table 1
check misnamed-behind-it 'warning: slopes is not trained: it stands behind a buffer of its module' messages 1
check misnamed-before-used 'warning: margin is trained, but nothing in the file distinguishes it from a buffer' messages 1
check misnamed-weight-of-ones '\(forget_bias\|: w\) is' messages 0
check misnamed-only-these 'warning: .*trained' messages 4
compile "$files/bare.dynamo.onnx"
check marked 'as the exporter marks them, which does not show what is frozen$' table 1
check marked-buffers '^  state  *5 ' table 1
check marked-quietly 'trained' messages 0

# Annotations take precedence.
echo '@param("mask", "still.bias") @state("gain") @freeze("one.*")' >said.place
for file in all.script bare.script; do
	compile "$files/$file.onnx" --place=said.place
	check "$file-said-trains" '^  trained .*mask.*still.bias' table 1
	check "$file-said-state" '^  state .*gain' table 1
	check "$file-said-freezes" '^  frozen .*one.weight, one.bias' table 1
	check "$file-said-is-no-guess" '\(mask\|gain\|one.weight\) is' messages 0
done
echo '@param("order")' >int.place
compile "$files/bare.script.onnx" --place=int.place
check integers-are-refused 'error: order cannot be trained: it holds int64\[4\]' messages 1

# A record that was edited.
edit() { # from, to of the same length
	sed "s/$1/$2/" "$files/all.script.onnx" >edited.onnx
	compile edited.onnx
}
edit 'frozen still.bias' 'melted still.bias'
check edited 'error: metadata torch.parameter.still.bias is "melted still.bias"; it must be "trained NAME" or "frozen NAME"' messages 1
edit 'torch.parameter.bn.bias' 'torch.parameter.xx.bias'
check edited-name '^  not in file  *2  unused, xx.bias$' table 1
check edited-is-state '^  state .*bn.bias' table 1

# Losses of PyTorch, scalars included: both exporters, several optimizers, two ranks, and a resumed checkpoint.
agree() { # file, bound
	tr ' ' '\n' <want | paste - "$1" | awk -v far="$2" '{ d = $1 - $2; if (d < 0) d = -d; if (d > far * $1) { print " " $0; bad = 1 } n++ } END { exit bad || n != 6 }' >why
}
train() { # name, file, options
	local name=$1 file=$2
	shift 2
	compile "$file" "$@" && mkdir -p tree && cp -r tree.new/. tree && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 && rm -rf state &&
		tree/trainer --every=1 --steps=3 --checkpoint=state >log 2>&1 && tree/trainer --every=1 --checkpoint=state --resume >>log 2>&1 || { echo "not ok $name: $(cat messages log | head -n 1)" && return; }
	awk '/^step/ { print $4 }' log >got
	if agree got 1e-4; then echo "ok $name"; else echo "not ok $name: losses differ" && cat why; fi
}
while IFS='|' read -r name how want; do
	echo "$want" >want
	case $name in
	sgd) train dynamo-sgd "$files/all.dynamo.onnx" ;;
	adamw) train two-ranks-adamw "$files/all.script.onnx" --ranks=2 ;;
	*) train "script-$name" "$files/all.script.onnx" ;;
	esac
done <"$files/losses.txt"

# A norm that was in evaluation mode at the export keeps its statistics, also if no other norm shows the mode.
how='optimizer: sgd(lr: 0.1)'
for kind in script dynamo; do
	cp "$files/still.txt" want
	train "still-$kind" "$files/still.$kind.onnx"
	check "still-$kind-quietly" 'training mode' messages 0
	check "still-$kind-is-state" '^  state  *2  8 numbers: norm.running_mean, norm.running_var$' table 1
done

# The running variance of PyTorch.
IFS='|' read -r name how want <"$files/losses.txt"
echo '@batchnorm("bn.*", unbiased)' >unbiased.place
echo "$want" >want
near() { # safetensors file, tensor: as statistics.txt has it
	local n at
	n=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
	at=$(tail -c +9 "$1" | head -c "$n" | grep -o "\"$2\":{[^}]*" | sed 's/.*\[\([0-9]*\), *\([0-9]*\)\]$/\1 \2/')
	od -An -v -t f4 -j $((8 + n + ${at% *})) -N $((${at#* } - ${at% *})) "$1" | tr -s ' ' '\n' | sed '/^$/d' >got
	sed -n "s/^$2 //p" "$files/statistics.txt" | tr ' ' '\n' | paste - got | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 2e-6) { print " " $0; bad = 1 } n++ } END { exit bad || n != 4 }' >why
}
for n in 1 2; do
	train "unbiased-on-$n" "$files/all.dynamo.onnx" --place=unbiased.place --ranks=$n
	file=$(ls state/step-*/state.safetensors | sort -V | tail -n 1)
	near "$file" bn.running_mean && near "$file" bn.running_var && echo "ok running-statistics-on-$n" || { echo "not ok running-statistics-on-$n" && cat why; }
done
