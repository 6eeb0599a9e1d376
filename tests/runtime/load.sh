# --weights: frozen parameters are loaded and saved like all others; missing and unused tensors are named; names are
# mapped; folders, types, damage.
. "$HERE/common.bash"
. "$HERE/tensors.bash"
cat >model.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@freeze("body.*")
@train(loss: loss, optimizer: adam(lr: 0.1), batch: 8, steps: 3, data: points(classes: 4), ema: 0.5)
model (float[N, 16] x, int64[N] label) => (float loss, float[N, 4] scores)
<float[16, 8] "body.w" @init(normal(0, 1)), float[8] "body.b" @init(normal(0, 1)), float[8, 4] "head w" @init(normal(0, 1))>
{
  scores = MatMul(Relu(Add(MatMul(x, "body.w"), "body.b")), "head w")
  loss = SoftmaxCrossEntropyLoss(scores, label)
}
IR
tree one model.ir
state() { grep -ao '"[^"]*":{"dtype' "$1" | cut -d: -f1 | tr -d '"' | sort | tr '\n' ' '; }    # names in a safetensors file
first() { losses "$@" --steps=1 | grep -o 'loss.*'; }
[ "$(grep -c '"body.w"' one/params.c)" = 1 ] && grep -q 'FROZEN, "body.w"' one/params.c && echo "ok held-once" || echo "not ok held-once: $(grep body.w one/params.c)"

# Frozen and zero: all scores are 0, and the loss is ln 4.
safe zero.safetensors body.w:F32:16,8:z body.b:F32:8:z 'head w:F32:8,4:z'
[ "$(first one/trainer --weights=zero.safetensors)" = "loss 1.3862944" ] && grep -qx 'weights: 3 of 3 loaded from zero.safetensors' err && [ "$(wc -l <err)" = 1 ] && echo "ok frozen-is-loaded" || echo "not ok frozen-is-loaded: $(cat err)"
safe body.safetensors body.w:F32:16,8:z body.b:F32:8:z spare.x:F32:1:z
refused missing 20 'has no head.x20w; --weights-partial' one/trainer --weights=body.safetensors
grep -qx 'weights: 2 of 3 loaded from body.safetensors' log && grep -qx 'weights: missing: head.x20w' log && grep -qx 'weights: not used: spare.x' log && echo "ok names-both" || echo "not ok names-both: $(cat log)"
[ "$(first one/trainer --weights=body.safetensors --weights-partial)" = "loss 1.3862944" ] && echo "ok partial" || echo "not ok partial: $(cat err)"
safe other.safetensors spare.x:F32:1:z
refused nothing-matches 20 'has nothing that this program needs' one/trainer --weights=other.safetensors --weights-partial

# Names.
safe prefix.safetensors module.body.w:F32:16,8:z module.body.b:F32:8:z 'module.head w:F32:8,4:z' module.old.w:F32:3:z
refused advice 20 "weights-map='module.\*=\*' maps module.body.w" one/trainer --weights=prefix.safetensors
[ "$(first one/trainer --weights=prefix.safetensors --weights-map='module.*=*')" = "loss 1.3862944" ] && grep -q 'not used: module.old.w' err && echo "ok map" || echo "not ok map: $(cat err)"
[ "$(first one/trainer --weights=prefix.safetensors --weights-map=module.old.*= --weights-map='mod*.b*.*=b*.*,module.*=*')" = "" ] && grep -q 'missing: body.w, body.b' err && echo "ok stars-in-order" || echo "not ok stars-in-order: $(cat err)"
[ "$(first one/trainer --weights=prefix.safetensors --weights-map=module.old.*= --weights-map='*.body.*=body.*' --weights-map='module.*=*')" = "" ] && grep -q "missing: body.w, body.b" err && echo "ok first-star" || echo "not ok first-star: $(cat err)"
[ "$(first one/trainer --weights=prefix.safetensors --weights-map='module.old.*=' --weights-map='module.*=*')" = "loss 1.3862944" ] && ! grep -q 'not used' err && echo "ok left-out" || echo "not ok left-out: $(cat err)"
safe twice.safetensors a.body.w:F32:16,8:z b.body.w:F32:16,8:z body.b:F32:8:z 'head w:F32:8,4:z'
refused two-of-one-name 20 'both [ab].body.w and [ab].body.w map to the same name' one/trainer --weights=twice.safetensors --weights-map='a.*=*,b.*=*'
refused map-without-equals 2 'rules are FROM=TO' one/trainer --weights=zero.safetensors --weights-map=a.b
refused map-more-stars 2 'more \* than FROM' one/trainer --weights=zero.safetensors --weights-map='a.*=*.*'
refused map-alone 2 'needs --weights' one/trainer --weights-map='a=b'

