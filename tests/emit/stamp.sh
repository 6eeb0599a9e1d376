# A tree records the sbpcc and the command that wrote it, holds the model, and has a licence; plan.ir writes the whole
# tree again.
cp "$ROOT/examples/mlp.ir" .
echo '@pin("w1", sbp: [S(1)])' >'a b.place'
"$SBPCC" mlp.ir --ranks 2 --train 'steps: 5' --place='a b.place' -o tree >log 2>&1 || { echo "not ok compiles: $(head -n 1 log)" && exit; }
version=$("$SBPCC" --version)
[ "$version" = "sbpcc $(sed -n "s/^[[:space:]]*version: '\(.*\)',/\1/p" "$ROOT/meson.build")" ] && echo "ok version" || echo "not ok version: $version"
has() { grep -qF -- "$2" "tree/$3" && echo "ok $1" || echo "not ok $1: not in $3: $2"; }
has readme-version "Written by $version, by" README.md
has readme-command "    sbpcc mlp.ir --ranks=2 '--train=steps: 5' '--place=a b.place'" README.md
has banner "Written by $version for model mlp on 2 ranks" trainer.c
has licence 'under the Apache License 2.0 (`LICENSE`)' README.md
cmp -s "$ROOT/LICENSE" tree/LICENSE && echo "ok licence-text" || echo "not ok licence-text: differs"
cmp -s mlp.ir tree/model.ir && cmp -s 'a b.place' tree/model.place && echo "ok copies" || echo "not ok copies: differ"
has checksum "$(sha1sum mlp.ir | cut -d' ' -f1)" README.md
grep -rF "$PWD" tree >log && echo "not ok no-paths: $(head -n 1 log)" || echo "ok no-paths"
# From its plan alone, with and without the model at its old place.
"$SBPCC" tree/plan.ir -o again >/dev/null 2>&1
rm mlp.ir 'a b.place'
"$SBPCC" tree/plan.ir -o alone >/dev/null 2>&1
diff -r tree again >log && diff -r tree alone >log && echo "ok from-the-plan" || echo "not ok from-the-plan: $(head -n 3 log)"
"$SBPCC" "$ROOT/examples/cnn.ir" --ranks=2 -o cnn >/dev/null 2>&1 && "$SBPCC" cnn/plan.ir -o cnn2 >/dev/null 2>&1
diff -r cnn cnn2 >log && echo "ok from-the-plan-without-a-side-file" || echo "not ok from-the-plan-without-a-side-file: $(head -n 3 log)"
# Another model at the old place is not mistaken for it.
mkdir moved && cp tree/plan.ir moved && echo '# other' >mlp.ir
"$SBPCC" moved/plan.ir -o third >/dev/null 2>&1
[ ! -e third/model.ir ] && grep -q 'The model, `mlp.ir`, is not copied here' third/README.md && echo "ok another-model" || echo "not ok another-model: $(grep -n model third/README.md | head -n 2)"
# Options given beside the plan are recorded; a command of any bytes stays one line.
"$SBPCC" tree/plan.ir --seed=4 -o third >/dev/null 2>&1
grep -q "'--place=a b.place' --seed=4\$" third/README.md && echo "ok more-options" || echo "not ok more-options: $(grep 'sbpcc mlp' third/README.md)"
name=$(printf 'x\n# <b>`y`')
cp "$ROOT/examples/mlp.ir" "$name.ir" && "$SBPCC" "$name.ir" -o odd >/dev/null 2>&1
grep -qF "    sbpcc 'x\\x0A# \\x3Cb\\x3E\\x60y\\x60.ir'" odd/README.md && echo "ok odd-names" || echo "not ok odd-names: $(grep -n 'sbpcc ' odd/README.md | head -n 2)"
# An .onnx file, too.
"$SBPCC" --write=net.onnx "$ROOT/examples/mlp.ir" && "$SBPCC" net.onnx -o net >/dev/null 2>&1
cmp -s net.onnx net/model.onnx && echo "ok onnx" || echo "not ok onnx: no copy"
