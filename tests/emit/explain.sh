# --explain reports how values lie, how they are transferred, and what else they could be: each proposal can be asked
# for.
model() { # a pin of one value: examples/mlp.ir, data-parallel on two ranks but for that
	awk -v pin="$1" '/^@train/ { print "@mesh(ranks, cpu, [2])"; print pin }
		/^@train/ && pin !~ /"w1"/ { print "@pin(\"w1\", sbp: [B])" }
		/^@train/ { print "@pin(\"image\", \"label\", sbp: [S(0)])"; print "@pin(\"b1\", \"w2\", \"b2\", sbp: [B])" } { print }' "$ROOT/examples/mlp.ir"
}
model >mlp.ir
explain() { # options of sbpcc...
	"$SBPCC" mlp.ir --stop-after=boxing "$@" 2>err || { echo "not ok compiles: $*" && sed 's/^/ /' err; }
}
check() { # name, file: passes when the file has a line for the pattern on stdin
	if grep -qE -f - "$2"; then echo "ok $1"; else echo "not ok $1: not reported" && sed 's/^/ /' "$2"; fi
}
explain --explain >table
check values-have-shape-place-sbp-and-bytes table <<'X'
^w1 +float\[64, 128\] +ranks +B +32768
X
check parts-are-counted table <<'X'
^image +float\[32, 8, 8\] +ranks +S\(0\) +4096
X
check transfers-name-both-lines table <<'X'
^w2.grad +P -> B by all_reduce: 5120 bytes to a rank, 10240 in all, [0-9.]+ us; made at mlp.ir:26:[0-9]+, wanted by SGD at mlp.ir:19:[0-9]+$
X
awk '/^transfers/ { on = 1; next } on && !/; made at [^ ]*mlp.ir:[0-9]+:[0-9]+, (wanted by|kept as) [^ ]+ at [^ ]*mlp.ir:[0-9]+/' table >nameless
if [ -s nameless ]; then echo "not ok every-transfer-has-two-lines: these have not" && sed 's/^/ /' nameless; else echo "ok every-transfer-has-two-lines"; fi

# All values have a reason, and every proposed form is accepted when it is asked for.
bad='' asked=0
for v in h w1 w1.grad scores; do
	explain --explain="$v" >why
	grep -qE '; as it is$' why || bad="$bad $v: its own form is not listed;"
	while IFS= read -r pin; do
		want=$(sed 's/.*sbp: \[\(.*\)\])/\1/' <<<"$pin")
		model "$pin" >pinned.ir
		"$SBPCC" pinned.ir --stop-after=boxing --explain="$v" >pinned 2>err || { bad="$bad $pin is refused: $(head -n 1 err);"; continue; }
		grep "^$v " pinned | grep -qF " $want " && grep -q '^  pinned at pinned.ir' pinned || bad="$bad $pin is not what comes of it;"
		asked=$((asked + 1))
	done < <(sed -n 's/.*; \(@pin(.*)\)$/\1/p' why)
done
if [ -z "$bad" ] && [ "$asked" -ge 8 ]; then echo "ok proposals-can-be-asked-for"; else echo "not ok proposals-can-be-asked-for: $asked asked for;$bad"; fi
# Values of a function are named after the result of its call: each call has its own, which can be pinned alone.
# Values that passes add cannot be pinned and are not offered.
place() { # value, pin: a llama on two ranks
	printf '%s\n' '@mesh(ranks, cpu, [2])' "$2" >llama.place
	"$SBPCC" "$ROOT/examples/llama.ir" --train='data: points(classes: 2)' --place=llama.place --stop-after=boxing --explain="$1" 2>err
}
bad='' asked=0
for v in x1.q0 x1.act x1.seen x0; do
	place "$v" >why
	while IFS= read -r pin; do
		want=$(sed 's/.*sbp: \[\(.*\)\])/\1/' <<<"$pin")
		place "$v" "$pin" >pinned || { bad="$bad $pin is refused: $(head -n 1 err);"; continue; }
		grep "^$v " pinned | grep -qF " $want " && grep -q '^  pinned at llama.place:2' pinned || bad="$bad $pin is not what comes of it;"
		asked=$((asked + 1))
	done < <(sed -n 's/.*; \(@pin(.*)\)$/\1/p' why | head -n 3)
done
if [ -z "$bad" ] && [ "$asked" -ge 8 ]; then echo "ok values-of-a-call-can-be-asked-for"; else echo "not ok values-of-a-call-can-be-asked-for: $asked asked for;$bad"; fi
place loss.sum >why
if grep -q 'us = .*; no annotation asks for it' why && ! grep -q '@pin' why; then echo "ok what-no-pin-can-name-is-not-offered"; else echo "not ok what-no-pin-can-name-is-not-offered: $(cat why)"; fi
place '' '@pin("x1.q0", sbp: [S(2)])
@pin("x1.seen", sbp: [S(1)])' >table
line() { grep -n "$1" "$ROOT/examples/llama.ir" | cut -d: -f1; }
check transfers-name-lines-of-a-function-and-of-its-call table <<X
^x1.q0 +S\\(2\\) -> .* made at llama.ir:$(line '^  q0 = '):[0-9]+ in llama.ir:$(line 'x1 = llama.block'):[0-9]+, wanted by RotaryEmbedding at llama.ir:$(line '^  q = '):[0-9]+ in llama.ir:$(line 'x1 = llama.block'):[0-9]+\$
X
awk '/^transfers/ { on = 1; next } on && !/; made at llama.ir:[0-9]+:[0-9]+( in llama.ir:[0-9]+:[0-9]+)?, (wanted by|kept as) [^ ]+ at llama.ir:[0-9]+:[0-9]+( in llama.ir:[0-9]+:[0-9]+)?$/' table >nameless
if [ -s nameless ] || ! grep -q '^transfers' table; then echo "not ok every-transfer-of-a-function-has-two-lines: these have not" && sed 's/^/ /' nameless; else echo "ok every-transfer-of-a-function-has-two-lines"; fi

# With a mesh of many axes it reports which axes are split alike, and that the bound holds for such plans.
echo '@mesh(m, cpu, [2, 2, 2, 2, 2])' >five.place
"$SBPCC" "$ROOT/examples/mlp.ir" --train='data: points(classes: 2)' --place=five.place --stop-after=plan --explain=loss >five 2>&1
check bundles-are-named five <<'X'
^plan: .* by any plan that cuts axes alike, gap .*; axis 2 is cut as axis 1; axis 4 is cut as axis 3
X

explain --explain=nobody >none
check unknown-names none <<'X'
^there is no value nobody
X
# Also with micro-batches.
explain --train='microbatch: 8' --explain >table
check micro-batches-are-explained table <<'X'
^image +float\[8, 8, 8\] +ranks +S\(0\) +1024
X
