# exit: 4
cp "$ROOT/examples/mlp.ir" .
echo mine >file
"$SBPCC" mlp.ir -o file
status=$?
[ "$(cat file)" = mine ] || exit 9
exit $status
