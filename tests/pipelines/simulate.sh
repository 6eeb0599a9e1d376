# --simulate of a model: its report agrees with the plan that a compilation prints; the trace is JSON in which the tasks of a lane do not overlap and
# the last one ends with the makespan; no program is written.  Names of a model may have any bytes.  Bad uses have exact messages.
set -u
for s in 1f1b zb-h1 solver; do
	set -- --ranks=4 --stages=4
	[ $s = solver ] || set -- "$@" --schedule=$s
	"$SBPCC" "$HERE/net.ir" -o tree "$@" >plan 2>&1 || { echo "not ok $s: not compiled"; tail -n 3 plan; continue; }
	rm -rf tree
	"$SBPCC" --simulate "$HERE/net.ir" "$@" --trace=t.json --html=t.html >out 2>err || { echo "not ok $s: exit $?"; cat err; continue; }
	sed -n 's/^predicted: \([0-9.]*\) ms.*, \([0-9.]*\) ms.*/\2 \1/p; s/^bound: .*than \([0-9.]*\) ms.*gap \([0-9.]*\).*/\1 \2/p' plan >want
	sed -n 's/^span.*makespan \([0-9.]*\) ms, period \([0-9.]*\) ms.*/\1 \2/p; s/^bound: .*than \([0-9.]*\) ms.*gap \([0-9.]*\).*/\1 \2/p' out >got
	awk '$1 ~ /^[0-9]+$/ && /%/ && $3 ~ /[0-9]/ { for (i = 5; i < 12; i++) if ($i ~ /%$/) printf "%.1f\n", $i }' plan >>want
	awk '/ %$/ && $1 ~ /^[0-9]+$/ { printf "%.1f\n", $(NF - 1) }' out >>got
	paste want got | awk -v s=$s '{ for (i = 1; i <= NF / 2; i++) { d = $i - $(i + NF / 2); bad += d > 0.11 || d < -0.11 || (NF == 4 && (d > 0.001 || d < -0.001)) } }
		END { print (NR == 6 && !bad ? "ok" : "not ok") " " s " as planned" }'
	[ "$(grep -c '^   [0-3]  [0-9]*$' out)" = 4 ] && [ "$(sed -n '/waits ms/,/^$/p' out | grep -c '^   [0-3] .*a piece of')" = 4 ] && echo "ok $s memory and waits" ||
		echo "not ok $s memory and waits"
	awk -v s=$s 'function number(k) { match($0, "\"" k "\":[0-9.]*"); return substr($0, RSTART + length(k) + 3, RLENGTH - length(k) - 3) + 0 }
		FNR == NR { if (/^span/) makespan = $4; next }
		/"ph":"X"/ { k = number("pid") "," number("tid"); at = number("ts"); n++; overlap += at < end[k] - 0.002; end[k] = at + number("dur")
			last = end[k] > last && number("tid") == 0 ? end[k] : last }
		END { d = last / 1000 - makespan; print (n > 100 && !overlap && d < 0.002 && d > -0.002 ? "ok" : "not ok: " n " tasks, " overlap + 0 " overlap, end " last) " " s " trace" }' out t.json
	grep -q '<canvas' t.html && echo "ok $s page" || echo "not ok $s page"
done
[ ! -e tree ] && echo "ok nothing written" || echo "not ok nothing written"
# a value with quotes, a backslash, a control byte and one that is no UTF-8
sed "s/\\bh2\\b/\"h\\\\\"\\\\\\\\\\\\x01\\\\xff\"/g" "$HERE/layers.ir" >odd.ir
"$SBPCC" --simulate odd.ir --ranks=2 --stages=2 --schedule=1f1b --trace=odd.json >out 2>err || { echo "not ok odd names: exit $?"; cat err; }
if command -v python3 >/dev/null; then
	python3 -m json.tool odd.json >/dev/null && python3 -m json.tool t.json >/dev/null && echo "ok JSON" || echo "not ok JSON: does not parse"
fi
LC_ALL=C tr -d '\n\t -~' <out | grep -q . && echo "not ok odd names: raw bytes are printed" || echo "ok odd names"

refuse() { # what, exit, message, options
	"$SBPCC" "${@:4}" >out 2>err
	code=$?
	[ $code = "$2" ] && [ "$(head -n 1 err)" = "sbpcc: $3" ] && echo "ok $1" || { echo "not ok $1: exit $code"; cat err; }
}
refuse "no pipeline" 1 "error: --simulate: the model is no pipeline; --stages=N cuts it into one" --simulate "$HERE/net.ir" --ranks=2
refuse "an unknown schedule" 1 "error: no schedule is called zb-9; there are gpipe, 1f1b, pe, zb-h1, zb-h2, interleaved, zb-v, v-half, v-min, dualpipev, and files of PyTorch (NAME.csv)" \
	--simulate "$HERE/net.ir" --ranks=2 --stages=2 --schedule=zb-9
refuse "a text and a model" 2 "--simulate=FILE simulates a text, but $HERE/net.ir is given, too: --simulate without a file simulates a model" --simulate=t.pipe "$HERE/net.ir"
refuse "inference" 2 "--simulate of a model plays its training step: it does not go with --print, --print-io, --write, --eval, --infer or --stop-after" --simulate "$HERE/net.ir" --infer
refuse "a trace of a compilation" 2 "--trace needs --simulate" "$HERE/net.ir" --trace=t.json -o tree
refuse "a trace in a folder that does not exist" 4 "error: cannot write none/t.json: No such file or directory" --simulate "$HERE/net.ir" --ranks=2 --stages=2 --trace=none/t.json
refuse "nothing to simulate" 2 "no model given" --simulate
