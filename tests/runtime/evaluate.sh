# Evaluation: of averages if the model has them, between training steps without a trace in training, over epochs.
. "$HERE/common.bash"
"$BUILD/test-runtime-data" "$ROOT/examples/data/digits" shards >/dev/null || exit 1
cat >digits.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: momentum(lr: 0.5), batch: 64, epochs: 3, data: idx("idx", validation: 0.2), seed: 3, ema: 0.9)
digits (float[N, 1, 8, 8] image, int64[N] label) => (float loss, float[N, 10] scores)
<float[64, 10] w @init(normal(0, 0.1)), float[10] b @init(zeros)>
{
  scores = Add(MatMul(Flatten(image), w), b)
  loss = SoftmaxCrossEntropyLoss(scores, label)
}
IR
held() { "$@" 2>err | sed -n 's/.*held-out samples, loss //p'; }
tree one digits.ir
losses one/trainer >want
[ "$(wc -l <want)" = $((3 * (480 / 64))) ] && echo "ok epochs" || echo "not ok epochs: $(wc -l <want) steps"
one/trainer --help | grep -q '; 3 epochs of 64 samples' && echo "ok epochs-in-help" || echo "not ok epochs-in-help"

# Between steps: training does not change, and the loss is that of a program started from there.
one/trainer --every=1 --every-eval=5 --checkpoint=ck --every-checkpoint=5 --keep=9 --log=log.json >out 2>err
grep -o '^step *[0-9]* *loss [^ ]*' out | cmp -s - want && echo "ok training-is-the-same" || echo "not ok training-is-the-same: $(head -n 1 err)"
sed -n 's/.*held-out samples, loss //p' out | paste <(printf '%s\n' 05 10 15 20 21) - >got
for s in 05 10 15 20 21; do     # one may have been left out
	[ -e ck/step-000000$s ] && echo "$s	$(held one/trainer --resume=ck/step-000000$s --eval)"
done >told
[ "$(wc -l <told)" -gt 1 ] && [ -z "$(grep -vFxf got told)" ] && [ "$(wc -l <got)" = 5 ] && [ "$(grep -c '"event":"eval","step":[0-9]*,"samples":120,"loss":' log.json)" = 5 ] && echo "ok in-between" || echo "not ok in-between: $(paste got told | tr '\n' ';')"

# The average, and the weights themselves: as a program without averages evaluates them from the same file.
sed 's/, ema: 0.9//' digits.ir >plain.ir
"$SBPCC" plain.ir -o other >log 2>&1 && cp -a one plain && cp -r other/. plain && make -s -C plain STATIC= LOOPS= CFLAGS="$sanitized" >log 2>&1 || { echo "not ok plain: $(head -n 1 log)" && exit; }
state=ck/step-00000021/state.safetensors
raw=$(held plain/trainer --weights=$state --eval)
sed 's/"w":/"q":/; s/"b":/"r":/; s/"w.ema":/"w"    :/; s/"b.ema":/"b"    :/' $state >average.safetensors
average=$(held plain/trainer --weights=average.safetensors --eval)
[ -n "$average" ] && [ "$average" != "$raw" ] && [ "$(tail -n 1 told | cut -f 2)" = "$average" ] && echo "ok average" || echo "not ok average: $(tail -n 1 told), not $average ($raw): $(head -n 1 err)"
[ -n "$raw" ] && [ "$(held one/trainer --resume=ck --eval=raw)" = "$raw" ] && echo "ok raw" || echo "not ok raw: $(held one/trainer --resume=ck --eval=raw), not $raw"
[ "$(held one/trainer --eval)" = "$(held plain/trainer --eval)" ] && echo "ok average-at-the-start" || echo "not ok average-at-the-start: it is not that of the parameters"
[ "$(held one/trainer --weights=$state --eval)" = "$average" ] && echo "ok average-from-a-file" || echo "not ok average-from-a-file: $(held one/trainer --weights=$state --eval)"
tree two digits.ir --ranks=2
held two/trainer --resume=ck --eval | awk -v a="$average" '{ d = $1 - a; exit !(d < 1e-5 && d > -1e-5) } END { exit NR != 1 }' && echo "ok two-ranks" || echo "not ok two-ranks: $(head -n 1 err)"

