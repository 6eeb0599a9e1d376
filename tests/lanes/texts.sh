# Bad texts of pipelines, each with its exact message.
base='ranks 2
micros 2
F 1 ms
B 1 ms'
n=0
try() { # the text
	n=$((n + 1))
	printf '%s\n' "$1" >"bad$n.pipe"
	"$SBPCC" --simulate="bad$n.pipe" >out 2>&1
	echo "exit $?"
	cat out
	echo
}
try ''
try 'ranks 2'
try "$base
mciros 3"
try "$base
schedule zb-h3"
try "$base
schedule"
try "$base
schedule 1f1b now"
try "$base
F 2 ms"
try "$base
W 1 2 3 ms"
try "$base
W ms"
try "$base
W 1 hours"
try "$base
W 1 ms 2"
try "$base
W -1 ms"
try "$base
kept 1 ms"
try "$base
kept 1e999"
try "$base
memory 1 2 3"
try "$base
stages 3"
try "$base
stages 4
schedule 1f1b"
try "$base
skip 0 1 1 ms"
try "$base
skip 0 1"
try "$base
skip 0.5 1 1 ms"
try 'ranks 2
micros 2
F 1 ms'
try 'ranks 2.5
micros 2 3
F 1
B 1'
try 'ranks 65536
micros 65536
F 1
B 1'
"$SBPCC" --simulate=none.pipe 2>&1
echo "exit $?"
