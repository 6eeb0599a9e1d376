# exit: 0
# A prefix is refused with a message, or is a whole model itself.
. "$HERE/wire"
tensor w 1 2 '\0\0\200\77\0\0\0\100' | add >whole.onnx
n=$(wc -c <whole.onnx)
"$SBPCC" --print whole.onnx >/dev/null || exit 1
for ((i = 0; i < n; i++)); do
	head -c $i whole.onnx >cut.onnx
	"$SBPCC" --print cut.onnx >out.ir 2>err
	status=$?
	case $status in
	0) [ -s out.ir ] && "$SBPCC" --print out.ir >/dev/null || { echo "prefix $i is accepted but does not print" >&2; exit 9; } ;;
	1) grep -q ': error: ' err || { echo "prefix $i is refused without a message" >&2; exit 9; } ;;
	*) echo "prefix $i: exit status $status" >&2; cat err >&2; exit 9 ;;
	esac
done
