# Data sets in files: one set in every format gives the same losses, on one rank and on two; errors in a set are
# reported.
. "$HERE/common.bash"
"$BUILD/test-runtime-data" "$ROOT/examples/data/digits" || exit 1
cat >digits.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 0.5), batch: 64, steps: 30, data: idx("idx"), seed: 3)
digits (float[N, 1, 8, 8] image, int64[N] label) => (float loss)
<float[64, 10] w @init(zeros), float[10] b @init(zeros)>
{ loss = SoftmaxCrossEntropyLoss(Add(MatMul(Flatten(image), w), b), label) }
IR
tree one digits.ir
losses one/trainer >want
awk 'END { exit !(NR == 30 && $4 < 1) }' want && echo "ok idx" || echo "not ok idx: $(tail -n 1 want)"
tree two digits.ir --ranks=2
losses two/trainer | paste want - | awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 1e-5) exit 1 }' && echo "ok two-ranks" || echo "not ok two-ranks: losses differ"
same() { # name, data, tree, options: the same losses; only the tables are others than those of the tree
	local format=${2%%(*}
	"$SBPCC" digits.ir --train="data: $2" $4 -o other >log 2>&1 && cp -a "${3:-one}" "$1.tree" && cp other/model.c "$1.tree" && make -s -C "$1.tree" STATIC= LOOPS= CFLAGS="$sanitized" >log 2>&1 ||
		{ echo "not ok $1: $(head -n 1 log)" && return; }
	grep -q "RT_${format^^}," "$1.tree"/*.c && losses "$1.tree/trainer" | cmp -s - want && echo "ok $1" || echo "not ok $1: $(head -n 1 err)"
}
same npy 'npy("npy", scale: 0.003921569)'
same float 'npy("float")'
same named 'npy(image: "npy/image.npy", label: "float/label.npy", scale: 0.003921569)'
same cifar 'cifar("cifar.bin")'
head -c $((65 * 250)) cifar.bin >first.bin && tail -c $((65 * 350)) cifar.bin >rest.bin
same records-in-two-files 'cifar("first.bin", "rest.bin")'
refused nothing-held-out 20 'no samples are held out' cifar.tree/trainer --every-eval=10
grep -q '^step' log && echo "not ok nothing-held-out-at-the-start: $(head -n 2 log)" || echo "ok nothing-held-out-at-the-start"
same safe 'safetensors("digits.safetensors", scale: 0.003921569)'
mkdir away && mv idx away
refused missing-74 20 'cannot read idx' two/trainer
check elsewhere sh -c 'one/trainer --data=away/idx --every=1 | grep -o "^step *[0-9]* *loss [^ ]*" | cmp - want'

# A set that ends in the middle of a record, or differs from what the model declares.
cp -r npy bad && head -c 20000 npy/image.npy >bad/image.npy
refused short-75 20 'its shape U8\[600, 8, 8\] needs 38400' npy.tree/trainer --data=bad
head -c 1000 cifar.bin >bad.bin
refused record-75 20 'not a multiple of a record of 65' cifar.tree/trainer --data=bad.bin
head -c 650 cifar.bin >bad.bin
refused fewer-than-a-step 20 'has 10 samples to train on; one step takes 64' cifar.tree/trainer --data=bad.bin
head -c 30000 digits.safetensors >bad.safetensors
refused cut-75 20 'beyond the end' safe.tree/trainer --data=bad.safetensors
head -c 9 away/idx/image.idx >bad/image.idx && cp away/idx/label.idx bad
refused header-75 20 'not an IDX file' one/trainer --data=bad
cp npy/image.npy bad && head -c 1000 npy/label.npy >bad/label.npy
refused label-75 20 'label.npy' npy.tree/trainer --data=bad
mkdir swapped && cp npy/label.npy swapped/image.npy && cp npy/label.npy swapped
refused another-shape 20 'image needs samples of' npy.tree/trainer --data=swapped
refused folder-wanted 20 'not a folder' npy.tree/trainer --data=cifar.bin

# Values.
cp cifar.bin bad.bin && printf '\012' | dd of=bad.bin bs=1 seek=$((65 * 17)) conv=notrunc 2>/dev/null
refused label-76 20 'record 17: label is 10, which is not in 0 to 9' cifar.tree/trainer --data=bad.bin
cp float/label.npy bad && cp float/image.npy bad && printf '\0\0\300\177' | dd of=bad/image.npy bs=1 seek=$((128 + 256 * 5)) conv=notrunc 2>/dev/null
refused nan-77 23 'record 5: image is nan' float.tree/trainer --data=bad
losses two/trainer --data=away/idx >want2
cp want one.want && cp want2 want
same float-on-two 'npy("float")' two --ranks=2
refused nan-on-one-of-two-77 23 'record 5: image is nan' float-on-two.tree/trainer --data=bad --checkpoint=nan --every=1
[ "$(ls nan)" = "step-0000000$(grep -c ^step log)" ] && echo "ok nan-state-saved-77" || echo "not ok nan-state-saved-77: $(ls -a nan | tr '\n' ' ') after $(grep -c ^step log) steps"
check nan-state-loads-77 float-on-two.tree/trainer --data=float --resume=nan --changed-data
# A value that is not a number on one of two ranks, while the other waits for it.
sed 's/Flatten(image)/Flatten(Sqrt(image))/; s/idx("idx")/npy("float")/' digits.ir >root.ir
tree root root.ir --ranks=2
cp float/image.npy bad && printf '\0\0\200\277' | dd of=bad/image.npy bs=1 seek=$((128 + 256 * 5)) conv=notrunc 2>/dev/null
rm -rf nan
refused nan-on-one-of-two-is-named-77 23 'rank [01] step [0-9]* action a[0-9]* (Sqrt.*is the first value of this step that is not finite' root/trainer --data=bad --checkpoint=nan --every=1
[ "$(ls nan)" = "step-0000000$(grep -c ^step log)" ] && [ "$(grep -c 'the loss is' log)" = 2 ] && echo "ok nan-on-one-of-two-is-saved-77" || echo "not ok nan-on-one-of-two-is-saved-77: $(ls -a nan | tr '\n' ' '): $(cat log)"

# Text.
cat >text.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 2.0), batch: 16, steps: 30, data: bytes("text", validation: 0.1), seed: 3)
text (int64[N, 8] tokens, int64[N, 8] next) => (float loss)
<float[256, 256] w @init(zeros), int64[2] rows = {-1, 256}, int64[1] flat = {-1}>
{ loss = SoftmaxCrossEntropyLoss(Reshape(Gather(w, tokens), rows), Reshape(next, flat)) }
IR
tree bytes text.ir
losses bytes/trainer >want
awk 'END { exit !(NR == 30 && $4 < 4.5) }' want && echo "ok bytes" || echo "not ok bytes: $(tail -n 1 want)"
cp text.ir digits.ir
same tokens16 'tokens16("text.16", validation: 0.1)' bytes
same tokens32 'tokens32("text.32", validation: 0.1)' bytes
printf 'odd' >odd
refused odd-bytes-75 20 'not a multiple of 2' tokens16.tree/trainer --data=odd
refused too-short-75 20 'one sample needs 9' bytes/trainer --data=odd
tr '\000' '\377' <text.32 >bad.32 && mv bad.32 text.32
refused token-76 20 'which is not in 0 to 255' tokens32.tree/trainer
sed 's/int64\[N, 8\] next/&, int64[N, 8] more/; s/Gather(w, tokens)/Add(Gather(w, tokens), Gather(w, more))/' text.ir >uneven.ir
refused three-inputs 1 'the second one token later' "$SBPCC" uneven.ir -o no

# The thread that reads ahead, under the thread sanitizer.
FLAGS='-g -O1 -fsanitize=thread' tree tsan text.ir --ranks=2
check thread-sanitizer env TSAN_OPTIONS=exitcode=66 setarch -R tsan/trainer --checkpoint=ck --every-checkpoint=3
check address-sanitizer bytes/trainer --checkpoint=ck2 --every-checkpoint=3
check address-sanitizer-resume bytes/trainer --resume=ck --steps=40 --trace=trace.json --log=log.json --tensorboard=events --plot=plot.svg --every-eval=4 --profile
