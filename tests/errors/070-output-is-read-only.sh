# exit: 4
# An empty read-only folder inside a writable one.
cp "$ROOT/examples/mlp.ir" .
mkdir tree
chmod 555 tree
before=$(stat -c '%i %a' tree)
without="setpriv --bounding-set=-dac_override,-dac_read_search"
if touch tree/x 2>/dev/null; then
	rm tree/x
	! $without touch tree/x 2>/dev/null || { echo "this user can write everywhere"; exit 77; }
	$without "$SBPCC" mlp.ir -o tree
else
	"$SBPCC" mlp.ir -o tree
fi
status=$?
[ "$(stat -c '%i %a' tree)" = "$before" ] && [ -z "$(ls -A tree)" ] || { echo "the folder was touched" >&2; exit 9; }
exit $status
