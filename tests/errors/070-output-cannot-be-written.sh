# exit: 4
# The superuser may write everywhere, so the test drops that right first.
cp "$ROOT/examples/mlp.ir" .
mkdir locked
chmod 555 locked
without="setpriv --bounding-set=-dac_override,-dac_read_search"
if touch locked/x 2>/dev/null; then
	rm locked/x
	! $without touch locked/x 2>/dev/null || { echo "this user can write everywhere"; exit 77; }
	exec $without "$SBPCC" mlp.ir -o locked/tree
fi
"$SBPCC" mlp.ir -o locked/tree
