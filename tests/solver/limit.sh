# --solve-seconds: a limit is not a failure.  The plan is the best one found, its gap is reported, and it is the same
# each time.
"$ROOT/bench/llama" 2 4096 14336 32 8 128256 8 4096 "8, 8" >m.ir
run() { "$PLAIN/sbpcc" m.ir --stop-after=plan --dump-after=plan --machine=h100x8 "$@" >out 2>log; }
run --solve-seconds=0 || { echo "not ok limit: exit $?: $(head -n 1 log)" && exit; }
cp out first
if grep -q 'warning: the solver stopped at its limit: this plan takes [0-9.e+-]* s a step, any plan at least [0-9.e+-]* s, a gap of [0-9.e+]* %' log; then
	echo "ok the gap is reported"
else
	echo "not ok the gap is reported: $(head -n 1 log)"
fi
run --solve-seconds=0
if cmp -s out first; then echo "ok the plan is the same each time"; else echo "not ok the plan is the same each time"; fi
run --solve-seconds=1000 && cp out many && run
if cmp -s out many && [ ! -s log ]; then echo "ok a limit that is not reached changes nothing"; else echo "not ok a limit that is not reached changes nothing: $(head -n 1 log)"; fi
