# What can go wrong while a program runs: it is killed or stopped, checkpoints are damaged, disks are full, the data
# has changed, there is no memory, the clock jumps, the loss is not a number.  The numbers are those of the list of
# bad inputs.
. "$HERE/common.bash"
FLAGS=-O1
"$BUILD/test-runtime-data" "$ROOT/examples/data/digits" >/dev/null || exit 1
cat >text.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: adamw(lr: 0.05), batch: 16, steps: 60, data: bytes("text", validation: 0.1), seed: 3,
       schedule: cosine(total: 60), clip: norm(1.0))
text (int64[N, 8] tokens, int64[N, 8] next) => (float loss)
<float[256, 32] "e 1" @init(normal(0, 1)), float[32, 256] w @init(zeros), int64[2] wide = {-1, 32}, int64[1] flat = {-1}>
{ loss = SoftmaxCrossEntropyLoss(MatMul(Reshape(Gather("e 1", tokens), wide), w), Reshape(next, flat)) }
IR
tree one text.ir
tree two text.ir --ranks=2
losses one/trainer >want
losses two/trainer >want2
[ "$(wc -l <want)" = 60 ] || { echo "not ok trains: $(head -n 1 err)" && exit 1; }
state() { cat "$1"/step-00000060/state.safetensors; }

# Saved and resumed, bit for bit; under another plan, up to rounding.
losses one/trainer --checkpoint=ck --every-checkpoint=10 --steps=35 >got && losses one/trainer --checkpoint=ck --resume >>got
cmp -s got want && echo "ok resume-is-exact" || echo "not ok resume-is-exact: $(diff got want | head -n 2)"
one/trainer --checkpoint=ck --resume >log 2>&1 && grep -q '^the checkpoint has 60 steps already: nothing to train' log && echo "ok nothing-to-train" || echo "not ok nothing-to-train: $(head -n 1 log)"
[ "$(ls ck | wc -l)" = 3 ] && echo "ok keeps-three" || echo "not ok keeps-three: $(ls ck | tr '\n' ' ')"
losses one/trainer --checkpoint=whole >got && cmp -s got want && cmp -s <(state ck) <(state whole) && echo "ok same-state" || echo "not ok same-state: other bytes"
losses two/trainer --resume=ck/step-00000035 | paste <(tail -n 25 want) - | awk '{ d = $4 - $8; if (d < 0) d = -d; if (d > 1e-4) exit 1; n++ } END { exit n != 25 }' &&
	echo "ok another-plan-80" || echo "not ok another-plan-80: $(head -n 1 err)"

# Nobody reads the output: training continues, logs and saves; so it does if the log cannot be written.
{ one/trainer --every=1 --checkpoint=heard --log=heard.json 2>err; echo $? >status; } | head -n 1 >first
[ "$(cat status)" = 0 ] && [ "$(wc -l <first)" = 1 ] && [ "$(grep -c '"loss"' heard.json)" = 60 ] && cmp -s <(state heard) <(state whole) && [ "$(grep -c 'warning: cannot write to standard output' err)" = 1 ] &&
	echo "ok nobody-listens" || echo "not ok nobody-listens: exit status $(cat status), $(grep -c '"loss"' heard.json) steps: $(head -n 1 err)"
losses one/trainer --log=/dev/full >got
cmp -s got want && [ "$(grep -c 'warning: cannot write to /dev/full: No space' err)" = 1 ] && echo "ok log-is-full" || echo "not ok log-is-full: $(head -n 2 err)"

# Killed at any moment, four times, most often while it saves: the whole program, and one rank of two; with two
# threads each.  A run that ends before it is killed is started again.
killed() { # trainer, seed
	local run=("$1" --seed="$2" --threads=2 --steps=6000 --every=100000) kills=0 resume job status
	rm -rf kill never
	while resume=$(ls -d kill/step-* 2>/dev/null) && resume=--resume; [ $kills -lt 4 ]; do
		"${run[@]}" --checkpoint=kill --every-checkpoint=1 $resume >log 2>&1 &
		job=$!
		sleep "0.$(printf %02d $((RANDOM % 30 + 2)))"
		if [ $((kills % 2)) = 1 ]; then kill -9 $job; else kill -9 "$(pgrep -P $job | tail -n 1)"; fi 2>/dev/null
		wait $job 2>/dev/null
		status=$?
		case $status in
		0) kills=0 && rm -rf kill ;;
		137 | 22) kills=$((kills + 1)) ;;
		*) echo "exit status $status: $(head -n 1 log)" && return 1 ;;
		esac
	done
	"${run[@]}" --checkpoint=kill $resume >log 2>&1 && "${run[@]}" --checkpoint=never >log 2>&1 || { head -n 1 log && return 1; }
	cmp kill/step-00006000/state.safetensors never/step-00006000/state.safetensors
}
for t in one two; do
	for seed in 3 $RANDOM; do
		why=$(killed $t/trainer $seed 2>&1) || { echo "not ok killed-$t-86: seed $seed: $why" && continue 2; }
	done
	echo "ok killed-$t-86"
