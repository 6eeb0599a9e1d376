# --trace is JSON of the events of each lane; what a task waited for is named.
printf 'ranks 2\nmicros 3\nF 1 ms\nB 1 ms\nW 1 ms\nhop 0.5 ms\nkept 10 MB\nschedule zb-h1\n' >t.pipe
"$SBPCC" --simulate=t.pipe --trace=t.json >/dev/null || exit 1
check() { if grep -qF -- "$2" t.json; then echo "ok $1"; else echo "not ok $1: $2 is not in the file"; fi; }
check 'a lane of a hop' '"args":{"name":"send x0>1"}'
check 'a task' '{"name":"F0 0","ph":"X","pid":0,"tid":0,"ts":0.000,"dur":1000.000}'
check 'what a task waited for' '{"name":"F1 0","ph":"X","pid":1,"tid":0,"ts":1500.000,"dur":1000.000,"args":{"waited":1500.000,"for":"a piece of x0>1"}}'
check 'bytes' '{"name":"bytes in use","ph":"C","pid":0,"ts":0.000,"args":{"bytes":10000000}}'
if command -v python3 >/dev/null; then
	python3 -m json.tool t.json >/dev/null && echo "ok JSON" || echo "not ok JSON: does not parse"
fi
"$SBPCC" --simulate=t.pipe --trace=none/t.json >/dev/null 2>err
[ $? = 4 ] && grep -q 'cannot write none/t.json' err && echo "ok a folder that does not exist" || echo "not ok a folder that does not exist: $(cat err)"
