# What a reader of a tree can rely on: the same bytes in any folder and any locale; above each action its id and the
# line of the model; above each function its shapes, or which actions it runs; names of the model in the calls; in each
# function a static assertion that there is a name for each value.
"$ROOT/bench/model.sh" gpt2:4,64 >gpt2.ir
joined() { # blocks.c: a comment or a statement on one line each
	awk '{ sub(line == "" ? "^$" : "^[\t ]*(\\* )?", ""); line = line == "" ? $0 : line " " $0 }
		line ~ /^\t?\/\*/ && line !~ /\*\// { next }
		line ~ /^\tDO(_ALONE)?\(/ { s = line; if (gsub(/\(/, "", s) != gsub(/\)/, "", s)) next }
		{ print line; line = "" }' "$1"
}
cp "$ROOT"/examples/{mlp,gpt,resnet,lstm}.ir .
mkdir -p elsewhere/below
cp ./*.ir elsewhere/below
for m in mlp gpt resnet lstm gpt2; do
	"$SBPCC" $m.ir -o $m >/dev/null || { echo "not ok $m: does not compile" && continue; }
	(cd elsewhere/below && LC_ALL=$(locale -a 2>/dev/null | grep -viE '^(C|POSIX)' | head -n 1) TZ=Asia/Tokyo HOME=/nowhere COLUMNS=40 "$SBPCC" $m.ir -o "$m-again" >/dev/null)
	joined $m/blocks.c >blocks
	diff -r $m elsewhere/below/$m-again >log && echo "ok $m-same-bytes" || { echo "not ok $m-same-bytes: they differ" && head -n 5 log | sed 's/^/ /'; }

	# An action, and the line before it.
	awk '/^\tDO(_ALONE)?\(/ { if (before !~ /^\t\/\* a[0-9]+ ([^ ]+:[0-9]+:[0-9]+( in [^ ]+:[0-9]+:[0-9]+)*  .* = .*\(.*\).*|load|load .*|report .*) \*\/$/) { print FILENAME ":" FNR ": " before; bad = 1 } n++ }
		{ before = $0 } END { if (!n) print "no action"; exit bad || !n }' blocks >log && echo "ok $m-every-action-says-where-from" ||
		{ echo "not ok $m-every-action-says-where-from: no id or no line of the model" && head -n 5 log | sed 's/^/ /'; }

	# A function, and the line before it.
	awk '/^(static )?int [a-zA-Z0-9_]+\(Ctx/ { if (before !~ /^\/\* (One of [0-9]+ equal layers, )?a[0-9]+ .*\*\/$|^\/\* [^ ]+  [a-z]+[0-9]*(\[[0-9, ]+\])?[, ].*\*\/$/) { print FILENAME ":" FNR ": " before; bad = 1 } n++ }
		{ before = $0 } END { exit bad || !n }' blocks >log && echo "ok $m-every-function-says-what-it-is" ||
		{ echo "not ok $m-every-function-says-what-it-is: neither shapes nor actions" && head -n 5 log | sed 's/^/ /'; }

	# The result that an action is named after is one of the values of its call.
	awk -F', ' '/^\tDO\((COMPUTE|COLLECTIVE|START|FINISH)/ { if (!index($0, "h." $3)) { print FILENAME ":" FNR ": " $0; bad = 1 } } END { exit bad }' blocks >log &&
		echo "ok $m-calls-have-names" || { echo "not ok $m-calls-have-names: the result is not in the call" && head -n 5 log | sed 's/^/ /'; }
done
# The assertions can fail: a function without the name of one value, and a slab that is too small, do not compile.
fails() { # name, file
	gcc -std=c11 -D_GNU_SOURCE -fsyntax-only -Imlp -Imlp/rt -Imlp/kernels "$2" >log 2>&1 && echo "not ok $1: it compiles" ||
		{ grep -q 'static assertion failed' log && echo "ok $1" || { echo "not ok $1: another error" && head -n 5 log | sed 's/^/ /'; }; }
}
awk '!n && sub(/void \*t\[/, "&-1 + ") { n++ } { print } END { exit !n }' mlp/blocks.c >mlp/more.c || echo "not ok a-name-for-each-value: no array of pointers"
fails a-name-for-each-value mlp/more.c
sed -i 's/SLAB_BYTES ((size_t)[0-9]*)/SLAB_BYTES ((size_t)64)/' mlp/buffers.h && fails values-lie-in-the-slab mlp/buffers.c
