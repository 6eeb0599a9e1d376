cat >f.ir <<'M'
<opset_import: ["" : 21, "f" : 1]>
g (float[4] x) => (float[4] y) { y = f.leaky<abc = 0.5>(x) }
<domain: "f", opset_import: ["" : 21]>
leaky <abc: float> (x) => (y) { y = LeakyRelu<alpha = @abc>(x) }
M
"$SBPCC" f.ir --write=f.onnx || exit 70
LC_ALL=C sed 's/\xaa\x01\x03abc/\xaa\x01\x03abd/' f.onnx >g.onnx
cmp -s f.onnx g.onnx && exit 70
"$SBPCC" g.onnx -o out
