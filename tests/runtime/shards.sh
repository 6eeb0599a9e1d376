# One set in any number of files, in any format, gives the samples of one file; what evaluation takes; checksums and
# messages name files.
. "$HERE/common.bash"
"$BUILD/test-runtime-data" "$ROOT/examples/data/digits" shards >/dev/null || exit 1
cat >digits.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 0.5), batch: 64, steps: 20, data: npy("npy", scale: 0.003921569, validation: 0.1), seed: 3)
digits (float[N, 1, 8, 8] image, int64[N] label) => (float loss, float[N, 10] scores)
<float[64, 10] w @init(zeros), float[10] b @init(zeros)>
{
  scores = Add(MatMul(Flatten(image), w), b)
  loss = SoftmaxCrossEntropyLoss(scores, label)
}
IR
model=digits.ir flags=$sanitized
tree one digits.ir
losses one/trainer >want
[ "$(wc -l <want)" = 20 ] || echo "not ok whole: $(head -n 2 err)"
as() { # name, data: a tree that differs in its tables only
	rm -rf other "$1"
	"$SBPCC" $model --train="data: $2" -o other >log 2>&1 && cp -a one "$1" && cp other/model.c "$1" && make -s -C "$1" STATIC= LOOPS= CFLAGS="$flags" >log 2>&1 ||
		{ echo "not ok $1: $(head -n 1 log)" && return 1; }
}
same() { as "$1" "$2" && { losses "$1/trainer" | cmp -s - want && echo "ok $1" || echo "not ok $1: $(head -n 1 err)"; }; }
rest='scale: 0.003921569, validation: 0.1'
same npy-in-pieces "npy(\"parts\", $rest)"
same npy-patterns "npy(image: \"parts/image-*.npy\", label: \"p?rts/label-[ab].npy\", $rest)"
same npy-folders "npy(\"half-0\", \"half-1\", $rest)"
check npy-pattern-of-folders sh -c 'npy-folders/trainer --data="half-*" --every=1 | grep -o "^step *[0-9]* *loss [^ ]*" | cmp - want'
same safetensors-in-pieces "safetensors(\"safe/*.safetensors\", $rest)"
mkdir shards && split -b $((65 * 7)) -a 3 cifar.bin shards/part- # 86 files
same cifar-pattern 'cifar("shards/part-*", validation: 0.1)'

# Tar: plain headers, long names of POSIX and of GNU, members that are not inputs.
long=$(printf 'a%.0s' $(seq 120))
mkdir tars && for k in '0 ustar [01]' '1 pax [23]' '2 gnu [45]'; do
	set -- $k
	rm -rf t && mkdir -p t/$long && cp members/$3* t/$long && [ $1 = 0 ] && mv t/$long t/short
	[ $1 != 2 ] || echo note >t/$long/555.json
	(cd t && tar -cf ../tars/$1.tar --format=$2 --sort=name *)
done
same tar 'tar("tars/*.tar", scale: 0.003921569, validation: 0.1)'
tar/trainer --steps=1 2>&1 | grep -q '2.tar: 1 members are skipped.*555.json' && echo "ok tar-notes" || echo "not ok tar-notes"
cp tars/1.tar bad.tar && printf 'x' | dd of=bad.tar bs=1 seek=1100 conv=notrunc 2>/dev/null
refused tar-header 20 'bad.tar, byte [0-9]*: this is not a tar header' tar/trainer --data=bad.tar
head -c 5000 tars/0.tar >bad.tar
refused tar-cut 20 'bad.tar' tar/trainer --data=bad.tar
rm -f members/300.label.bin && (cd members && tar -cf ../bad.tar --sort=name *)
refused tar-incomplete 20 'bad.tar: sample 300 has no label' tar/trainer --data=bad.tar
printf 'abc' >members/300.label.bin && (cd members && tar -cf ../bad.tar --sort=name *)
refused tar-other-size 20 'bad.tar: 300.label.bin has 3 bytes; label needs 1 elements' tar/trainer --data=bad.tar

