# A rank that is killed takes the job with it, within seconds and with exit status 22; no process is left.
"$SBPCC" "$ROOT/examples/mlp.ir" --ranks=2 -o tree >/dev/null && make -s -C tree || exit 1
tree/trainer --steps=100000000 --data="$ROOT/examples/data/digits" >log 2>&1 &
job=$!
for ((i = 0; i < 100; i++)); do
	ranks=$(pgrep -P $job) && [ "$(echo "$ranks" | wc -l)" = 2 ] && break
	sleep 0.1
done
kill -9 "$(echo "$ranks" | head -n 1)"
wait $job
status=$?
[ $status = 22 ] && grep -q 'was ended by signal 9' log && ! pgrep -P $job >/dev/null || { echo "exit status $status" && cat log && exit 1; }