done

# Signals.
for sig in TERM INT USR1; do
	rm -rf sig running
	one/trainer --checkpoint=sig --steps=100000000 >running 2>&1 &
	job=$!
	until [ -s running ]; do sleep 0.05; done
	kill -$sig $job
	wait $job
	status=$?
	[ $status = 75 ] && [ "$(ls sig | grep -c '^step-')" = 1 ] && grep -q '^stopping: this step is finished, then a checkpoint is saved' running && grep -q "^saved sig/$(ls sig)\$" running && echo "ok signal-$sig-87" || echo "not ok signal-$sig-87: exit status $status, $(ls sig | tr '\n' ' ')"
done
rm -f running
two/trainer --steps=100000000 >running 2>&1 &
job=$!
until [ -s running ]; do sleep 0.05; done
kill -STOP $(pgrep -P $job)
kill -TERM $job
sleep 0.1
kill -TERM $job
wait $job
status=$?
[ $status = 75 ] && echo "ok second-signal-87" || echo "not ok second-signal-87: exit status $status"

# A rank that is stopped for a while continues; one that is only slow is named.
rm -f running
two/trainer --steps=5000 --every=1 >running 2>&1 &
job=$!
until [ -s running ]; do sleep 0.05; done
slow=$(pgrep -P $job | tail -n 1)
kill -STOP "$slow" && sleep 5 && kill -CONT "$slow"
while kill -0 $job 2>/dev/null && [ $((k += 1)) -lt 40 ]; do kill -STOP "$slow" && sleep 0.09 && kill -CONT "$slow" && sleep 0.01; done 2>/dev/null
wait $job
status=$?
[ $status = 0 ] && echo "ok stopped-for-5-seconds-88" || echo "not ok stopped-for-5-seconds-88: exit status $status"
grep -q '^rank 1 is slow' running && echo "ok slow-rank-is-named-90" || echo "not ok slow-rank-is-named-90: $(tail -n 2 running)"
# A rank that stays stopped is lost, and the ranks that wait for it name it; not if all were stopped, for longer than
# that, nor while it computes.
rm -f running
RT_PATIENCE=2 two/trainer --steps=100000000 >running 2>&1 &
job=$!
until [ -s running ]; do sleep 0.05; done
kill -STOP "$(pgrep -P $job | tail -n 1)"
wait $job
status=$?
[ $status = 22 ] && grep -q '^rank 0 step [0-9]*.*: rank 1 has not answered for 2 seconds: it is lost$' running && echo "ok stopped-rank-is-named-88" || echo "not ok stopped-rank-is-named-88: exit status $status: $(tail -n 1 running)"
rm -f running
RT_PATIENCE=2 two/trainer --steps=100000000 >running 2>&1 &
job=$!
until [ -s running ]; do sleep 0.05; done
all="$job $(pgrep -P $job | tr '\n' ' ')"
kill -STOP $all && sleep 5 && kill -CONT $all && sleep 1 && kill -TERM $job
wait $job
status=$?
[ $status = 75 ] && echo "ok all-stopped-for-longer-88" || echo "not ok all-stopped-for-longer-88: exit status $status: $(tail -n 1 running)"
cp -r two slow && slow_action slow STATIC=
RT_PATIENCE=2 losses slow/trainer --steps=6 | cmp -s - <(head -n 6 want2) && echo "ok long-action-88" || echo "not ok long-action-88: $(head -n 1 err)"
if [ -n "$LONG" ]; then
	two/trainer --steps=100000000 >running 2>&1 &
	job=$!
	sleep 1
	kill -STOP "$(pgrep -P $job | tail -n 1)"
	SECONDS=0
	wait $job
	status=$?
	[ $status = 22 ] && [ $SECONDS -le 60 ] && grep -q 'rank 1 has not answered for 50 seconds' running && echo "ok stopped-for-long-88" || echo "not ok stopped-for-long-88: exit status $status after $SECONDS s"
fi

