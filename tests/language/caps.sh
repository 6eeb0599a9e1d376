# Every cap is an option: a model that is accepted by default ends with exit status 5 under a lower cap, and the
# message names the option.
set -u
cat >model.ir <<'END'
<ir_version: 10, opset_import: ["" : 21]>
g (float[2] xx) => (float[2] y)
<int64 n = {3}, bool yes = {1}, float[2] w = {1, 2}> {
	a = Loop (n, yes, xx) <body = b (int64 i, bool go, float[2] s) => (bool more, float[2] t) { more = Identity(go)
		t = Add(s, w) }>
	y = Relu(a)
}
END
"$SBPCC" --write=model.onnx model.ir && "$SBPCC" --stop-after=fold model.ir || echo "not ok model: refused without caps"
cap() { # flag, its value, the model
	"$SBPCC" "--$1=$2" --stop-after=fold "$3" >out 2>err
	local status=$?
	if [ $status = 5 ] && grep -q -e "--$1" err; then echo "ok $1 $3"
	else echo "not ok $1 $3: exit status $status" && sed 's/^/  /' err; fi
}
cap max-file-bytes 10 model.ir
cap max-onnx-bytes 10 model.onnx
for m in model.ir model.onnx; do
	cap max-name-bytes 1 $m
	cap max-nodes 1 $m
	cap max-depth 2 $m
	cap max-memory 1000 $m
	cap max-unroll 2 $m
done
cap max-elements 1 model.ir
printf 'g (float[2] x) => (float[2] y) {\na = A(zz)\nb = Add(x, q1)\nc = Add(x, q2)\ny = Add(x, q3) }\n' >bad.ir
"$SBPCC" --max-errors=2 bad.ir 2>err
if [ "$(grep -c ': error: ' err)" = 2 ] && grep -q '^sbpcc: 2 more errors not shown (--max-errors)' err; then echo "ok max-errors"; else
	echo "not ok max-errors: differs" && sed 's/^/  /' err; fi
