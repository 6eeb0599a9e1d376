# long: yes
# The checker of programs of lanes against spin: 200 random nets, half of them with an order bug (spin.c).  Spin finds an
# invalid end state or a failed assertion if and only if check_net refuses.
"$ROOT/tests/setup" spin gcc libc6-dev 2>why || { echo "skip spin: $(tail -n 1 why)" && exit; }
"$BUILD/test-lanes-spin" 200 . >verdicts || { echo "not ok nets: exit status $?" && exit; }
ask() { # the number of a net: what spin says
	mkdir "$1" && cd "$1" || return
	spin -a "../$1.pml" >log 2>&1 &&
		gcc -w -O1 -DSAFETY -DVECTORSZ=8192 -DNOCLAIM -o pan pan.c >>log 2>&1 &&
		./pan -m1000000 >out 2>>log
	if grep -q 'errors: 0$' out && ! grep -q 'max search depth too small\|unreached.*error' out; then
		echo "$1 proved"
	elif grep -q 'invalid end state\|assertion violated' out; then
		echo "$1 refused"
	else
		echo "$1 unknown"
	fi
	cd .. && [ -n "${KEEP:-}" ] || rm -rf "$1"
}
export -f ask
cut -d' ' -f1 verdicts | xargs -n 1 -P "$JOBS" bash -c 'ask "$0"' | sort -n >spin
sort -n verdicts >checker
if cmp -s checker spin && [ "$(wc -l <spin)" = 200 ]; then
	echo "ok $(grep -c proved spin) nets proved and $(grep -c refused spin) refused, by both"
else
	echo "not ok agreement: $(diff checker spin | grep -c '^>') of 200 nets differ"
	diff checker spin | head -n 20 | sed 's/^/    /'
fi
