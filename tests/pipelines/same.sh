# A pipeline computes what one rank computes, whatever the schedule, also when stages of one rank are chunks: with values that skip stages, a
# weight of two stages, a mask that several stages read, dropout, clipping and averages (net.ir without its second loss), bit for bit.  With
# the second loss, which another stage adds to the first, almost: one kernel computes a loss and its gradient, but for a loss that
# a later stage reads.
set -u
sed '/early\|side\|guess/d; s/^  main = /  loss = /; /loss = Add/d; s/, float main//' "$HERE/net.ir" >plain.ir
tree() { # name, model, options: compiled and run; weights in NAME/x, the log of its steps in NAME.log
	local name=$1 model=$2
	shift 2
	"$SBPCC" "$model" -o "$name" "$@" >"$name.out" 2>&1 || { echo "not ok $name: not compiled"; sed 's/^/    /' "$name.out" | head; return 1; }
	make -s -C "$name" >"$name.make" 2>&1 || { echo "not ok $name: does not build"; tail -n 3 "$name.make" | sed 's/^/    /'; return 1; }
	"$name/trainer" --log="$name.log" --export="$name/x" >"$name.run" 2>&1 || { echo "not ok $name: exit $?"; tail -n 5 "$name.run" | sed 's/^/    /'; return 1; }
}
tree one plain.ir || exit 1
same() { # name, options
	tree "$1" plain.ir "${@:2}" || return
	if cmp -s one/x/model.safetensors "$1/x/model.safetensors"; then echo "ok $1"; else echo "not ok $1: other weights than one rank"; fi
	rm -rf "${1:?}"
}
for s in gpipe 1f1b zb-h1; do
	same "$s" --ranks=2 --stages=2 --schedule=$s
done
for s in interleaved zb-v; do
	same "$s" --ranks=2 --stages=4 --schedule=$s
done
same solver --ranks=3 --stages=3
if [ -n "$LONG" ]; then
	for s in pe zb-h2 1f1b; do
		same "$s-4" --ranks=4 --stages=4 --schedule=$s
	done
	for s in v-half v-min dualpipev; do
		same "$s" --ranks=2 --stages=4 --schedule=$s
	done
	same interleaved-3 --ranks=2 --stages=6 --schedule=interleaved
fi

# The losses of all steps agree to 1e-6.
tree whole "$HERE/net.ir" && tree apart "$HERE/net.ir" --ranks=3 --stages=3 --schedule=1f1b && {
	for t in whole apart; do
		sed -n 's/.*"loss": *\([-0-9.e]*\).*/\1/p' $t.log >$t.losses
	done
	paste whole.losses apart.losses | awk '
		{ n++; d = $1 - $2; bad += d > 1e-6 * $1 || -d > 1e-6 * $1 }
		END { print n == 6 && !bad ? "ok two losses" : "not ok two losses: " bad + 0 " of " n + 0 " steps differ from one rank" }'
}
