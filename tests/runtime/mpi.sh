# Ranks started by mpirun: the bits of local ranks, checkpoints of either for the other, and refusals.
# The numbers are those of the list of bad inputs.
. "$HERE/common.bash"
"$ROOT/tests/setup" openmpi-bin libopenmpi-dev >log 2>&1 || { echo "skip mpi: $(head -n 1 log)" && exit 0; }
FLAGS=-O1
run() { # ranks, trainer, options...
	local n=$1
	shift
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1 mpirun -n "$n" "$@"
}
cat >net.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: adamw(lr: 0.01), batch: 15, steps: 20, data: points(classes: 10, noise: 0.5), clip: norm(1.0))
net (float[N, 50] x, int64[N] label) => (float loss)
<float[50, 33] w1 @init(normal(0, 0.2)), float[33] b1 @init(zeros), float[33, 10] w2 @init(normal(0, 0.2))>
{ loss = SoftmaxCrossEntropyLoss(MatMul(Relu(Add(MatMul(x, w1), b1)), w2), label) }
IR
pinned() { # ranks, pins: the model with a mesh and pins
	sed "s/^@train/@mesh(m, cpu, [$1])\n$2\n&/" net.ir
}
pinned 4 '@pin("w1", sbp: [S(1)])\n@pin("w2", sbp: [S(0)])' >tensor.ir
pinned 3 '@pin("x", "label", sbp: [S(0)])\n@pin("w*", "b1", sbp: [B])\n@pin("*.m", "*.v", sbp: [S(0)])' >zero.ir
pinned 2 '@pin("x", "label", sbp: [S(0)])\n@pin("w*", "b1", sbp: [B])' >data.ir
both() { # name, ranks, options of sbpcc...: NAME/trainer with processes of its own, NAME.mpi/trainer for mpirun
	local name=$1 n=$2
	shift 2
	tree "$name" "$@"
	"$SBPCC" "$@" -o "$name.mpi" >log 2>&1 && make -s -C "$name.mpi" TRANSPORT=mpi CFLAGS="$FLAGS" >log 2>&1 && [ ! -s log ] ||
		{ echo "not ok $name: $(head -n 3 log)" && exit 1; }
	"$name/trainer" --checkpoint="$name.a" --every-checkpoint=7 >log 2>&1 && run "$n" "$name.mpi/trainer" --checkpoint="$name.b" --every-checkpoint=7 >log2 2>&1
	cmp -s "$name.a/step-00000020/state.safetensors" "$name.b/step-00000020/state.safetensors" && echo "ok same-bits-$name" || echo "not ok same-bits-$name: $(tail -n 1 log) $(head -n 2 log2)"
}
# If computing is slow, transfers have a start and a finish, and a thread drives the messages in between.
printf 'flops 1e7\nbytes 1e7\naxis 0 1e-6 1e8\n' >slow
both data 2 data.ir --machine=slow
both tensor 4 tensor.ir --machine=slow
both zero 3 zero.ir --machine=slow
grep -q 'DO(START' data/blocks.c && grep -q 'DO(START' zero/blocks.c && echo "ok overlapped" || echo "not ok overlapped: no transfer is"
printf '%s\n' '@mesh(m, cpu, [3])' '@pin("image", "c?", "a?", "p?", "c?.grad", "a?.grad", "p?.grad", sbp: [S(2)])' >space.ir
both space 3 "$ROOT/examples/cnn.ir" --place=space.ir --train='data: points(classes: 2), batch: 4, steps: 20'

# Each resumes what the other has saved; also with another plan and another number of ranks.
data/trainer --checkpoint=a --steps=14 >log 2>&1 && run 2 data.mpi/trainer --checkpoint=b --steps=14 >log 2>&1
run 2 data.mpi/trainer --resume=a/step-00000014 --checkpoint=on >log 2>&1
cmp -s on/step-00000020/state.safetensors data.a/step-00000020/state.safetensors && echo "ok goes-on-with-mpi" || echo "not ok goes-on-with-mpi: $(head -n 2 log)"
data/trainer --resume=b/step-00000014 --checkpoint=off >log 2>&1
cmp -s off/step-00000020/state.safetensors data.a/step-00000020/state.safetensors && echo "ok goes-on-without" || echo "not ok goes-on-without: $(head -n 2 log)"
check another-plan-and-count run 4 tensor.mpi/trainer --resume=a/step-00000014

