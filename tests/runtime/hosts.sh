# Two machines, as far as a program can tell: network namespaces with their own names, shared memory and addresses,
# joined by a switch. Two ranks on each machine train to the same bits as four ranks on one machine.  Then
# examples/restart trains: the test kills a rank, stops a rank, lets the switch drop everything between the machines
# (89: neither end notices that the connection is dead), and asks it to end.  The ranks on both sides of the switch
# name the ranks that they lost, no process stays, and the bits are those of an undisturbed run.
. "$HERE/common.bash"
"$ROOT/tests/setup" openmpi-bin libopenmpi-dev iproute2 >log 2>&1 || { echo "skip hosts: $(head -n 1 log)" && exit 0; }
[ "$(id -u)" = 0 ] || { echo "skip hosts: network namespaces need root" && exit 0; }
id=sb$$ net=10.79.$(($$ % 250))
hosts_end() {
	for h in 1 2 s; do
		for p in $(ip netns pids "$id$h" 2>/dev/null); do kill -KILL "$p" 2>/dev/null; done
		ip netns del "$id$h" 2>/dev/null
	done
}
trap hosts_end EXIT
hosts_begin() {
	ip netns add "${id}s" && ip -n "${id}s" link add sw type bridge && ip -n "${id}s" link set sw up || return 1
	for h in 1 2; do
		ip netns add "$id$h" && ip link add "e$h" netns "$id$h" type veth peer name "p$h" netns "${id}s" && ip -n "$id$h" addr add "$net.$h/24" dev "e$h" &&
			ip -n "$id$h" link set "e$h" up && ip -n "$id$h" link set lo up && ip -n "${id}s" link set "p$h" master sw && ip -n "${id}s" link set "p$h" up || return 1
	done
	for h in 1 2; do ip netns exec "$id$h" sysctl -q net.ipv4.tcp_retries2=5 || return 1; done     # as examples/README.md says, so that mpirun gives up
	ip netns exec "${id}1" unshare -u -m sh -c "hostname host1 && mount -t tmpfs tmpfs /dev/shm"
}
hosts_begin 2>log || { echo "skip hosts: this system has no network namespaces: $(head -n 1 log)" && exit 0; }
cat >on <<'END'
#!/bin/sh
# on ID HOST COMMAND...: there, with its own name and shared memory
id=$1 h=$2
shift 2
exec ip netns exec "$id$h" unshare -u -m sh -c "hostname host$h; mount -t tmpfs tmpfs /dev/shm; $*"
END
cat >rsh <<END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
exec "$PWD/on" $id "\${host##*.}" "\$*"
END
cat >rank <<'END'
#!/bin/sh
# what a rank says when mpirun no longer hears it
exec "$@" 2>"err.$OMPI_COMM_WORLD_RANK"
END
chmod +x on rsh rank
run() { # seconds of patience, trainer and options; BEFORE: what runs mpirun
	local patience=$1
	shift
	./on "$id" 1 "cd '$PWD' && RT_PATIENCE=$patience PAUSE=2 exec $BEFORE mpirun --allow-run-as-root --oversubscribe --mca plm_rsh_agent '$PWD/rsh' --mca plm_rsh_no_tree_spawn 1 --mca btl self,vader,tcp --mca pml ob1 \
		--mca btl_tcp_if_include $net.0/24 --mca oob_tcp_if_include $net.0/24 --mca mpi_yield_when_idle 1 -x RT_PATIENCE -H $net.1:2,$net.2:2 -np 4 ./rank $*"
}
trainers() { # host: how many are there
	local n=0
	for p in $(ip netns pids "$id$1"); do [ "$(cat "/proc/$p/comm" 2>/dev/null)" = trainer ] && n=$((n + 1)); done
	echo $n
}
lost() { # ranks of one side, of the other: one of the first misses one of the second
	for r in $1; do
		grep -q "^rank $r step [0-9]*.*: rank [$2] has not answered for 4 seconds: it is lost\$" "err.$r" && return 0
	done
	return 1
}
cat >net.ir <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@mesh(m, cpu, [4])
@pin("x", "label", sbp: [S(0)])
@pin("w*", "b1", sbp: [B])
@train(loss: loss, optimizer: adamw(lr: 0.01), batch: 16, steps: 30, data: points(classes: 10, noise: 0.5), clip: norm(1.0))
net (float[N, 50] x, int64[N] label) => (float loss)
<float[50, 200] w1 @init(normal(0, 0.2)), float[200] b1 @init(zeros), float[200, 10] w2 @init(normal(0, 0.2))>
{ loss = SoftmaxCrossEntropyLoss(MatMul(Relu(Add(MatMul(x, w1), b1)), w2), label) }
IR
printf 'flops 1e7\nbytes 1e7\naxis 0 1e-6 1e8\n' >slow
built() { # transport
	make -s -C two TRANSPORT="$1" STATIC= CFLAGS=-O1 >log 2>&1 || { echo "not ok hosts: $(head -n 3 log)" && exit 1; }
}
"$SBPCC" net.ir --machine=slow -o two >log 2>&1
built local && cp two/trainer one && built mpi
./one --checkpoint=a >log 2>&1
check two-hosts run 100 two/trainer --checkpoint="$PWD/b"
cmp -s a/step-00000030/state.safetensors b/step-00000030/state.safetensors && echo "ok same-bits" || echo "not ok same-bits: $(cat err.* | head -n 3)"