# Files in the order of bytes; a sample may lie across their ends.  Evaluation takes the last tenth of all.
cat >text.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: sgd(lr: 2.0), batch: 16, steps: 20, data: bytes("text", validation: 0.1), seed: 3)
text (int64[N, 8] tokens, int64[N, 8] next) => (float loss)
<float[256, 256] w @init(zeros), int64[2] rows = {-1, 256}, int64[1] flat = {-1}>
{ loss = SoftmaxCrossEntropyLoss(Reshape(Gather(w, tokens), rows), Reshape(next, flat)) }
IR
held() { "$@" 2>err | sed -n 's/.*samples.*, loss //p'; }
cp want want.digits && cp -a one one.digits
flags='-O1 -g' model=text.ir
rm -rf one && FLAGS=$flags tree one text.ir
losses one/trainer >want
mkdir cut && head -c 7003 text >cut/t-10 && tail -c +7004 text | head -c 1 >cut/t-11 && tail -c +7005 text >cut/t-9
same bytes-in-pieces 'bytes("cut/t-*", validation: 0.1)'
[ -n "$(held one/trainer --eval)" ] && [ "$(held one/trainer --eval)" = "$(held bytes-in-pieces/trainer --eval)" ] && echo "ok held-out-of-pieces" || echo "not ok held-out-of-pieces"
same bytes-listed 'bytes("cut/t-1?", "cut/t-9", validation: 0.1)'
refused nothing-matches 20 'cannot read none/t-\*: no file matches' one/trainer --data='none/t-*'
printf '\377' >cut/t-8 && head -c 300 text.16 >odd.0 && head -c 301 text.16 >odd.1
as tokens 'tokens16("odd.?", validation: 0.1)' && refused odd-piece 20 'odd.1 has 301 bytes, which is not a multiple of 2' tokens/trainer
# The checksum covers all files, and a changed file is named.
rm cut/t-8 && check saved bytes-in-pieces/trainer --checkpoint=ck --steps=5
cp cut/t-11 keep && printf 'Z' >cut/t-11
refused changed-78 20 'not the one that the checkpoint was trained on: cut/t-11 differs from file 2 of the 3' bytes-in-pieces/trainer --checkpoint=ck --resume
cp keep cut/t-11 && printf 'more' >cut/t-95
refused added-78 20 'it has 4 files now, 3 at that time' bytes-in-pieces/trainer --checkpoint=ck --resume
rm cut/t-95
bytes-in-pieces/trainer --steps=30000 --checkpoint=live --every-checkpoint=200 >running 2>&1 &
until [ -s running ]; do sleep 0.05; done
touch cut/t-10 && printf 'Z' | dd of=cut/t-9 bs=1 seek=999 conv=notrunc 2>/dev/null
wait $!
status=$?
[ $status = 20 ] && grep -q 'cut/t-9 was changed while it was read' running && echo "ok changed-meanwhile" || echo "not ok changed-meanwhile: exit status $status: $(tail -n 1 running)"
tail -c +7005 text >cut/t-9
check unchanged bytes-in-pieces/trainer --checkpoint=ck --resume --steps=7
rm cut/t-11
refused removed-78 20 'cut/t-9 differs from file 2 of the 3' bytes-in-pieces/trainer --checkpoint=ck --resume
check changed-and-wanted bytes-in-pieces/trainer --checkpoint=ck --resume --steps=8 --changed-data

