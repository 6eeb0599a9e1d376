. "$HERE/fuzz"
i=0
mkdir -p all
for f in /usr/share/libonnx-testdata/data/node/*/model.onnx; do
	[ -f "$f" ] && cp "$f" "all/$((i += 1)).onnx"
done
[ "$i" -gt 0 ] && fuzz onnx all/* || fuzz onnx
