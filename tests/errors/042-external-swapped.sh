# exit: 0
# While the compiler runs, the file is swapped with a link to another file, whose bytes are never read.
. "$HERE/wire"
. "$HERE/external"
mkdir models in
printf '\0\0\200\77\0\0\0\100' >models/right.bin
printf '\0\0\240\101\0\0\240\101' >secret.bin
cp models/right.bin models/w.bin
external w.bin >models/model.onnx
{ printf '\223NUMPY\1\0v\0'; printf "%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"; printf '\0\0\0\0\0\0\0\0'; } >in/input_0.npy
(while :; do
	cp models/right.bin models/next && mv models/next models/w.bin
	ln -s ../secret.bin models/next && mv models/next models/w.bin
done) 2>/dev/null &
swapper=$!
ok=0
for ((i = 0; i < 60; i++)); do
	rm -rf got
	"$SBPCC" --eval models/model.onnx --inputs in --outputs got 2>err
	status=$?
	case $status in
	0) tail -c 8 got/output_0.npy | cmp -s - models/right.bin && ok=$((ok + 1)) || { echo "the other file was read" >&2; status=9; } ;;
	1) ;;
	*) cat err >&2; status=9 ;;
	esac
	[ $status != 9 ] || break
done
kill $swapper
wait $swapper 2>/dev/null
[ $status != 9 ]
