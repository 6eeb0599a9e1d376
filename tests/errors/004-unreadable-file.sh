# exit: 4
# The superuser may read everything, so the test drops that right first.
echo 'g (float x) => (y) { y = Relu(x) }' >model.ir
chmod 000 model.ir
without="setpriv --bounding-set=-dac_override,-dac_read_search"
if cat model.ir >/dev/null 2>&1; then
	! $without cat model.ir >/dev/null 2>&1 || { echo "this user can read any file"; exit 77; }
	exec $without "$SBPCC" model.ir -o out
fi
"$SBPCC" model.ir -o out
