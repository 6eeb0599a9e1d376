# w.ema is w after the first step, then keep * w.ema + (1 - keep) * w; a frozen parameter does not change and has no
# state.
"$PLAIN/test-equiv-evaluator" "$HERE/optimizers.ir" 12 'optimizer: adam(lr: 0.1), ema: 0.8' w w.ema u.ema >got || exit 1
awk '$1 == "w" { for (i = 2; i <= NF; i++) avg[i] = n ? 0.8 * avg[i] + 0.2 * $i : $i; n++ }
	$1 == "w.ema" { for (i = 2; i <= NF; i++) { d = avg[i] - $i; if (d > 1e-6 || d < -1e-6) { print "step " n ": " avg[i] " and " $i; bad = 1 } m++ } }
	END { exit bad || m != 36 }' got && echo "ok average" || echo "not ok average: differs from the weights'"
sed '3i @freeze("u")' "$HERE/optimizers.ir" >frozen.ir
"$PLAIN/test-equiv-evaluator" frozen.ir 12 'optimizer: adam(lr: 0.1, weight_decay: 0.1), ema: 0.8' w u >got || exit 1
awk '$1 == "u" { n++; if ($2 != 1.5 || $3 != 1.5) bad = 1 } $1 == "w" { if ($2 == 1.5) bad = 1 } END { exit bad || n != 12 }' got && echo "ok frozen" || echo "not ok frozen: it moved"
"$SBPCC" frozen.ir --train='optimizer: adam(lr: 0.1)' --dump-after=train --stop-after=train >dump || exit 1
! grep -q '"u\.' dump && grep -q '"w\.m"' dump && echo "ok frozen-has-no-state" || echo "not ok frozen-has-no-state: $(grep '"u\.' dump | head -n 1)"
