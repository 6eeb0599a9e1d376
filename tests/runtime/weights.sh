# Start values from files: .npy and .safetensors beside the model, and weights.safetensors beside the program.
. "$HERE/common.bash"
cat >make.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
make (float[64, 10] x) => (float[64, 10] w) <int64 rows = {0}, int64 columns = {1}> { w = Sin(CumSum(CumSum(x, rows), columns)) }
IR
cat >ones.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
ones (float z) => (float[64, 10] x) <int64[2] shape = {64, 10}> { x = Expand(z, shape) }
IR
mkdir in out
{ printf '\x93NUMPY\x01\x00\x46\x00%-69s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (), }" && printf '\x0a\xd7\x23\x3c'; } >in/z.npy
"$SBPCC" ones.ir --eval --inputs=in --outputs=in >log 2>&1 && mv in/output_0.npy in/x.npy && rm in/z.npy &&
	"$SBPCC" make.ir --eval --inputs=in --outputs=out >log 2>&1 && mv out/output_0.npy w.npy || { cat log && exit 1; }
cat >model.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 0.5), batch: 4, steps: 3, data: points(classes: 3), seed: 7)
model (float[N, 64] x, int64[N] label) => (float loss)
<float[64, 10] "layer 1/w" @init(file("w.npy")), float[10] bias @init(zeros)>
{ loss = SoftmaxCrossEntropyLoss(Add(MatMul(x, "layer 1/w"), bias), label) }
IR
train() { # tree, options...: losses
	local tree=$1
	shift
	"$SBPCC" "$@" -o "$tree" >log && make -s -C "$tree" STATIC= LOOPS= CFLAGS='-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all' && "$tree/trainer" --every=1 | grep -o '^step *[0-9]* *loss [^ ]*' >"$tree.txt"
}
check npy train one model.ir
check weights-file-holds-it cmp <(tail -c 2560 one/weights.safetensors) <(tail -c 2560 w.npy)
grep -q '"layer\\\\x201/w"' one/weights.safetensors && echo "ok names-are-escaped" || echo "not ok names-are-escaped: $(head -c 100 one/weights.safetensors)"
cp one/weights.safetensors other.safetensors
sed 's|file("w.npy")|file("other.safetensors", key: "layer\\\\x201/w")|' model.ir >safe.ir
check safetensors train two safe.ir --ranks=2
# Two ranks add in a different order, so the last digits may differ.
near() { paste "$1" "$2" | awk 'NF != 8 { bad = 1 } { d = $4 - $8 } d * d > 1e-10 * $4 * $4 { bad = 1 } END { exit bad || NR != 3 }'; }
check same-losses near one.txt two.txt
check split train split model.ir --ranks=2 --train='batch: 4, data: points(classes: 3)'

check beside-the-program sh -c 'cd / && "$0"/one/trainer --steps=1' "$TMP"
mv one/weights.safetensors elsewhere.safetensors
refused missing 20 'weights.safetensors: No such file' one/trainer
check given sh -c 'one/trainer --every=1 --weights=elsewhere.safetensors | grep -o "^step *[0-9]* *loss [^ ]*" | cmp - one.txt'
for n in 0 7 8 60 500; do
	head -c $n elsewhere.safetensors >cut.safetensors
	refused "cut-at-$n" 20 'cut.safetensors' one/trainer --weights cut.safetensors
done
sed 's/layer/layes/' elsewhere.safetensors >renamed.safetensors
refused renamed 20 'has nothing that this program needs: layer' one/trainer --weights=renamed.safetensors
sed 's/\[64,10\]/[10,64]/' elsewhere.safetensors >turned.safetensors
refused another-shape 20 'needs F32\[64, 10\]' one/trainer --weights=turned.safetensors
sed 's/\[64,10\]/[99,99]/' elsewhere.safetensors >huge.safetensors
refused place-does-not-fit 20 'offsets that do not fit its shape' one/trainer --weights=huge.safetensors

sed 's|w.npy|../w.npy|' model.ir >out.ir
refused outside-of-the-folder 1 'leads out of the folder' "$SBPCC" out.ir -o no
sed 's|64, 10\]|32, 10]|; s|64\] x|32] x|' model.ir >small.ir
refused declared-otherwise 1 'the file holds float\[64, 10\]' "$SBPCC" small.ir -o no
sed 's|key: "layer|key: "lager|' safe.ir >key.ir
refused no-such-tensor 1 'there is no tensor' "$SBPCC" key.ir -o no
[ ! -e no ] && echo "ok nothing-written" || echo "not ok nothing-written: there is a folder"
