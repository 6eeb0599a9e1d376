# exit: 0
# A prefix is refused with a message, or is a whole model itself: behind the operator sets stand two fields that may
# be missing, so that exactly two prefixes are models.
. "$HERE/wire"
tensor w 1 2 '\0\0\200\77\0\0\0\100' | add >least.onnx
{ cat least.onnx && str 2 me && str 3 1.0; } >whole.onnx
least=$(wc -c <least.onnx)
n=$(wc -c <whole.onnx)
"$SBPCC" --print whole.onnx >/dev/null || exit 1
for ((i = 0; i < n; i++)); do
	head -c $i whole.onnx >cut.onnx
	"$SBPCC" --print cut.onnx >out.ir 2>err
	status=$?
	case $status in
	0) [ $i = $least ] || [ $i = $((least + 4)) ] || { echo "prefix $i is accepted" >&2; exit 9; }
		[ -s out.ir ] && "$SBPCC" --print out.ir >/dev/null 2>&1 || { echo "prefix $i is accepted but does not print" >&2; exit 9; } ;;
	1) [ $i != $least ] && [ $i != $((least + 4)) ] || { echo "prefix $i is refused" >&2; exit 9; }
		[ ! -s out.ir ] && grep -q ': error: ' err || { echo "prefix $i is refused without a message" >&2; exit 9; } ;;
	*) echo "prefix $i: exit status $status" >&2; cat err >&2; exit 9 ;;
	esac
done
