# A model that is read from text or from .onnx, written as .onnx and read again is the same model: our own files,
# annotations included, and those of the ONNX project.
set -u
"$BUILD/test-onnx-round_trip" --refused-is-bad "$ROOT/examples" "$ROOT/tests/ir"
if why=$("$ROOT/tests/setup" libonnx-testdata 2>&1); then
	"$BUILD/test-onnx-round_trip" /usr/share/libonnx-testdata/data
else
	echo "skip debian: ${why##*$'\n'}"
fi
if data=$("$HERE/wheel" "$ROOT"); then
	"$BUILD/test-onnx-round_trip" "$data"/*
else
	echo "skip wheel: $data"
fi
