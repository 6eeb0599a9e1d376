# Steps whose gradients overflow are skipped, and the loss scale falls and rises, as with PyTorch's GradScaler: the
# same scale after each of 20 steps in the reference evaluator and at the end of the program, and in both the losses
# to one unit of float16.
. "$HERE/common.bash"
agree() { # what, file of "loss scale"
	paste "$HERE/scaler/scales.txt" "$2" | awk '{ d = $3 / $5 - 1; if ((NF > 5 && $4 != $6) || d > 0.001 || d < -0.001) { print " step " $2 ": " $5 ", scale " $6 ", not " $3 ", " $4; bad = 1 } n++
		left += $3 == before; before = $3; asked += NF > 5 } END { exit bad || n != 20 || left < 3 || !asked }' >why && echo "ok $1" || { echo "not ok $1: not as PyTorch" && head -n 3 why; }
}
"$PLAIN/test-equiv-evaluator" "$HERE/scaler/model.ir" 20 'steps: 20' train.scale 2>log | paste - - | awk '{ print $4, $6 }' >got
agree evaluator got
tree "$HERE/scaler/model.ir" && tree/trainer --log=steps.log --checkpoint=state >log 2>&1 || { echo "not ok program: $(head -n 1 log)" && exit; }
f=state/step-00000020/state.safetensors     # the scale is one number of 4 bytes, at the offset that the head of the file says
head=$(od -An -N8 -tu8 $f) && at=$(head -c $((head + 8)) $f | grep -ao '"train.scale":{[^}]*}' | sed 's/.*"data_offsets":\[\([0-9]*\),.*/\1/')
sed -n 's/.*"loss":\([^,}]*\).*/\1/p' steps.log | sed "\$s/\$/ $(od -An -j $((8 + head + at)) -N4 -tfF $f | tr -d ' ')/" >got
agree program got