# Damaged checkpoints: the older one is offered, and loaded when asked.
rm -rf ck && one/trainer --checkpoint=ck --every-checkpoint=20 --steps=40 >log 2>&1
damaged() { # name, text: step 40 of bad is damaged
	refused "$1-81" 21 "$2" one/trainer --resume=bad
	grep -q 'bad/step-00000020 is good' log && losses one/trainer --resume=bad --last-good | cmp -s - <(tail -n 40 want) && echo "ok $1-last-good-81" || echo "not ok $1-last-good-81: $(head -n 2 log err)"
	rm -rf bad && cp -r ck bad
}
rm -rf bad && cp -r ck bad
printf 'x' | dd of=bad/step-00000040/state.safetensors bs=1 seek=5000 conv=notrunc 2>/dev/null
damaged bit 'its checksum differs'
rm bad/step-00000040/manifest.json
damaged manifest 'manifest.json: No such file'
rm bad/step-00000040/state.safetensors
damaged tensors 'state.safetensors: No such file'
truncate -s 60000 bad/step-00000040/state.safetensors
damaged cut 'beyond the end of the file'
head -c 300 ck/step-00000040/manifest.json >bad/step-00000040/manifest.json
damaged manifest-cut 'step-00000040'
sed -i 's/"seed":3/"seed":4/' bad/step-00000040/manifest.json
damaged manifest-of-another-seed 'its manifest is damaged: its checksum differs'
printf '{}\n' >>bad/step-00000040/manifest.json
damaged manifest-goes-on 'its manifest is damaged'
cp ck/step-00000020/* bad/step-00000040
damaged manifest-of-another-step 'its manifest is of step 20'
# Files of the version before have no checksum of the manifest, and load; those of a later version are refused with a
# message.
before() { sed 's/"sbpcc checkpoint 2"/"sbpcc checkpoint 1"/; s/^\],"crc":"[0-9a-f]*"}$/]}/' "$1"; }
before ck/step-00000040/manifest.json >bad/step-00000040/manifest.json
grep -q '^]}$' bad/step-00000040/manifest.json && losses one/trainer --resume=bad | cmp -s - <(tail -n 20 want) && echo "ok version-before" || echo "not ok version-before: $(head -n 2 err)"
printf '{}\n' >>bad/step-00000040/manifest.json
damaged manifest-before-goes-on 'something follows its end'
sed -i 's/"sbpcc checkpoint 2"/"sbpcc checkpoint 3"/' bad/step-00000040/manifest.json
damaged version-after 'is an "sbpcc checkpoint 3"'

# A folder belongs to one run: another run is kept out while the first is active, and is refused afterwards unless it
# resumes or removes the checkpoints; later checkpoints of an abandoned run are removed, and at most --keep stay.
rm -rf whose && one/trainer --checkpoint=whose --every-checkpoint=10 --steps=30 >log 2>&1
before=$(echo whose/*)
refused another-run 21 'whose has checkpoints of another run, up to step 30: .*--resume.*--overwrite' one/trainer --checkpoint=whose
refused another-run-from-elsewhere 21 'whose has checkpoints of another run' one/trainer --resume=ck/step-00000020 --checkpoint=whose
refused later-steps 21 'whose has later checkpoints, up to step 30' one/trainer --resume=whose/step-00000010 --checkpoint=whose
[ "$(echo whose/*)" = "$before" ] && echo "ok refused-and-untouched" || echo "not ok refused-and-untouched: $(echo whose/*)"
refused later-steps-are-good 21 'whose has later checkpoints' one/trainer --resume=whose/step-00000010 --checkpoint=whose --last-good
one/trainer --resume=whose/step-00000010 --checkpoint=whose --steps=15 --overwrite >log 2>&1
[ "$(echo whose/*)" = 'whose/step-00000010 whose/step-00000015' ] && echo "ok later-steps-go" || echo "not ok later-steps-go: $(echo whose/*) $(head -n 1 log)"
printf x >>whose/step-00000015/manifest.json
one/trainer --resume --checkpoint=whose --last-good --steps=12 >log 2>&1
[ "$(echo whose/*)" = 'whose/step-00000010 whose/step-00000012' ] && echo "ok damaged-steps-go" || echo "not ok damaged-steps-go: $(echo whose/*) $(head -n 1 log)"
one/trainer --resume --checkpoint=whose --every-checkpoint=4 --keep=2 --steps=40 >log 2>&1
[ "$(echo whose/* | wc -w)" = 2 ] && [ -e whose/step-00000040 ] && echo "ok keeps-two-after-resume" || echo "not ok keeps-two-after-resume: $(echo whose/*)"
one/trainer --checkpoint=whose --overwrite --steps=5 >log 2>&1
[ "$(echo whose/*)" = whose/step-00000005 ] && echo "ok overwrite" || echo "not ok overwrite: $(echo whose/*) $(head -n 1 log)"
rm -f running
two/trainer --steps=100000000 --checkpoint=whose --resume >running 2>&1 &
job=$!
until [ -s running ]; do sleep 0.05; done
RT_PATIENCE=1 refused in-use 21 "whose is in use by another run: process [0-9]* on $(hostname) since " one/trainer --checkpoint=whose --resume
kill -9 $job
wait $job 2>/dev/null
check free-after-kill one/trainer --checkpoint=whose --resume
sed -i 's/\[256,32\]/[256,99]/' bad/step-00000040/state.safetensors
damaged shape 'another model\|do not fit its shape'
sed -i 's/\[256,32\]/[4611686018427387904,32]/' bad/step-00000040/state.safetensors
refused huge-82 21 'too many elements\|not a safetensors' one/trainer --resume=bad/step-00000040
rm -rf bad && cp -r ck bad && sed -i 's/"w"/"v"/' bad/step-00000040/state.safetensors
refused another-model-80 21 'it has no w' one/trainer --resume=bad/step-00000040
refused nothing-there-81 21 'No such file' one/trainer --resume=nowhere
rm -rf bad && cp -r ck bad && mkdir bad/.saving && head -c 999 ck/step-00000040/state.safetensors >bad/.saving/state.safetensors
losses one/trainer --resume=bad | cmp -s - <(tail -n 20 want) && echo "ok cut-between-data-and-rename-84" || echo "not ok cut-between-data-and-rename-84: $(head -n 1 err)"

# Saves that fail: training continues, the last good one is kept; the third in a row ends it.
rm -rf bad && cp -r ck bad
(ulimit -f 30 && one/trainer --checkpoint=bad --resume --every-checkpoint=5 --steps=1000000 --every=100000 --keep=9 >log 2>&1)
status=$?
[ $status = 21 ] && [ "$(grep -c 'was not written.*training continues' log)" = 3 ] && [ "$(ls bad | tr '\n' ' ')" = 'step-00000020 step-00000040 ' ] &&
	echo "ok full-disk-83" || echo "not ok full-disk-83: exit status $status: $(cat log | tr '\n' ' ') $(ls -a bad | tr '\n' ' ')"
mkdir shut && chmod a-w shut && [ "$(id -u)" != 0 ] && refused no-place 21 'cannot' one/trainer --checkpoint=shut/ck
rm -rf busy && losses one/trainer --checkpoint=busy --every-checkpoint=1 | cmp -s - want && echo "ok slower-than-the-interval-85" || echo "not ok slower-than-the-interval-85: $(head -n 1 err)"

# Other data.
cp text text.good && sed -i 's/quick/quack/' text
refused changed-78 20 'not the one that the checkpoint was trained on' one/trainer --resume=ck
check changed-forced-78 one/trainer --resume=ck --changed-data
cp text.good text
rm -f running
one/trainer --steps=100000000 >running 2>&1 &
job=$!
until [ -s running ]; do sleep 0.05; done
truncate -s 100 text
wait $job
status=$?
[ $status = 20 ] && grep -q 'text was truncated' running && echo "ok truncated-79" || echo "not ok truncated-79: exit status $status"
cp text.good text

# Memory: with less and less of it the program says so before step 0, or cannot even be started.
short=0 bad=
for ((kb = 20000; kb > 1000; kb -= 300)); do
	(ulimit -v $kb && exec two/trainer --steps=1 --threads=2) >log 2>&1
	status=$?
	if [ $status = 25 ] && ! grep -q '^step' log && [ -s log ]; then short=$((short + 1)); elif [ $status != 0 ] && [ $status != 25 ] && ! grep -q 'shared libraries\|shared object\|TLS data structures' log; then bad="exit status $status with $kb kB: $(head -n 1 log)"; fi
	[ $status != 0 ] && [ $status != 25 ] && break
done
[ $short -gt 2 ] && [ -z "$bad" ] && echo "ok no-memory-91" || echo "not ok no-memory-91: $short times; $bad"

# A clock that jumps by days.
cat >clock.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
static long jump(void) { static long n; return n++ % 2 ? 86400 : -86400; }
int clock_gettime(clockid_t id, struct timespec *t)
{
	int (*real)(clockid_t, struct timespec *);
	*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	int r = real(id, t);
	if (id == CLOCK_REALTIME)
		t->tv_sec += jump();
	return r;
}
int gettimeofday(struct timeval *restrict t, void *restrict z)
{
	struct timespec s;
	(void)z;
	clock_gettime(CLOCK_REALTIME, &s);
	t->tv_sec = s.tv_sec;
	t->tv_usec = s.tv_nsec / 1000;
	return 0;
}
C
gcc -shared -fPIC -o clock.so clock.c -ldl && LD_PRELOAD=$PWD/clock.so one/trainer --every=1 --checkpoint=clock --every-checkpoint=7 --log=clock.json | grep -o '^step *[0-9]* *loss [^ ]*' | cmp -s - want &&
	! grep -q '"seconds":-\|"seconds":[0-9]\{4,\}' clock.json && echo "ok clock-92" || echo "not ok clock-92: it matters"

# The loss is not a number: the first value that is not is named, and the state is that before the step.
sed 's/, clip: norm(1.0)//; s/adamw(lr: 0.05)/sgd(lr: 1e38)/' text.ir >nan.ir
"$SBPCC" nan.ir -o other >log 2>&1 && make -s -C other STATIC= CFLAGS=-O1 >log 2>&1
refused nan-77 23 '(SoftmaxCrossEntropyLoss[+A-Za-z]* .*is the first value of this step that is not finite' other/trainer --checkpoint=nan --every=1
grep -q 'the loss is' log && [ "$(ls nan)" = "step-0000000$(grep -c ^step log)" ] && echo "ok state-saved-77" || echo "not ok state-saved-77: $(ls nan | tr '\n' ' ') $(cat log | tr '\n' ' ')"
sed 's/sgd(lr: 1e38)/sgd(lr: 1e39)/' nan.ir >inf.ir
"$SBPCC" inf.ir -o other >log 2>&1 && make -s -C other STATIC= CFLAGS=-O1 >log 2>&1
refused parameter-77 23 '^rank 0 step [0-9]*: e.*1 has not been finite since the previous step' other/trainer

# What is told on the way.
two/trainer --steps=4 --log=log.json --trace=trace.json --profile --every=1 >log 2>&1
[ "$(wc -l <log.json)" = 6 ] && grep -q '{"step":3,"loss":.*,"rate":.*,"norm":.*,"tokens_per_s":.*,"seconds":.*}' log.json && grep -q '"dropped_per_epoch":' log.json && echo "ok log" || echo "not ok log: $(cat log.json)"
n=$(grep -c '^ *[0-9.]* *[0-9.]*% ' log)     # actions of a step
"$BUILD/test-runtime-faults-trace" trace.json >spans && [ "$(tr '\n' ';' <spans)" = "0 $((4 * n)) 0;1 $((4 * n)) 0;" ] && grep -q '"name":"MatMul","cat":"compute","ph":"X","ts":.*"pid":1' trace.json && echo "ok trace" ||
	echo "not ok trace: $n actions; $(tr '\n' ';' <spans)"
grep -q 'profile of rank 0' log && grep -q '% .* MatMul ' log && grep -q '%  SoftmaxCrossEntropyLoss[+A-Za-z]* ' log && echo "ok profile" || echo "not ok profile: $(head -n 9 log)"
TERM=xterm script -qc 'one/trainer --steps=3' /dev/null >terminal 2>/dev/null && { grep -q 'rate 0.05.*norm.*tokens/s.*left' terminal && echo "ok progress-on-a-terminal" || echo "not ok progress-on-a-terminal: $(cat -v terminal)"; }
TERM=dumb script -qc 'one/trainer --steps=3' /dev/null >terminal 2>/dev/null && { ! tr -d '\n\r' <terminal | grep -q '[[:cntrl:]]' && [ "$(grep -c '^step' terminal)" = 2 ] && echo "ok plain-lines-on-a-dumb-terminal" || echo "not ok plain-lines-on-a-dumb-terminal: $(cat -v terminal)"; }
refused no-step-before-the-first 21 '^rank 0: cannot create' one/trainer --checkpoint=/proc/none
one/trainer --checkpoint=said >log 2>&1 && [ "$(tail -n 1 log)" = 'saved said/step-00000060' ] && echo "ok end-says-what-was-saved" || echo "not ok end-says-what-was-saved: $(tail -n 1 log)"
check evaluates sh -c 'one/trainer --resume=whole --eval | grep "^249 held-out samples, loss [01]\.[0-9]*$"'
refused usage 2 'needs a number of at least 1' one/trainer --every=0
refused usage-resume 2 'needs DIR' one/trainer --resume
check help sh -c 'one/trainer --help | grep -q -- "--every-checkpoint=N"'
