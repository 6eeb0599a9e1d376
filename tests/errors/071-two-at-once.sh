# exit: 0
# One of them wins completely; the other ends with 4 (or with 0 if it came later and replaced the finished tree by an
# equal one).
cp "$ROOT/examples/mlp.ir" .
"$SBPCC" mlp.ir -o alone 2>/dev/null || exit 9
for ((i = 0; i < 10; i++)); do
	rm -rf tree
	"$SBPCC" mlp.ir -o tree 2>/dev/null &
	"$SBPCC" mlp.ir -o tree 2>/dev/null
	a=$?
	wait $!
	b=$?
	case $a$b in 00 | 04 | 40) ;; *) echo "exit status $a and $b" >&2 && exit 9 ;; esac
	diff -r alone tree >&2 || exit 9
done
rest=$(ls -A | grep -v -x -e alone -e tree -e mlp.ir)
[ -z "$rest" ] || { echo "left behind: $rest" >&2; exit 9; }
