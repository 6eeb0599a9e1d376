# ZeRO 1 to 3 inside stages, 2 stages of 2 ranks.  Under any-ranks they have the bits of one rank.  Without it, the gradients of a stage are
# reduced once, right behind its last gradient of weights and before other stages have ended: in the plan, in the trace, and where a file of
# PyTorch's says so; with the bits of 2 ranks without stages, which add in the same order.  (Of ZeRO 3 the losses agree: plans differ in what is
# gathered and what is computed in parts.)
set -u
model=$HERE/layers.ir
split='"x", "target", "h1", "a1", "h2", "h3", "a3", "h4", "a1.grad", "h2.grad", "h3.grad", "a3.grad", "h4.grad"'
weights='"w1", "w2", "w3", "w4"' state='"*.m", "*.v"'
gradients='"w1.grad", "w2.grad", "w3.grad", "w4.grad"'
pins() { # level: which values are split; AXES is "" or "_, "
	echo "@pin($split, sbp: [${AXES}S(0)])"
	case $1 in
	0) echo "@pin($weights, $state, sbp: [${AXES}B])" ;;
	1) echo "@pin($weights, sbp: [${AXES}B])" "@pin($state, sbp: [${AXES}S(0)])" ;;
	2) echo "@pin($weights, sbp: [${AXES}B])" "@pin($state, $gradients, sbp: [${AXES}S(0)])" ;;
	3) echo "@pin($weights, $state, sbp: [${AXES}S(0)])" ;;
	# gradients in columns, state in rows: a transfer that adds nothing
	turn) echo "@pin($weights, sbp: [${AXES}B])" "@pin($gradients, sbp: [${AXES}S(1)])" "@pin($state, sbp: [${AXES}S(0)])" ;;
	esac
}
tree() { # name, level (of pins), options: compiled and run; weights in NAME/x
	local name=$1 level=$2
	shift 2
	{ pins "$level" && echo "${MESH:-}"; } >"$name.pins"
	"$SBPCC" "$model" -o "$name" --place="$name.pins" "$@" >"$name.out" 2>&1 && make -s -C "$name" CFLAGS=-O1 >>"$name.out" 2>&1 &&
		"$name/trainer" --export="$name/x" --log="$name/log" --threads=1 >>"$name.out" 2>&1 && return
	echo "not ok $name: exit $?"
	tail -n 4 "$name.out" | sed 's/^/    /'
	return 1
}
same() { # what, tree, tree
	if cmp -s "$2/x/model.safetensors" "$3/x/model.safetensors"; then echo "ok $1"; else echo "not ok $1: other weights"; fi
}
# The transfers of a block of the plan: by the ranges of blocks in the actions of their role.
transfers() { # tree, block
	awk -v want="$2" '
		/"program": "step"/ { on = 1 }
		/"program": "eval"/ { on = 0 }
		on && /"blocks":/ { match($0, "\"" want "\", \"from\": [0-9]+, \"to\": [0-9]+"); split(substr($0, RSTART, RLENGTH), f, /[:,]/); from = f[3] + 0; to = f[5] + 0 }
		on && match($0, /"action": "a[0-9]+"/) { id = substr($0, RSTART + 12, RLENGTH - 13) + 0
			if (id >= from && id < to && match($0, /"transfer": "[a-z_]+"/)) print substr($0, RSTART + 13, RLENGTH - 14) }' "$1/plan.json" | sort -u | paste -sd' '
}
tasks() { sed -n 's/^[^"]*"tasks": \[\(.*\)\], "actions".*/\1/p' "$1/plan.json" | sed -n "$2p" | sed 's/"\([A-Za-z0-9]*\)", \(-*[0-9]*\)\]/\1,\2/g; s/[][ ]//g; s/,\([A-Za-z]\)/ \1/g'; }
expect() { # what, wanted, found
	if [ "$2" = "$3" ]; then echo "ok $1"; else printf 'not ok %s\n    wanted %s\n    found  %s\n' "$1" "$2" "$3"; fi
}

# One rank has no plan but the model's; the bits of any other are its own under any-ranks.
any=--deterministic=any-ranks
"$SBPCC" "$model" -o one $any >one.out 2>&1 && make -s -C one CFLAGS=-O1 >>one.out 2>&1 && one/trainer --export=one/x --threads=1 >>one.out 2>&1 ||
	{ echo "not ok one: $(tail -n 1 one.out)"; exit 1; }
AXES='_, '
for level in 1 2 3 turn; do
	tree any$level $level $any --ranks=4 --stages=2 --schedule=1f1b || continue
	same "ZeRO $level, any-ranks" one any$level
