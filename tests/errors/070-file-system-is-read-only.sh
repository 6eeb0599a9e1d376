# exit: 4
cp "$ROOT/examples/mlp.ir" .
mkdir fixed
mount -t tmpfs -o ro none fixed 2>/dev/null || { echo "cannot mount a file system here"; exit 77; }
"$SBPCC" mlp.ir -o fixed/tree
status=$?
umount fixed
exit $status
