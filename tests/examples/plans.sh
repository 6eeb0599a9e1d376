# The plans of examples/plans: the plan has what they pin, and the losses are those of one rank.
STEPS=5
build() { # option of sbpcc...: one tree, in which what is as it was is not compiled again
	"$SBPCC" "$ROOT/examples/gpt.ir" --train="data: points(classes: 256), batch: 6" "$@" -o tree >log 2>&1 || return 1
	make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1
}
losses() { tree/trainer --every=1 --steps=$STEPS 2>err | grep -o '^step *[0-9]* *loss [^ ]*'; }
build || { echo "not ok one: $(head -n 1 log)" && exit 1; }
losses >one.txt
# value form: as the plan has it
is() {
	awk -v name="\"$1\" @" -v want="@sbp($2)" '(i = index($0, name)) { t = substr($0, i); t = substr(t, index(t, "@sbp(")); if (substr(t, 1, length(want)) == want) found = 1 } END { exit !found }' tree/plan.ir ||
		{ echo "not ok $name-form: $1 is not $2" && bad=1; }
}
for f in "$ROOT"/examples/plans/*.place; do
	name=$(basename "$f" .place) bad=
	build --place="$f" || { echo "not ok $name: $(head -n 1 log)" && continue; }
	case $name in
	data) is h0.qkv.w B && is h0.qkv.w.m B && is x1.mid 'S(0)' ;;
	zero1) is h0.qkv.w B && is h0.qkv.w.grad B && is h0.qkv.w.m 'S(0)' ;;
	zero2) is h0.qkv.w B && is h0.qkv.w.grad 'S(0)' && is h0.qkv.w.m 'S(0)' ;;
	zero3) is h0.qkv.w 'S(0)' && is h0.qkv.w.m 'S(0)' && is x1.mid 'S(0)' ;;
	tensor) is h0.qkv.w 'S(1/1)' && is x1.seen 'S(2/0)' && is x1.act 'S(2)' && is x1.down0 P ;;
	sequence) is h0.qkv.w 'S(1/1)' && is x1.mid 'S(1)' && is x1.n1 'S(1)' && is x1.down0 P ;;
	hybrid) is h0.qkv.w 'B, S(1/1)' && is h0.qkv.w.m 'S(0), S(1/1)' && is x1.seen 'S(0), S(2/0)' && is x1.down0 'S(0), P' ;;
	*) echo "not ok $name: this test does not know it" && bad=1 ;;
	esac
	losses >many.txt
	paste one.txt many.txt | awk -v n=$STEPS '{ d = $4 - $8; if (d < 0) d = -d; if ($2 != $6 || d > 1e-4 * $4 || $8 == "") bad = 1; k++ } END { exit bad || k != n }' &&
		{ [ -n "$bad" ] || echo "ok $name"; } || echo "not ok $name: losses differ from one rank's: $(tail -n 1 one.txt), $(tail -n 1 many.txt) $(head -n 1 err)"
done
