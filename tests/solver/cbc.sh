# The chosen signatures of a transformer block and of the small examples cost as much as the optimum of the same
# integer program by CBC.
why=$("$ROOT/tests/setup" coinor-cbc 2>&1) || { echo "skip cbc: $(echo "$why" | tail -n 1)" && exit 0; }
check() { # MODEL MESH
	what="$(basename "$1" .ir) on $2"
	"$PLAIN/test-solver-cbc" "$1" "$2" block.lp >ours 2>log || { echo "not ok $what: $(head -n 1 log)" && return; }
	cbc block.lp ratio 0 allow 0 solve >cbc.log 2>&1
	best=$(sed -n 's/^Objective value: *//p' cbc.log | tail -n 1)
	[ -n "$best" ] || best=$(sed -n 's/^Optimal - objective value *//p' cbc.log | tail -n 1)
	grep -q 'Optimal' cbc.log || { echo "not ok $what: CBC found no optimum: $(tail -n 1 cbc.log)" && return; }
	awk -v best="$best" -v what="$what" '{ d = $1 - best; if (d < 0) d = -d; g = $1 - $2; if (d <= 1e-4 * best + 1e-3 && g <= 1e-6 * $1) print "ok " what ": " $1 " us"; else print "not ok " what ": cost " $1 ", bound " $2 ", CBC " best }' ours
}
check "$ROOT/examples/llama.ir" 4
check "$ROOT/examples/mlp.ir" 8
check "$ROOT/examples/cnn.ir" 2
check "$ROOT/examples/mlp.ir" "2, 2"
[ -z "$LONG" ] || check "$ROOT/examples/llama.ir" "2, 2"        # CBC takes minutes
