# A pipeline computes what one rank computes: bit for bit with one rank per stage, whatever the schedule, also when stages of one rank are
# chunks, and with values that skip stages, a weight of two stages, dropout, two losses, clipping and averages (net.ir).
set -u
export OMP_NUM_THREADS=1
tree() { # name, options: compiled and run; weights in NAME/x, losses in NAME.log
	local name=$1
	shift
	"$SBPCC" "$HERE/net.ir" -o "$name" "$@" >"$name.out" 2>&1 || { echo "not ok $name: not compiled"; sed 's/^/    /' "$name.out" | head; return 1; }
	make -s -C "$name" CFLAGS=-O1 >"$name.make" 2>&1 || { echo "not ok $name: does not build"; tail -n 3 "$name.make" | sed 's/^/    /'; return 1; }
	"$name/trainer" --log="$name.log" --export="$name/x" >"$name.run" 2>&1 || { echo "not ok $name: exit $?"; tail -n 5 "$name.run" | sed 's/^/    /'; return 1; }
}
losses() { sed 's/,"seconds.*//' "$1"; }
tree one || exit 1
same() { # name, options
	tree "$@" || return
	if cmp -s "one/x/model.safetensors" "$1/x/model.safetensors"; then echo "ok $1"; else echo "not ok $1: other weights than one rank"; fi
	rm -rf "$1"
}
for s in gpipe 1f1b zb-h1; do
	same "$s" --ranks=2 --stages=2 --schedule=$s
done
for s in interleaved zb-v v-half; do
	same "$s" --ranks=2 --stages=4 --schedule=$s
done
same solver --ranks=3 --stages=3
if [ -n "$LONG" ]; then
	for s in pe zb-h2 1f1b; do
		same "$s-4" --ranks=4 --stages=4 --schedule=$s
	done
	for s in v-min dualpipev; do
		same "$s" --ranks=2 --stages=4 --schedule=$s
	done
	same interleaved-3 --ranks=2 --stages=6 --schedule=interleaved
fi
