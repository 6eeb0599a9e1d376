# The ONNX project's own cases: Debian's package, the Python wheel (ONNX_VERSION chooses another), its light models,
# those above opset 24 that make_cases.py made from a newer release, and folders of more cases named in ONNX_CASES.
set -u
cases() { # prefix, compiler, arguments
	local prefix=$1 sbpcc=$2
	shift 2
	"$BUILD/test-onnx-run_cases" -j "$JOBS" --sbpcc "$sbpcc" --prefix "$prefix/" \
		--refused "$HERE/expected-refused.txt" --amended "$HERE/amended.txt" "$@"
}

# The wheel repeats the cases of Debian's package, most of them unchanged: one of the two runs under the sanitizers.
data=$("$HERE/wheel" "$ROOT") && compiler=$PLAIN/sbpcc || { echo "skip wheel: $data" && data= compiler=$BUILD/sbpcc; }
if why=$("$ROOT/tests/setup" libonnx-testdata 2>&1); then
	cases debian "$compiler" /usr/share/libonnx-testdata/data
else
	echo "skip debian: ${why##*$'\n'}"
fi

if why=$("$ROOT/tests/setup" xz-utils 2>&1); then
	mkdir newer && tar -xJf "$HERE/newer.tar.xz" -C newer && cases newer "$BUILD/sbpcc" "$PWD/newer"
else
	echo "skip newer: ${why##*$'\n'}"
fi

for more in ${ONNX_CASES:-}; do
	cases "$(basename "$more")" "$BUILD/sbpcc" "$more"
done

[ -n "$data" ] || exit 0
cases "wheel" "$BUILD/sbpcc" "$data"
# Whole networks: without the sanitizers, which would take minutes.
cases "light" "$PLAIN/sbpcc" --light "$data/light"