# Shapes.
safe turned.safetensors body.w:F32:8,16:z body.b:F32:8:z 'head w:F32:8,4:z'
refused transposed 20 'body.w is F32\[8, 16\]; this program needs F32\[16, 8\], its transpose' one/trainer --weights=turned.safetensors
safe shape.safetensors body.w:F32:16,8:z body.b:F32:9:z 'head w:F32:8,4:z'
refused another-shape 20 'body.b is F32\[9\]; this program needs F32\[8\]' one/trainer --weights=shape.safetensors
safe type.safetensors body.w:F32:16,8:z body.b:I32:8:z 'head w:F32:8,4:z'
refused another-type 20 'body.b is I32\[8\]; this program needs F32\[8\]' one/trainer --weights=type.safetensors

# Other floating types: 1, -2, the smallest and the largest, infinity; for double a number between two floats.
kept() { # file: what body.b becomes
	rm -rf out && one/trainer --weights="$1" --steps=1 --dump=out >log 2>&1 && tail -c 32 out/kept/body.b.npy | od -An -v -tx4 | tr -d '\n' | sed 's/^ //'
}
printf '\x80\x3f\x00\xc0\x01\x00\x7f\x7f\x80\xff\x00\x00\x00\x80\xc0\x3f' >bf16
safe bf16.safetensors body.w:BF16:16,8:z body.b:BF16:8:bf16 'head w:F32:8,4:z'
[ "$(kept bf16.safetensors)" = "3f800000 c0000000 00010000 7f7f0000 ff800000 00000000 80000000 3fc00000" ] && echo "ok bf16" || echo "not ok bf16: $(kept bf16.safetensors)"
printf '\x00\x3c\x00\xc0\x01\x00\xff\x7b\x00\xfc\x00\x00\x00\x80\xff\x83' >f16
safe f16.safetensors body.w:F16:16,8:z body.b:F16:8:f16 'head w:F16:8,4:z'
[ "$(kept f16.safetensors)" = "3f800000 c0000000 33800000 477fe000 ff800000 00000000 80000000 b87fc000" ] && echo "ok f16" || echo "not ok f16: $(kept f16.safetensors)"
{ printf '\x00\x00\x00\x00\x00\x00\xf0\x3f\x00\x00\x00\x00\x00\x00\x00\xc0\x01\x00\x00\x10\x00\x00\xf0\x3f\x00\x00\x00\x10\x00\x00\xf0\x3f' && head -c 32 /dev/zero; } >f64
safe f64.safetensors body.w:F64:16,8:z body.b:F64:8:f64 'head w:F64:8,4:z'
[ "$(kept f64.safetensors)" = "3f800000 c0000000 3f800001 3f800000 00000000 00000000 00000000 00000000" ] && echo "ok f64" || echo "not ok f64: $(kept f64.safetensors)"

# Folders.
mkdir hf shards bad empty
cp zero.safetensors hf/model.safetensors
[ "$(first one/trainer --weights=hf)" = "loss 1.3862944" ] && echo "ok folder" || echo "not ok folder: $(cat err)"
safe shards/model-00001-of-00002.safetensors body.w:F32:16,8:z body.b:F32:8:z
safe shards/model-00002-of-00002.safetensors 'head w:F32:8,4:z'
index() { # folder, file of body.w
	printf '{"metadata": {"total_size": 672}, "weight_map": {"body.w": "%s", "body.b": "model-00001-of-00002.safetensors", "head w": "model-00002-of-00002.safetensors"}}' "$2" >"$1/model.safetensors.index.json"
}
index shards model-00001-of-00002.safetensors
[ "$(first one/trainer --weights=shards)" = "loss 1.3862944" ] && grep -q '3 of 3' err && echo "ok shards" || echo "not ok shards: $(cat err)"
index shards model-00002-of-00002.safetensors
refused index-lies 20 'says that body.w is in model-00002-of-00002.safetensors, which does not have it' one/trainer --weights=shards
for f in ../zero.safetensors "$TMP/zero.safetensors" .. ''; do
	index shards "$f"
	refused "leads-out-$f" 20 'outside of the folder' one/trainer --weights=shards
