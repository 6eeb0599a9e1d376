#!/bin/sh
# What the reader reports about training: which files were folded, what is put back into training mode, what is a
# parameter.
set -u
models=$ROOT/tests/exported
train="loss: cross_entropy_loss"

run() { # options after a model
	"$SBPCC" "$models/$1/model.onnx" "$2" --stop-after="$3" --dump-after="$3" ${4:+"$4"} >dump 2>messages
}
check() { # what, pattern, file, expected count
	n=$(grep -c -e "$2" "$3")
	if [ "$n" -eq "$4" ]; then echo "ok $1"; else echo "not ok $1: $n, expected $4"; fi
}

# Optimised files give a warning; files made for training do not.  mlp.folded lost nothing.
for m in encoder.folded fresh.folded fresh.eval gpt2-sdpa.folded resnet.folded; do
	run $m --seed=1 params
	check "$m-is-folded" 'warning: this file was optimised for inference' messages 1
done
for m in mlp.folded mlp.dynamo mlp.script fresh.dynamo fresh.script gpt2-sdpa.dynamo gpt2-manual.script13 llama.script-dyn rotations.script; do
	run $m --seed=1 params
	check "$m-is-not-folded" 'optimised' messages 0
done

# Batch norm, unless an annotation freezes it, and only if a training step is asked for.
run resnet.dynamo "--train=$train" mode
check batch-norm-back 'warning: 8 batch norms are put back into training mode' messages 1
check batch-norm-trains 'training_mode = 1' dump 8
run resnet.dynamo --seed=1 mode
check batch-norm-only-for-training 'training_mode = 1' dump 0
echo '@batchnorm("*legit_functional*", frozen: true)' >frozen.ir
run resnet.dynamo "--train=$train" mode --place=frozen.ir
check batch-norm-frozen 'training_mode = 1' dump 0
check batch-norm-frozen-quietly . messages 0

# Dropout inside attention, which exporters leave switched off.
run dropout.dynamo "--train=$train" mode
check dropout-back 'warning: 1 dropout is put back into training mode' messages 1

# Parameters: by the exporter's marks, otherwise by use; annotations take precedence.
params() { sed -n '/^@param(/,/)$/p' dump | tr ',' '\n' | grep -c '"'; }
count() { if [ "$(params)" -eq "$2" ]; then echo "ok $1"; else echo "not ok $1: $(params) parameters, expected $2"; fi; }
run llama-native.dynamo --seed=1 params
count marked-parameters 14
run resnet.script --seed=1 params
count running-statistics-are-state 26
run losses.script --seed=1 params
count class-weights-are-state 4
run rotations.script --seed=1 params
count angles-are-state 0
echo '@state("h.*.ln?.weight") @freeze("wte.*")' >state.ir
run gpt2-sdpa.script --seed=1 params --place=state.ir
count state-and-freeze 123