# A separate set for evaluation: all of it, whatever the batch, also without the training samples.
rm -rf one && cp -a one.digits one && cp want.digits want
flags=$sanitized model=digits.ir
as apart 'npy("npy", scale: 0.003921569, validation: "others")'
"$SBPCC" digits.ir --train='batch: 7, data: npy("npy", scale: 0.003921569, validation: "others")' -o seven >log 2>&1 && make -s -C seven STATIC= CFLAGS=-O1 >log 2>&1 || echo "not ok seven: $(head -n 1 log)"
apart/trainer --checkpoint=set --steps=15 >log 2>&1
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a > 0 && d < 2e-6 && d > -2e-6) }'; }
mv npy away
a=$(held apart/trainer --resume=set --eval) b=$(held seven/trainer --resume=set --eval)
near "$a" "$b" && grep -q . <(apart/trainer --resume=set --eval | grep '^70 held-out samples, loss') && echo "ok set-apart" || echo "not ok set-apart: $a and $b: $(head -n 2 err)"
mv away npy
[ "$(held one/trainer --resume=set --eval --data=others)" = "$a" ] && one/trainer --resume=set --eval --data=others | grep -q '^70 samples of others, loss' && echo "ok all-of-a-folder" || echo "not ok all-of-a-folder: $(head -n 2 err)"
mkdir few && for f in image label; do sed '1s/(70,/(05,/' others/$f.npy | head -c $((128 + 5 * ($([ $f = image ] && echo 64 || echo 8)))) >few/$f.npy; done
near "$(held one/trainer --resume=set --eval --data=few)" "$(held seven/trainer --resume=set --eval --data=few)" && echo "ok fewer-than-a-batch" || echo "not ok fewer-than-a-batch: $(head -n 1 err)"
one/trainer --checkpoint=own --steps=3 >log 2>&1 && one/trainer --resume=own --eval --data=npy >log 2>&1 && grep -q 'those that the checkpoint was trained on' log && grep -q '^600 samples of npy' log &&
	echo "ok trained-on-note" || echo "not ok trained-on-note: $(head -n 2 log)"
[ "$(held one/trainer --resume=own --eval --data=npy --eval=held-out)" = "$(held one/trainer --resume=own --eval)" ] && echo "ok held-out-elsewhere" || echo "not ok held-out-elsewhere: $(head -n 1 err)"
mkdir in pieces && cp npy/image.npy in && cp parts/image-* pieces && one/trainer --resume=own --infer=in >log 2>&1 && one/trainer --resume=own --infer=pieces >log 2>&1 && grep -q '^600 samples' log &&
	cmp -s in/scores.npy pieces/scores.npy && echo "ok infer-of-pieces" || echo "not ok infer-of-pieces: $(head -n 2 log)"
refused eval-word 2 'takes raw, held-out' one/trainer --eval=row
one/trainer --steps=1 --log=log.json | grep -q '^540 samples, 8 steps of 64 to an epoch; the remaining 28 of each' && grep -q '"samples":540,"held_out":60,"dropped_per_epoch":28' log.json && echo "ok dropped" || echo "not ok dropped: $(head -n 1 log.json)"
refused fewer-than-a-step 20 'few/image.npy: the data set has 5 samples to train on; one step takes 64' apart/trainer --data=few

# Errors in one of several files.
cp parts/image-9.npy bad.npy && cp others/label.npy parts/image-99.npy
refused other-shape 20 'parts/image-99.npy is I64\[70\]; image needs samples of' npy-in-pieces/trainer
cp float/image.npy parts/image-99.npy
refused other-type 20 'parts/image-99.npy holds F32; parts/image-9.npy before it holds U8' npy-in-pieces/trainer
rm parts/image-99.npy && cp others/label.npy parts/label-c.npy
refused other-count 20 '670 samples of label, 600 of image' npy-in-pieces/trainer
rm parts/label-c.npy && cp npy/image.npy parts
refused twofold 20 'both parts/image.npy and parts/image-10.npy exist' npy-in-pieces/trainer
rm parts/image.npy parts/label-*.npy
refused missing 20 'cannot read parts/label.npy' npy-in-pieces/trainer
refused other-count-in-a-folder 20 'half-1/label.npy: 933 samples' sh -c 'cp npy/label.npy half-1 && npy-folders/trainer'
sed 's/npy("npy".*0.1)/points(classes: 10)/' digits.ir >points.ir && "$SBPCC" points.ir -o other2 >log 2>&1 && cp other2/model.c one && make -s -C one STATIC= LOOPS= CFLAGS="$sanitized" >log 2>&1
refused made-up 2 'generates its samples' one/trainer --data=npy
