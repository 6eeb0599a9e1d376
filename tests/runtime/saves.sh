# Saves that go wrong: each operation on files in turn fails, is short, or is the last one before a power failure.
# Inputs 83, 84 and 85 of the list: training continues, good checkpoints stay and load, and the final weights are the
# same.
. "$HERE/common.bash"
FLAGS=-O1
export ASAN_OPTIONS=verify_asan_link_order=0
gcc -shared -fPIC -o preload.so "$HERE/saves/preload.c" -ldl || exit 1
cat >m.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: adam(lr: 0.05), batch: 8, steps: 12, data: points(classes: 3), seed: 3)
m (float[N, 6] x, int64[N] y) => (float loss)
<float[6, 3] w @init(normal(0, 1)), float[3] b @init(zeros)>
{ loss = SoftmaxCrossEntropyLoss(Add(MatMul(x, w), b), y) }
IR
tree one m.ir
run() { one/trainer --threads=1 --checkpoint=ck "$@"; }
again() { # how, at, options...: from the checkpoint of step 8 on, with a fault
	local how=$1 at=$2
	shift 2
	rm -rf ck && cp -r good ck
	(ulimit -c 0 && LD_PRELOAD=$PWD/preload.so FAULT=$how FAULT_AT=$at run --resume "$@") >log 2>&1
}
sum() { cksum <ck/step-00000012/state.safetensors 2>/dev/null; }
loads() { run --resume >log 2>&1 && [ "$(sum)" = "$want" ]; }
run --steps=8 >log 2>&1 && mv ck good && FAULT_TO=$PWD/ops again count 0 --keep=1 || { echo "not ok runs: $(head -n 1 log)" && exit; }
want=$(sum) ops=$(cat ops)
[ "$ops" -gt 12 ] && [ -n "$want" ] || { echo "not ok counts: $ops operations" && exit; }

# Power fails before operation i: the last checkpoint loads without further options, and leads to the same weights.
bad= new=0
for ((i = 1; i <= ops; i++)); do
	again cut $i --keep=1
	[ ! -e ck/step-00000012 ] || new=$((new + 1))
	loads || bad+=" $i: $(head -n 1 log)"
done
[ -z "$bad" ] && [ $new -gt 0 ] && [ $new -lt "$ops" ] && echo "ok power-cut-84" || echo "not ok power-cut-84: $new after the rename;$bad"

# One operation fails: the run reports it if the save did not succeed, and the checkpoint before is still there.
for how in EIO ENOSPC EDQUOT short; do
	bad=
	for ((i = 1; i <= ops; i++)); do
		again $how $i
		status=$?
		[ $status = 0 ] || { [ $status = 21 ] && [ $how != short ] && grep -q 'step 12 was not written.*the last good one is kept\|cannot write ck/.lock' log; } || bad+=" $i: $status"
		[ -e ck/step-00000008/manifest.json ] && loads || bad+=" $i: $(head -n 1 log)"
	done
	[ -z "$bad" ] && echo "ok $how-83" || echo "not ok $how-83:$bad"
done

# All fail, except locking the folder: training continues until the third failure in a row, and good checkpoints stay.
FAULT_ON=1 again EIO 3 --every-checkpoint=4 --steps=1000000 --every=1000000
status=$?
[ $status = 21 ] && [ "$(grep -c 'was not written.*training continues' log)" = 3 ] && grep -q '3 checkpoints in a row' log && loads && echo "ok three-in-a-row-83" ||
	echo "not ok three-in-a-row-83: $status: $(head -n 3 log)"

# A disk that is full.
mkdir disk
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=16k none disk 2>/dev/null; then
	one/trainer --checkpoint=disk/ck --every-checkpoint=1 --steps=100000 --keep=99 --every=100000 --threads=1 >log 2>&1
	status=$?
	[ $status = 21 ] && [ "$(grep -c 'No space left on device.*training continues' log)" = 3 ] && one/trainer --resume=disk/ck --steps=0 >log 2>&1 && echo "ok full-disk-83" ||
		echo "not ok full-disk-83: $status: $(head -n 3 log)"
	umount disk
else
	echo "skip full-disk-83: no file system can be mounted here"
fi

# Nobody waits for a save that takes longer than the interval: saves that become due meanwhile are skipped.
again slow 1 --every-checkpoint=1 --steps=2000 --every=100000
status=$?
[ $status = 0 ] && grep -q 'checkpoints were skipped' log && [ "$(ls ck | tail -n 1)" = step-00002000 ] && echo "ok slower-than-the-interval-85" || echo "not ok slower-than-the-interval-85: $status: $(head -n 2 log)"
