# exit: 0
# The name holds a newline, a tab and a call of make's shell function. Only the copy of the model and the plan, which
# is a model itself, may hold it unescaped.
sed 's/\<w1\>/"a\n\t$(shell touch hit)`touch hit`"/g' "$ROOT/examples/mlp.ir" >model.ir
grep -q shell model.ir && "$SBPCC" model.ir -o out && ! grep -rF --exclude=plan.ir --exclude=model.ir '$(shell touch' out >&2 &&
	make -s -C out && [ ! -e hit ] && [ ! -e out/hit ]