# A program that only infers also takes the averages.
cat >use.c <<'C'
#include "model.h"
#include <stdio.h>
int main(int argc, char **argv)
{
	static float image[64 * 64], scores[64 * 10];
	for (int i = 0; i < 64 * 64; i++)
		image[i] = (float)(i % 17) / 17;
	sbp_config *config = sbp_config_new();
	sbp_config_weights(config, argv[argc - 1]);
	sbp_context *c = sbp_context_new(config);
	int code = sbp_infer(c, (const void *[]){ image }, (void *[]){ scores });
	printf("%d %s %.9g %.9g\n", code, sbp_error(c), scores[0], scores[639]);
	sbp_context_free(c);
	sbp_config_free(config);
	return code;
}
C
infer() { # tree, weights
	gcc -I"$1" $sanitized -o "$1/use" use.c $(find "$1" -name '*.o' ! -name trainer.o) -pthread -lm >log 2>&1 && "$1/use" "$2" 2>err
}
"$SBPCC" digits.ir --infer -o other2 >log 2>&1 && cp -a one only && cp -r other2/. only && make -s -C only STATIC= LOOPS= CFLAGS="$sanitized" >log 2>&1 || { echo "not ok only: $(head -n 1 log)" && exit; }
want=$(infer plain average.safetensors) got=$(infer only $state)
[ -n "$want" ] && [ "$want" = "$got" ] && [ "$want" = "$(infer one $state)" ] && echo "ok infer" || echo "not ok infer: $got, not $want: $(head -n 2 log)"

# From files to files: the last batch is not full; a sample alone gives the same result as among others.
mkdir some few && cp float/image.npy some && sed '1s/(600,/(070,/' float/image.npy | head -c $((128 + 256 * 70)) >few/image.npy
only/trainer --infer=some --weights=$state >log 2>&1 && grep -q '^600 samples$' log && [ "$(wc -c <some/scores.npy)" = $((128 + 4 * 10 * 600)) ] && head -c 128 some/scores.npy | grep -aq "'<f4'.*(600, 10,)" &&
	echo "ok files" || echo "not ok files: $(head -n 2 log)"
mv some/scores.npy whole.npy
one/trainer --infer=some --resume=ck >log 2>&1 && cmp -s some/scores.npy whole.npy && echo "ok files-of-a-checkpoint" || echo "not ok files-of-a-checkpoint: $(head -n 2 log)"
# On two ranks, with pins of a training step, in which scores are not a result: here they are one, and cannot be
# partial.
apart() { paste <(od -An -v -tf4 -w4 -j128 "$1") <(od -An -v -tf4 -w4 -j128 "$2") | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-4) bad++ } END { print NF == 2 ? bad + 0 : "all", "of", NR }'; }
for pin in P _ 'S(1)'; do
	printf '%s\n' '@mesh(m, cpu, [2])' "@pin(\"scores\", sbp: [$pin])" '@pin("w", sbp: [S(0)])' >scores.place
	rm -rf pinned some/scores.npy
	"$SBPCC" digits.ir --place=scores.place -o pinned >log 2>&1 && make -s -C pinned STATIC= CFLAGS=-O1 >log 2>&1 && pinned/trainer --infer=some --resume=ck >log 2>&1 && [ "$(apart some/scores.npy whole.npy)" = '0 of 6000' ] &&
		echo "ok results-on-two-ranks-$pin" || echo "not ok results-on-two-ranks-$pin: $(apart some/scores.npy whole.npy) are others: $(head -n 2 log)"
done
only/trainer --infer=few --weights=$state >log 2>&1 && cmp -s <(tail -c +129 few/scores.npy) <(head -c $((128 + 40 * 70)) whole.npy | tail -c +129) && echo "ok fewer-files" || echo "not ok fewer-files: $(head -n 2 log)"
# Outputs of any name are written into the folder.
cat >names.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
names (float[4, 1, 8, 8] image) => (float[4, 1, 8, 8] "../out", float[4, 1, 8, 8] "a/b") { "../out" = Neg(image) "a/b" = Abs(image) }
IR
mkdir named && cp few/image.npy named && "$SBPCC" names.ir --infer -o namer >log 2>&1 && make -s -C namer STATIC= >log 2>&1 && namer/trainer --infer=named >log 2>&1 &&
	[ "$(ls -A named | sort | tr '\n' ' ')" = '..\x2Fout.npy a\x2Fb.npy image.npy ' ] && [ ! -e out.npy ] && echo "ok names-of-outputs" || echo "not ok names-of-outputs: $(head -n 2 log) $(ls named)"
refused nothing-to-infer 2 'this program only infers' only/trainer
refused files-missing 20 'cannot read nowhere' only/trainer --infer=nowhere

sed 's/epochs: 3/epochs: 3, steps: 9/' digits.ir >both.ir
refused steps-and-epochs 1 'steps and epochs both set' "$SBPCC" both.ir -o no
sed 's/idx("idx", validation: 0.2)/points(classes: 10)/' digits.ir >endless.ir
refused epochs-without-end 1 'that has an end' "$SBPCC" endless.ir -o no
