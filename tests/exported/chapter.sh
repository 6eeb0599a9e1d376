# examples/README.md, From and to PyTorch: runs each command of the chapter on the file that its export function made
# of a small classifier (tests/golden/parameters.py executes the Python lines of the chapter), and compares the
# results with those of PyTorch.
set -u
cp -r "$HERE/parameters/chapter/." .
mkdir bin && ln -s "$SBPCC" bin/sbpcc && PATH=$PWD/bin:$PATH
export MAKEFLAGS='-s STATIC= CFLAGS=-O1'
awk '/^## / { on = $0 == "## From and to PyTorch" } on' "$ROOT/examples/README.md" >chapter
grep -E '^    (sbpcc|make|net/|echo) ?' chapter | sed 's/^    //; s/        .*//' >commands
n=0
while read -r line; do
	n=$((n + 1))
	if eval "$line" >"out.$n" 2>"err.$n" </dev/null; then echo "ok line $n"; else echo "not ok line $n: $line" && sed 's/^/    /' "err.$n"; fi
done <commands
[ $n -eq 11 ] && echo "ok all-lines" || echo "not ok all-lines: $n commands, 11 expected"

# What the chapter shows is what is printed.
grep -q '^input  x  float\[N, 4\]$' out.1 && echo "ok names" || echo "not ok names: $(cat out.1)"
sed -n '/^    net.onnx: parameters/,/^$/s/^    //p' chapter | sed '/^$/d' >shown
grep -A 3 '^net.onnx: parameters' out.2 | cmp -s - shown && [ -s shown ] && echo "ok table" || { echo "not ok table" && diff shown out.2; }
grep -q '^  trained  *2 .*head.weight, head.bias$' out.7 && grep -q '^  frozen  *5 ' out.7 && echo "ok fine-tune-table" || { echo "not ok fine-tune-table" && cat out.7; }

near() { # wanted numbers, found ones, bound
	paste "$1" "$2" | awk -v far="$3" '{ d = $1 - $2; if (d < 0) d = -d; if (NF != 2 || d > far * (1 + $1 * $1)) { print " " $0; bad = 1 } } END { exit bad || !NR }'
}
losses() { # name, number of the line
	sed -n "s/^$1 //p" losses.txt | tr ' ' '\n' >want
	awk '/^step/ { print $4 }' "out.$2" >got
	near want got 1e-5 >why && echo "ok losses-of-$1" || { echo "not ok losses-of-$1" && cat why; }
}
losses net 3
losses hub 4
losses tuned 8

# The names of the state_dict, and the numbers that training ends with; the running variance is PyTorch's in one,
# ONNX's in the other.
tensor() { # safetensors file, name: its numbers
	local n at
	n=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
	at=$(tail -c +9 "$1" | head -c "$n" | grep -o "\"$2\":{[^}]*" | sed 's/.*\[\([0-9]*\), *\([0-9]*\)\]$/\1 \2/')
	[ -n "$at" ] && od -An -v -t f4 -j $((8 + n + ${at% *})) -N $((${at#* } - ${at% *})) "$1" | tr -s ' ' '\n' | sed '/^$/d'
}
while read -r name values; do
	tr ' ' '\n' <<<"$values" >want
	for folder in ends out; do
		tensor $folder/model.safetensors "$name" >got
		near want got 1e-5 >why
		case $?.$folder.$name in
		0.out.norm.running_var | [1-9]*.ends.* | [1-9]*.out.[^n]* | [1-9]*.out.norm.[^r]* | [1-9]*.out.norm.running_mean) echo "not ok $folder-$name" && cat why ;;
		*) echo "ok $folder-$name" ;;
		esac
	done
done <ends.txt
