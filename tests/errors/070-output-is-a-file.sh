# exit: 4
echo mine >file
"$SBPCC" "$ROOT/examples/mlp.ir" -o file
status=$?
[ "$(cat file)" = mine ] || exit 9
exit $status
