# If a rank is killed, the job ends within ten seconds and with exit status 22; if the program is killed, its ranks
# end.  No process and no shared memory is left.
"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=2 -o tree >/dev/null && make -s -C tree || exit 1
begin() { # starts it; $job and its $ranks
	rm -f log
	tree/trainer --steps=100000000 --data="$ROOT/examples/data/digits" >log 2>&1 &
	job=$!
	until [ -s log ] && ranks=$(pgrep -P $job) && [ "$(echo "$ranks" | wc -l)" = 2 ]; do sleep 0.1; kill -0 $job 2>/dev/null || break; done
	during=$(for p in $job $ranks; do readlink /proc/$p/fd/* | grep '^/dev/shm'; grep ' /dev/shm/' /proc/$p/maps; done)
	since=$SECONDS
}
left() { for p in $ranks; do [ -d "/proc/$p" ] && grep -q '^State:.[^ZX]' "/proc/$p/status" 2>/dev/null && echo "$p"; done; }
check() { # name, true or false
	while [ -n "$(left)" ] && [ $((SECONDS - since)) -le 10 ]; do sleep 0.1; done
	[ "$2" = 0 ] && [ -z "$(left)" ] && [ $((SECONDS - since)) -le 10 ] && [ -z "$during" ] && echo "ok $1" ||
		{ echo "not ok $1: exit status $status, after $((SECONDS - since)) s; left: $(left) $during" && sed 's/^/ /' log; }
}
begin
kill -9 "$(echo "$ranks" | head -n 1)"
wait $job
status=$?
[ $status = 22 ] && grep -q 'was ended by signal 9' log
check a-killed-rank-ends-all $?
begin
kill -9 $job
wait $job 2>/dev/null
status=$?
[ $status = 137 ]
check a-killed-program-ends-its-ranks $?
