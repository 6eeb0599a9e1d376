# exit: 4
mkdir mine
echo mine >mine/notes.txt
"$SBPCC" "$ROOT/examples/mlp.ir" -o mine
status=$?
[ "$(ls mine)" = notes.txt ] && [ "$(cat mine/notes.txt)" = mine ] || exit 9
exit $status
