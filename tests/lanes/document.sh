# Each text of a pipeline in compiler/lanes/PIPELINES.md prints what stands below it; the table of schedules is that of
# the program.
document=$ROOT/compiler/lanes/PIPELINES.md
awk '/^```pipeline/ { n++; file = sprintf("%02d.pipe", n); line[n] = NR }
	/^```output/ { file = sprintf("%02d.want", n); printf "" >file }
	/^```$/ { file = "" }
	/^```/ { next }
	file != "" { print >file }' "$document"
for text in *.pipe; do
	n=${text%.pipe}
	"$SBPCC" --simulate="$text" >"$n.got" 2>"$n.err" || { echo "not ok text $n: $(head -n 1 "$n.err")"; continue; }
	if [ -n "${ACCEPT:-}" ]; then
		continue
	elif diff -u "$n.want" "$n.got" >diff; then
		echo "ok text $n"
	else
		echo "not ok text $n: prints something else" && head -n 40 diff | sed 's/^/    /'
	fi
done
if [ -n "${ACCEPT:-}" ]; then
	awk '/^```pipeline/ { n++ }
		/^```output/ { print; f = sprintf("%02d.got", n); while ((getline l <f) > 0) print l; skip = 1; next }
		/^```/ { skip = 0 }
		!skip' "$document" >new && cp new "$document" && echo "ok accepted"
fi