done
index shards nowhere.safetensors
refused no-such-shard 20 'nowhere.safetensors: No such file' one/trainer --weights=shards
index shards model-00001-of-00002.safetensors
for n in 0 1 40 90 150; do
	head -c $n shards/model.safetensors.index.json >bad/model.safetensors.index.json
	cp shards/*.safetensors bad
	refused "index-cut-at-$n" 20 'index.json' one/trainer --weights=bad
done
refused empty-folder 20 'neither model.safetensors' one/trainer --weights=empty
touch empty/pytorch_model.bin
refused pickle 20 'save it as safetensors' one/trainer --weights=empty
refused twice-in-a-file 20 'it has body.w twice' sh -c "sed 's/body.b/body.w/' zero.safetensors >same.safetensors; one/trainer --weights=same.safetensors"

sed 's/body\.b/\\u001b/; s/\[8\]/[9]/' zero.safetensors >escape.safetensors
refused names-are-shown-escaped 20 ': .x1B has offsets' one/trainer --weights=escape.safetensors

# Checkpoints hold frozen parameters once, without state; their bits do not change, and trained parameters do.
printf '\x00\x00\x80\x3e%.0s' {1..128} >quarters
safe quarters.safetensors body.w:F32:16,8:quarters body.b:F32:8:z
one/trainer --checkpoint=ck --every-checkpoint=1 --weights=quarters.safetensors --weights-partial >log 2>&1 || echo "not ok trains: $(cat log)"
names='body.b body.w head\\x20w head\\x20w.ema head\\x20w.m head\\x20w.v '
[ "$(state ck/step-00000003/state.safetensors)" = "$names" ] && echo "ok saved-once" || echo "not ok saved-once: $(state ck/step-00000003/state.safetensors)"
one/trainer --resume=ck/step-00000001 --export=first >log 2>&1 && one/trainer --resume=ck/step-00000003 --export=last >log 2>&1 && ! grep -q '^step' log || echo "not ok export: $(cat log)"
[ "$(bytes first body.w)" = "$(bytes last body.w)" ] && [ "$(bytes last body.w)" = "$(cksum <quarters)" ] && [ "$(bytes first 'head w')" != "$(bytes last 'head w')" ] && echo "ok frozen-stays" || echo "not ok frozen-stays: $(cat log)"
held() { "$@" 2>err | sed -n 's/.*held-out samples, loss //p'; }

# Exports: the names of the model, the averages, no state; a program reads them again.
[ "$(state last/model.safetensors)" = 'body.b body.w head w ' ] && echo "ok exported-names" || echo "not ok exported-names: $(state last/model.safetensors)"
one/trainer --checkpoint=ck2 --export=trained >log 2>&1 && want=$(held one/trainer --resume=ck2 --eval) && [ -n "$want" ] && [ "$(held one/trainer --weights=trained --eval)" = "$want" ] &&
	[ "$want" != "$(held one/trainer --resume=ck2 --eval=raw)" ] && echo "ok exported-averages" || echo "not ok exported-averages: $want $(cat log)"
[ "$(held one/trainer --weights=ck2/step-00000003 --eval)" = "$want" ] && [ "$(held one/trainer --weights=ck2 --eval)" = "$want" ] && echo "ok checkpoint-as-weights" || echo "not ok checkpoint-as-weights: $(cat err)"
refused export-nowhere 21 'cannot create nowhere/else' one/trainer --steps=1 --export=nowhere/else
tree two model.ir --ranks=2
two/trainer --resume=ck2 --export=trained2 >log 2>&1 && cmp trained/model.safetensors trained2/model.safetensors >>log && echo "ok two-ranks-export" || echo "not ok two-ranks-export: $(head -n 3 log)"
[ "$(held two/trainer --weights=trained --eval)" = "$want" ] && [ "$(grep -c 'weights: 3 of 3' err)" = 1 ] && echo "ok two-ranks-load" || echo "not ok two-ranks-load: $(cat err)"
refused two-ranks-say-it-once 20 'has no' two/trainer --weights=body.safetensors
[ "$(grep -c 'has no head' log)" = 1 ] && echo "ok said-once" || echo "not ok said-once: $(cat log)"

# Parameters that are not trained are reported.
one/trainer --eval >log 2>&1 && grep -q 'nothing was trained or loaded: 3 parameters are random' log && echo "ok random" || echo "not ok random: $(cat log)"
one/trainer --resume=ck --eval >log 2>&1 && ! grep -q random log && echo "ok not-random" || echo "not ok not-random: $(cat log)"
refused resume-and-weights 2 'give one of them' one/trainer --resume=ck --weights=zero.safetensors
cp -r ck/step-00000003 old && sed -i 's/"body.w"/"bodz.w"/' old/state.safetensors
refused old-checkpoint 21 'has no body.w, which is frozen' one/trainer --resume=old
refused unknown-option 2 'unknown option --wieghts; did you mean --weights?' one/trainer --wieghts=zero.safetensors
refused unknown-argument 2 'unknown argument zero.safetensors; --help' one/trainer zero.safetensors