# Refused: another number of ranks than planned, ranks of two plans, a rank that cannot write.
refused wrong-world-size-94 24 'planned for 2 ranks, but 3 were started' run 3 data.mpi/trainer
refused no-mpirun-94 24 'planned for 2 ranks, but 1 were started: mpirun -n 2' data.mpi/trainer
sed 's/0.01/0.02/' data.ir >other.ir
"$SBPCC" other.ir --machine=slow -o other.mpi >log 2>&1 && make -s -C other.mpi TRANSPORT=mpi CFLAGS="$FLAGS" >log 2>&1
refused two-plans-93 24 'rank 1: the plan that the program was built from: [0-9a-f]* here, but [0-9a-f]* on rank 0' run 1 data.mpi/trainer : -n 1 other.mpi/trainer
# Each rank has its own command line and its own files: a difference is named before the first step.
ranks() { # options of rank 0, of rank 1
	run 1 data.mpi/trainer $1 : -n 1 data.mpi/trainer $2
}
refused another-seed 24 'rank 1: --seed: 2 here, but 1 on rank 0' ranks --seed=1 --seed=2
refused another-number-of-steps 24 'rank 1: --steps: 20 here, but 7 on rank 0' ranks --steps=7 ''
refused another-keep 24 'rank 1: --keep: 4 here, but 3 on rank 0' ranks --checkpoint=g --checkpoint=g\ --keep=4
refused no-checkpoint-on-one 24 'rank 1: --checkpoint: not given here, but given on rank 0' ranks --checkpoint=g ''
refused no-resume-on-one 24 'rank 1: --resume: given here, but not given on rank 0' ranks --checkpoint=a "--checkpoint=a --resume"
RT_PATIENCE=1 refused another-folder 21 'rank 1: g2 on .* is not the folder that rank 0 saves into' ranks --checkpoint=g1 --checkpoint=g2
mkdir shut && cp -r a/step-00000014 shut && sed 's/"sbpcc checkpoint 2"/"sbpcc checkpoint 1"/; s/^\],"crc":"[0-9a-f]*"}$/]}/' a/step-00000014/manifest.json >shut/step-00000014/manifest.json
refused another-manifest 24 'rank 1: the manifest of the checkpoint: checksum [0-9a-f]* here, but [0-9a-z ]* on rank 0' ranks --resume=a --resume=shut
refused not-on-one 21 'rank 1: cannot read nowhere/step-00000014/manifest.json' ranks --resume=a --resume=nowhere
sed 's/points(classes: 10, noise: 0.5)/bytes("one.txt")/; s/(float\[N, 50\] x, int64\[N\] label)/(int64[N, 8] tokens, int64[N, 8] next)/; s/<float.*/<float[256, 16] e @init(normal(0, 1)), float[16, 256] w @init(zeros), int64[2] wide = {-1, 16}, int64[1] flat = {-1}>/
	s/^{ loss.*/{ loss = SoftmaxCrossEntropyLoss(MatMul(Reshape(Gather(e, tokens), wide), w), Reshape(next, flat)) }/' net.ir >text.ir
"$SBPCC" text.ir --ranks=2 -o text.mpi >log 2>&1 && make -s -C text.mpi TRANSPORT=mpi CFLAGS="$FLAGS" >log 2>&1 || echo "not ok text: $(head -n 2 log)"
head -c 4000 "$ROOT/LICENSE" >one.txt && sed 's/License/Licence/' one.txt >two.txt && head -c 3000 one.txt >three.txt
check same-data run 1 text.mpi/trainer --data=one.txt : -n 1 text.mpi/trainer --data="$PWD/one.txt"
refused other-contents 24 'rank 1: the data set: [0-9]* samples, checksum [0-9a-f]* here, but [0-9]* samples, checksum' run 1 text.mpi/trainer : -n 1 text.mpi/trainer --data=two.txt
refused another-size 24 'rank 1: the data set: [0-9]* samples' run 1 text.mpi/trainer : -n 1 text.mpi/trainer --data=three.txt
# Output lines are plain, although mpirun gives ranks a terminal.
TERM=xterm script -qc 'OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 mpirun -n 2 data.mpi/trainer --steps=3' /dev/null >terminal 2>/dev/null
! tr -d '\n\r' <terminal | grep -q '[[:cntrl:]]' && [ "$(grep -c '^step' terminal)" = 2 ] && echo "ok plain-lines" || echo "not ok plain-lines: $(cat -v terminal)"
refused unwritable 21 'cannot create' run 2 data.mpi/trainer --checkpoint=/proc/none

ranks_of() { # job: the trainers below it, in one line
	local p
	for p in $(pgrep -P "$1"); do
		if [ "$(cat "/proc/$p/comm")" = trainer ]; then echo "$p"; else ranks_of "$p"; fi
	done | tr '\n' ' ' | sed 's/ $//'
}
alive() { # pid...: one of them is
	local p
	for p; do grep -q '^State:[[:space:]][^ZX]' "/proc/$p/status" 2>/dev/null && return 0; done
	return 1
}
# Asked to stop: the step is finished and saved.  If a rank is killed, the others end.
rm -f log
run 2 data.mpi/trainer --steps=2000000 --checkpoint=stop >log 2>&1 &
job=$!
until grep -qs 'step  *[1-9]' log; do sleep 0.1; kill -0 $job 2>/dev/null || break; done
kill -TERM $(ranks_of $job)
wait $job
status=$?
[ $status = 75 ] && [ -n "$(ls stop 2>/dev/null)" ] && check stopped-and-saved run 2 data.mpi/trainer --resume=stop --steps=1 || echo "not ok stopped-and-saved: exit status $status: $(tail -n 2 log | head -c 300)"
rm -f log
run 2 data.mpi/trainer --steps=2000000 >log 2>&1 &
job=$!
until grep -qs 'step  *[1-9]' log; do sleep 0.1; kill -0 $job 2>/dev/null || break; done
all=$(ranks_of $job)
kill -KILL ${all##* }
wait $job
status=$?
[ $status != 0 ] && ! alive $all && echo "ok killed-rank-86" || echo "not ok killed-rank-86: exit status $status"
# The ranks that wait for a stopped rank name it; not if all were stopped, nor while it computes.
rm -f log
RT_PATIENCE=2 run 2 data.mpi/trainer --steps=2000000 >log 2>&1 &
job=$!
until grep -qs 'step  *[1-9]' log; do sleep 0.1; kill -0 $job 2>/dev/null || break; done
all=$(ranks_of $job)
kill -STOP ${all##* }
wait $job
status=$?
[ $status = 22 ] && grep -q '^rank [01] step [0-9]*.*: rank [01] has not answered for 2 seconds: it is lost' log && ! alive $all && echo "ok stopped-rank-is-named-88" || echo "not ok stopped-rank-is-named-88: exit status $status: $(head -n 2 log)"
rm -f log
RT_PATIENCE=2 run 2 data.mpi/trainer --steps=2000000 >log 2>&1 &
job=$!
until grep -qs 'step  *[1-9]' log; do sleep 0.1; kill -0 $job 2>/dev/null || break; done
all=$(ranks_of $job)
kill -STOP $all && sleep 5 && kill -CONT $all && sleep 1 && kill -USR1 $all
wait $job
status=$?
[ $status = 75 ] && echo "ok all-stopped-for-longer-88" || echo "not ok all-stopped-for-longer-88: exit status $status: $(tail -n 3 log)"
slow_action data.mpi TRANSPORT=mpi
RT_PATIENCE=2 run 2 data.mpi/trainer --checkpoint=slow.on >log 2>&1
cmp -s slow.on/step-00000020/state.safetensors data.a/step-00000020/state.safetensors && echo "ok long-action-88" || echo "not ok long-action-88: $(head -n 2 log)"
