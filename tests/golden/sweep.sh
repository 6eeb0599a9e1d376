# long: yes
# Every optimizer and every schedule has PyTorch's losses over 20 steps, or those of its paper's formula if PyTorch
# does not have it.
. "$HERE/common.bash"
grep -v '^#' "$HERE/sweep/cases.txt" | while IFS='|' read -r how wide narrow; do
	name=$(echo "$how" | sed 's/^loss: loss, //; s/, batch:.*//')
	tree "$HERE/sweep/model.ir" --train="$how" && run "$HERE/sweep/cases.txt" || { echo "not ok $name: $(head -n 1 log)" && continue; }
	sed -n 's/.*"loss":\([^,}]*\).*/\1/p' steps.log >got
	paste <(tr ' ' '\n' <<<"$wide") <(tr ' ' '\n' <<<"$narrow") got | awk '
		function off(x, y) { x = x / y - 1; return x < 0 ? -x : x }
		{ w[NR] = $1; g[NR] = $3; d = 10 * off($2, $1); if (d > far) far = d }
		END {
			if (far < 2 ^ -23) far = 2 ^ -23
			if (far > 1e-4) far = 1e-4
			for (i = 1; i <= NR; i++) if (NF != 3 || off(g[i], w[i]) > far) { print " step " i - 1 ": " g[i] ", not " w[i] "; " far " is allowed"; bad = 1 }
			exit bad || NR != 20
		}' >why
	if [ $? -eq 0 ]; then echo "ok $name"; else echo "not ok $name: losses differ" && head -n 3 why; fi
done
