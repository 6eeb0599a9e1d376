# exit: 4
mkdir elsewhere
ln -s elsewhere link
"$SBPCC" "$ROOT/examples/mlp.ir" -o link
status=$?
[ -z "$(ls elsewhere)" ] && [ -L link ] || exit 9
exit $status