done
expect "any-ranks: what is added is reduced with its micro-batch" "reduce_scatter" "$(transfers any1 BW0 | tr ' ' '\n' | grep reduce)"
expect "any-ranks: what is only moved is moved once" "all_to_all" "$(transfers anyturn reduce0)"

MESH='@mesh(m, cpu, [2, 2]) @pipeline(axis: 0, stages: 4)'
for s in interleaved zb-v; do
	tree any-$s turn $any --schedule=$s && same "$s, any-ranks" one any-$s
done
MESH=

# Without any-ranks.
for level in 0 1 3; do
	AXES= tree flat$level $level --ranks=2 && AXES='_, ' tree stages$level $level --ranks=4 --stages=2 --schedule=zb-h1
done
same "data parallel, the bits of 2 ranks without stages" flat0 stages0
same "ZeRO 1, the bits of 2 ranks without stages" flat1 stages1
losses() { sed -n 's/.*"loss": *\([-0-9.e]*\).*/\1/p' "$1/log"; }
paste <(losses flat3) <(losses stages3) | awk '
	{ n++; d = $1 - $2; bad += d > 1e-6 * $1 || -d > 1e-6 * $1 }
	END { print n == 4 && !bad ? "ok ZeRO 3, losses" : "not ok ZeRO 3, losses: " bad + 0 " of " n + 0 " steps differ" }'
expect "data parallel" "all_reduce, all_reduce" "$(transfers stages0 reduce0), $(transfers stages0 reduce1)"
expect "ZeRO 1" "reduce_scatter, reduce_scatter" "$(transfers stages1 reduce0), $(transfers stages1 reduce1)"
expect "ZeRO 1, the update" "all_gather" "$(transfers stages1 update | tr ' ' '\n' | grep -v 'slice\|send')"
expect "ZeRO 3" "reduce_scatter" "$(transfers stages3 reduce0)"
MESH='@mesh(m, cpu, [2, 2]) @pipeline(axis: 0, stages: 4)'
tree chunks 1 --schedule=interleaved && same "two stages of a rank" flat1 chunks
expect "two stages of a rank: the later one is reduced first" "BW2,3 reduce2,-1 BW0,3 reduce0,-1 update,-1" \
	"$(tasks chunks 1 | tr ' ' '\n' | grep 'BW.,3\|reduce\|update' | paste -sd' ')"

# A file that reduces the later stage only behind all others.
cat >late.csv <<'F'
0F0,0F1,2F0,2F1,2B0,2B1,0F2,0F3,2F2,2F3,2B2,2B3,0B0,0B1,2REDUCE_GRAD,0B2,0B3,0REDUCE_GRAD
1F0,1F1,3F0,3F1,3B0,3B1,1B0,1B1,1F2,1F3,3F2,3F3,3B2,3B3,1B2,1B3
F
MESH="$MESH @place(\"h1\", stage: 0) @place(\"h2\", stage: 1) @place(\"a3\", stage: 2) @place(\"loss\", stage: 3)"
tree late 1 --schedule=late.csv --write-schedule=again.csv && same "REDUCE_GRAD of a file" flat1 late
expect "REDUCE_GRAD of a file: where it stands" "BW0,1 reduce2,-1 BW0,2 BW0,3 reduce0,-1 update,-1" \
	"$(tasks late 1 | sed 's/.* BW0,1 /BW0,1 /')"
cmp -s late.csv again.csv && echo "ok it is written as it was" || echo "not ok it is not written as it was"

# In time: stage 1 reduces before the last backward block of stage 0 has ended, in most steps.
MESH=
printf 'BW0 0.03\nBW1 0.001\nF0 0.001\nF1 0.001\n' >pace
tree paced 1 --ranks=4 --stages=2 --schedule=1f1b && RT_PACE=pace paced/trainer --trace=trace.json >paced.run 2>&1
sed -n 's/.*"name":"\([A-Za-z]*[0-9]\)[^"]*","cat":"task".*"ts":\([0-9.]*\),"dur":\([0-9.]*\),"pid":\([0-9]*\).*/\1 \2 \3 \4/p' trace.json | sort -k2,2n | awk '
	$1 == "reduce1" && $4 == 2 { begun[r++] = $2 }
	$1 == "BW0" && $4 == 0 { ended[int(n / 4)] = $2 + $3; n++ }
	END { for (i = 0; i < r; i++) early += begun[i] < ended[i]
		print (r == 4 && n == 16 && early > 2 ? "ok" : "not ok") " stage 1 reduces while stage 0 computes" (early > 2 ? "" : ": in " early + 0 " of " r + 0 " steps") }'
