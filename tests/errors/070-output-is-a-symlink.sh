# exit: 4
cp "$ROOT/examples/mlp.ir" .
mkdir elsewhere
ln -s elsewhere link
"$SBPCC" mlp.ir -o link
status=$?
[ -z "$(ls elsewhere)" ] && [ -L link ] || exit 9
exit $status
