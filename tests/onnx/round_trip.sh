# What is read from text or from .onnx, written as .onnx and read again is the same model: our own files, annotations
# included, and those of the ONNX project.
set -u
"$BUILD/test-onnx-round_trip" --refused-is-bad "$ROOT/examples" "$ROOT/tests/ir"
if why=$("$ROOT/tests/setup" libonnx-testdata 2>&1); then
	"$BUILD/test-onnx-round_trip" /usr/share/libonnx-testdata/data
else
	echo "skip debian: $why"
fi
wheel=$(ls -d "$ROOT"/build/cache/onnx-*/onnx/backend/test/data 2>/dev/null | head -n 1)
if [ -n "$wheel" ]; then
	"$BUILD/test-onnx-round_trip" "$wheel"/*
else
	echo "skip wheel: onnx/run_cases has not fetched it yet"
fi
