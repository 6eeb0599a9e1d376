. "$HERE/fuzz"
# The files that --write makes of text models with annotations and parameters.
i=0 made=made
mkdir -p all made
for f in "$ROOT"/tests/ir/*.ir "$ROOT"/examples/*.ir "$ROOT"/tests/passes/*/*.want; do
	"$PLAIN/sbpcc" "$f" --write="made/$((i += 1)).onnx" >log 2>&1 || rm -f "made/$i.onnx"
done
[ "$(ls made | wc -l)" -gt 50 ] || { echo "not ok made: only $(ls made | wc -l) files" && exit; }
for f in /usr/share/libonnx-testdata/data/node/*/model.onnx; do
	[ -f "$f" ] && cp "$f" "all/$((i += 1)).onnx"
done
if [ -n "$(ls all)" ]; then fuzz onnx all/*; else fuzz onnx; fi
