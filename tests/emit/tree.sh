# What a reader of a tree can rely on: the same bytes in any folder and any locale; above each action its id and the
# line of the model; above each function its shapes; in each row a static assertion for every result.
"$ROOT/bench/model.sh" gpt2:4,64 >gpt2.ir
joined() { # schedule: a comment, a row or a call on one line each
	awk '{ sub(line == "" ? "^$" : "^[\t ]*(\\* )?", ""); line = line == "" ? $0 : line " " $0 }
		line ~ /^\t?\/\*/ && line !~ /\*\// { next }
		line ~ /^(\tA|CALL)\(/ { s = line; if (gsub(/\(/, "", s) != gsub(/\)/, "", s)) next }
		{ print line; line = "" }' "$1"
}
cp "$ROOT"/examples/{mlp,gpt,resnet,lstm}.ir .
mkdir -p elsewhere/below
cp ./*.ir elsewhere/below
for m in mlp gpt resnet lstm gpt2; do
	"$SBPCC" $m.ir -o $m >/dev/null || { echo "not ok $m: does not compile" && continue; }
	(cd elsewhere/below && LC_ALL=$(locale -a 2>/dev/null | grep -viE '^(C|POSIX)' | head -n 1) TZ=Asia/Tokyo HOME=/nowhere COLUMNS=40 "$SBPCC" $m.ir -o "$m-again" >/dev/null)
	joined $m/role0/schedule.c >schedule
	diff -r $m elsewhere/below/$m-again >log && echo "ok $m-same-bytes" || { echo "not ok $m-same-bytes: they differ" && head -n 5 log | sed 's/^/ /'; }

	# A row of an action, and the line before it.
	awk '/^\tA\(/ { if (before !~ /^\t\/\* a[0-9]+ ([^ ]+:[0-9]+:[0-9]+( in [^ ]+:[0-9]+:[0-9]+)*  .*(->).*|load|load .*|report .*) \*\/$/) { print FILENAME ":" FNR ": " before; bad = 1 } n++ }
		{ before = $0 } END { if (!n) print "no action"; exit bad || !n }' schedule >log && echo "ok $m-every-action-says-where-from" ||
		{ echo "not ok $m-every-action-says-where-from: no id or no line of the model" && head -n 5 log | sed 's/^/ /'; }

	# CALL(f1, ...) and static int f1(...).
	awk '/^CALL\(|^static int f[0-9]+\(/ { if (before !~ /^\/\* [^ ]+  [a-z]+[0-9]*(\[[0-9, ]+\])?[, ].*\*\/$/) { print FILENAME ":" FNR ": " before; bad = 1 } n++ }
		{ before = $0 } END { exit bad || !n }' schedule >log && echo "ok $m-every-function-says-its-shapes" ||
		{ echo "not ok $m-every-function-says-its-shapes: no shapes" && head -n 5 log | sed 's/^/ /'; }

	# The number of results of a row is the number of its conditions; the last argument is 1 where there are none.
	awk -F', ' '/^\tA\(/ { make = $4; fits = $0; n = gsub(/<= T[0-9]+/, "", fits); if (n != make) { print FILENAME ":" FNR ": " $0; bad = 1 } } END { exit bad }' schedule >log &&
		echo "ok $m-every-result-is-asserted" || { echo "not ok $m-every-result-is-asserted: conditions are missing" && head -n 5 log | sed 's/^/ /'; }
done
# The assertions can fail: a table in which one value is a byte too small does not compile.
sed 's/\(T[0-9]* = \)8192,/\18191,/' mlp/buffers.h >log && ! cmp -s log mlp/buffers.h && cp log mlp/buffers.h
gcc -std=c11 -D_GNU_SOURCE -fsyntax-only -Imlp -Imlp/rt -Imlp/kernels mlp/role0/schedule.c >log 2>&1 && echo "not ok assertions-hold: a value that is too small is accepted" ||
	{ grep -q 'static assertion failed' log && echo "ok assertions-hold" || { echo "not ok assertions-hold: another error" && head -n 5 log | sed 's/^/ /'; }; }