# The loop.
trainer_pids() { # host: by number
	for p in $(ip netns pids "$id$1"); do [ "$(cat "/proc/$p/comm" 2>/dev/null)" = trainer ] && echo "$p"; done
}
newest() { ls "$1" 2>/dev/null | grep '^step-[0-9]*$' | tail -n 1; }
further() { # until there is another checkpoint than now
	local now
	now=$(newest d)
	while [ "$(newest d)" = "$now" ] && kill -0 $job 2>/dev/null; do sleep 0.1; done
}
ended() { # times: the loop reports that it restarts
	until [ "$(grep -c '^exit status' loop)" = "$1" ]; do sleep 0.1; kill -0 $job 2>/dev/null || break; done
}
BEFORE="'$ROOT/examples/restart' '$PWD/d'" run 4 two/trainer --steps=100000000 --every-checkpoint=5 --every=1000000 >loop 2>&1 &
job=$!
further
kill -KILL "$(trainer_pids 2 | tail -n 1)"
ended 1
further
kill -STOP "$(trainer_pids 2 | tail -n 1)"
ended 2
further
ip -n "${id}s" link set p2 nomaster     # nothing passes any more, and nobody is told
ended 3
ip -n "${id}s" link set p2 master sw
if lost "0 1" 23 && lost "2 3" 01; then echo "ok partition-89"; else echo "not ok partition-89: $(tail -n 2 err.* | tr '\n' ' ')"; fi
further
kill -USR1 "$(pgrep -P $job)"
wait $job
status=$?
last=$(newest d)
[ $status = 75 ] && [ "$(grep '^exit status' loop | tr '\n' ' ')" = 'exit status 137: restarting exit status 22: restarting exit status 22: restarting ' ] && grep -q "^saved $PWD/d/$last" loop && echo "ok restart-loop" ||
	echo "not ok restart-loop: exit status $status, $last: $(grep '^exit\|lost' loop | tr '\n' ' ')"
[ "$(trainers 1)$(trainers 2)" = 00 ] && echo "ok none-stays" || echo "not ok none-stays: $(trainers 1) and $(trainers 2)"
./one --steps=$((10#${last#step-})) --checkpoint=e >log 2>&1
cmp -s "d/$last/state.safetensors" "e/$last/state.safetensors" && echo "ok goes-on-86-88-89" || echo "not ok goes-on-86-88-89: other bits at $last"
