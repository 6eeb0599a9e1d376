# exit: 4
cp "$ROOT/examples/mlp.ir" .
mkdir small
mount -t tmpfs -o size=16k,mode=755 none small 2>/dev/null || { echo "cannot mount a small file system here"; exit 77; }
"$SBPCC" mlp.ir -o small/tree
status=$?
left=$(ls -A small)
umount small
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 9; }
exit $status
