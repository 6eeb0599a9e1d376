# Each block of ir/LANGUAGE.md is what it claims: `ir` is accepted, prints, and prints again as itself; `ir error` is
# refused with exit status 1; `place` and `train` annotate the last accepted model; `table` is the table of
# annotations.
awk '/^```[a-z]/ { n++; kind = substr($0, 4); gsub(" ", "-", kind); file = sprintf("%03d.%s.%d", n, kind, NR); printf "" >file; next }
	/^```/ { file = ""; next }
	file != "" { print >file }' "$ROOT/ir/LANGUAGE.md"

fail() { # block, line, why; details on stdin
	echo "not ok line $2, $1: $3"
	head -n 20 | sed 's/^/    /'
}
run() { "$SBPCC" --print "$@" >got 2>err; }

for f in [0-9]*.*; do
	kind=${f#*.}
	line=${kind#*.}
	kind=${kind%.*}
	case $kind in
	ir) cp "$f" model.ir; run "$f" ;;
	ir-error) run "$f" ;;
	place*) run --place "$f" model.ir ;;
	train*) run --train "$(cat "$f")" model.ir ;;
	table) "$SBPCC" --list-annotations >got 2>err ;;
	*) echo "not ok line $line: unknown kind of block $kind"; continue ;;
	esac
	status=$?
	case $kind in
	*-error)
		if [ $status -eq 1 ] && grep -q ': error: ' err; then echo "ok line $line, $kind"
		else fail "$kind" "$line" "exit status $status, not refused" <got; fi
		continue ;;
	esac
	if [ $status -ne 0 ]; then
		fail "$kind" "$line" "exit status $status" <err
	elif [ "$kind" = table ] && [ -n "${ACCEPT:-}" ] && ! cmp -s "$f" got; then
		awk '/^```table/ { print; while ((getline l <"got") > 0) print l; skip = 1; next } /^```/ { skip = 0 } !skip' \
			"$ROOT/ir/LANGUAGE.md" >new.md && cp new.md "$ROOT/ir/LANGUAGE.md" && echo "ok line $line, $kind accepted"
	elif [ "$kind" = table ]; then
		if diff -u "$f" got >diff; then echo "ok line $line, $kind"; else fail "$kind" "$line" "differs from --list-annotations" <diff; fi
	else
		mv got once.ir
		if run once.ir && diff -u once.ir got >diff; then echo "ok line $line, $kind"
		else cat err diff | fail "$kind" "$line" "does not print as itself"; fi
	fi
done
