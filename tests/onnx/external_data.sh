# External data: a checksum is compared unless an option says otherwise, and a model that is written into another
# folder brings its data along, or the message says why it cannot.
set -u
ok() { echo "ok $1"; }
bad() { echo "not ok $1: $2"; [ ! -e err ] || sed 's/^/    /' err; }
mkdir -p from/sub
printf '\0\0\200\77\0\0\0\100' >from/sub/w.bin
sum=$(sha1sum from/sub/w.bin | cut -c1-40)
model() { echo "g (float[2] x) => (float[2] y) <float[2] w = [location: \"$1\", checksum: \"$2\"]> { y = Add(x, w) }" >from/model.ir; }

model sub/w.bin "$sum"
if "$SBPCC" --print from/model.ir >got 2>err && [ ! -s err ]; then ok right-checksum; else bad right-checksum "it is refused"; fi
model sub/w.bin "$(echo "$sum" | tr a-f A-F)"
if "$SBPCC" --print from/model.ir >got 2>err; then ok capitals; else bad capitals "it is refused"; fi
wrong=da39a3ee5e6b4b0d3255bfef95601890afd80709
model sub/w.bin $wrong
"$SBPCC" --print from/model.ir >got 2>err
if [ $? -eq 1 ] && grep -q "sub/w.bin, external data of w, .*SHA-1 is $sum, not $wrong" err; then ok wrong-checksum; else bad wrong-checksum "it is not refused"; fi
if "$SBPCC" --max-checksum-bytes=4 --print from/model.ir >got 2>err && grep -q 'warning: .*max-checksum-bytes=4' err; then ok above-the-cap
else bad above-the-cap "no warning"; fi
if "$SBPCC" --max-checksum-bytes=0 --print from/model.ir >got 2>err && [ ! -s err ]; then ok switched-off; else bad switched-off "it is compared"; fi

model sub/w.bin "$sum"
mkdir to
if "$SBPCC" from/model.ir --write to/model.onnx 2>err && cmp -s from/sub/w.bin to/sub/w.bin && "$SBPCC" --print to/model.onnx >got 2>err
then ok written-elsewhere; else bad written-elsewhere "it does not load"; fi
if "$SBPCC" from/model.ir --write to/again.onnx 2>err; then ok data-is-there-already; else bad data-is-there-already "refused"; fi
if "$SBPCC" from/model.ir --write from/beside.onnx 2>err && "$SBPCC" --print from/beside.onnx >got 2>err && [ "$(ls from/sub)" = w.bin ]
then ok written-beside; else bad written-beside "it does not load"; fi
printf '12345678' >to/sub/w.bin
"$SBPCC" from/model.ir --write to/other.onnx 2>err
if [ $? -eq 4 ] && [ ! -e to/other.onnx ] && [ "$(cat to/sub/w.bin)" = 12345678 ] && grep -q 'another one' err; then ok other-data-stays
else bad other-data-stays "it is not refused"; fi
# The data lies in an .onnx file: writing the model there would destroy it.
head -c 4096 /dev/zero >from/data.onnx
echo 'g () => (float[1024] y) <float[1024] w = [location: "data.onnx"]> { y = Relu(w) }' >from/self.ir
for to in from/data.onnx ./from/../from/data.onnx to/data.onnx; do
	"$SBPCC" from/self.ir --write $to 2>err
	if [ $? -eq 4 ] && grep -q 'same file' err && cmp -s -n 4096 from/data.onnx /dev/zero && [ ! -e to/data.onnx ]; then ok "not-over-its-data $to"
	else bad "not-over-its-data $to" "it is written"; fi
done
echo 'g (float[2] x) => (float[2] y) { y = local.f(x) } <domain: "local"> f <a = float[2] [location: "sub/w.bin"]> (x) => (y) { c = Constant<value = @a>() y = Add(x, c) }' >from/default.ir
if mkdir in out && "$SBPCC" from/default.ir --stop-after=fold --dump-after=fold >got 2>err && grep -q '2\.0' got; then ok default-of-an-attribute; else bad default-of-an-attribute "not read"; fi
