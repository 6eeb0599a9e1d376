# exit: 4
cp "$ROOT/examples/mlp.ir" .
mkdir mine
echo mine >mine/notes.txt
"$SBPCC" mlp.ir -o mine
status=$?
[ "$(ls mine)" = notes.txt ] && [ "$(cat mine/notes.txt)" = mine ] || exit 9
exit $status
