# Plans that are wrong: a dump after `schedule` with one thing changed is refused, and the message names it.
# Each line: what is wrong, and an expression of sed that does it.
"$SBPCC" "$HERE/net.ir" --ranks=2 --stages=2 --schedule=1f1b --dump-after=schedule --stop-after=schedule >plan.ir || exit 1
"$SBPCC" plan.ir --stop-after=prove || exit 1
refuse() { # changes of plan.ir, from the standard input
	while IFS='|' read -r what change; do
		sed "$change" plan.ir >bad.ir
		cmp -s plan.ir bad.ir && echo "$what: the change does nothing"
		"$SBPCC" bad.ir --stop-after=prove >out 2>&1
		echo "$what: exit $?"
		grep -E '^[^ ].*(error|note): ' out | sed 's/^[^:]*:[0-9]*:[0-9]*: //; s/^/    /'
	done
}
refuse <<'END'
a task is missing|s/ 0F1 / /
a task stands twice|s/ 0F1 / 0F1 0F1 /
a backward block before its forward block|s/"1F0 1B0 /"1B0 1F0 /
a task of the other rank|s/ 0F1 / 1F1 /
a stage that does not exist|s/ 0F1 / 7F1 /
a micro-batch that does not exist|s/ 0F3 / 0F9 /
no kind|s/ 0F1 / 0X1 /
no micro-batch|s/ 0F1 / 0F /
text behind a task|s/ 0F1 / 0F1x /
a rank that does not exist|s/@lane(rank: 1/@lane(rank: 5/
two lanes of a rank|s/@lane(rank: 1/@lane(rank: 0/
half of a backward block|s/ 0B0 / 0I0 /
messages in another order than they are sent|s/"1F0 1B0 1F1 1B1 /"1F1 1B1 1F0 1B0 /
a sum is read where another block adds to it|s/  h1 \(.*\), w1)/  h1 \1, "w1.grad.sum")/
a transfer of another kind|s/how = "send">(x1)/how = "all_gather">(x1)/
a copy too few between forward and backward|s/\(  g1 .*\)@copies([0-9]*)/\1@copies(1)/
an axis that does not exist|s/@pipeline(axis: 0/@pipeline(axis: 3/
stages that cannot be divided|s/stages: 2/stages: 3/
a schedule that does not exist|s/"1f1b"/"2f2b"/
a schedule for two stages of each rank|s/"1f1b"/"zb-v"/
END

# Reductions of gradients: two stages of two ranks.
printf '@pin("x", "target", "h1", "a1", "h2", "h3", "a3", "h4", sbp: [_, S(0)])\n@pin("w1", "w2", "w3", "w4", sbp: [_, B])\n' >pins
"$SBPCC" "$HERE/layers.ir" --ranks=4 --stages=2 --schedule=1f1b --place=pins --dump-after=schedule --stop-after=schedule >plan.ir || exit 1
"$SBPCC" plan.ir --stop-after=prove || exit 1
refuse <<'END'
gradients are reduced before the last backward block|s/ 0B3 0REDUCE_GRAD/ 0REDUCE_GRAD 0B3/
gradients are reduced twice|s/ 0REDUCE_GRAD/ 0REDUCE_GRAD 0REDUCE_GRAD/
gradients of the other rank are reduced|s/ 0REDUCE_GRAD/ 1REDUCE_GRAD/
gradients of a stage that does not exist are reduced|s/ 0REDUCE_GRAD/ 5REDUCE_GRAD/
a transfer to another form|s/^  "w1.grad.whole" @sbp(B, B)/  "w1.grad.whole" @sbp(B, S(0))/
gradients are never reduced|s/ 0REDUCE_GRAD//
a reduction of a micro-batch|s/ 0REDUCE_GRAD/ 0REDUCE_GRAD3/
END
