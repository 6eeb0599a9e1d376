# Every value that the program of an example has in memory is what the reference evaluator computes from the same graph.
# seconds: 900
cp "$ROOT"/examples/*.ir .
how='data: points(classes: 2), steps: 3'
compare() { # name, part, option of the program...
	local name=$1 part=$2
	shift 2
	rm -rf dump
	tree/trainer --dump=dump "$@" >log 2>&1 || { echo "not ok $name-$part: $(head -n 1 log)" && return; }
	if "$PLAIN/test-equiv-values" "$name.ir" dump "$part" "$how" >got.txt 2>&1; then echo "ok $name-$part"; else echo "not ok $name-$part: values differ"; fi
	sed 's/^\([^#]\)/ \1/' got.txt | head -n 12
}
for f in *.ir; do
	name=${f%.ir}
	rm -rf new
	"$SBPCC" "$f" --train="$how" -o new >log 2>&1 || { echo "not ok $name: $(head -n 1 log)" && continue; }
	(cd new && find . -type f) | while read -r g; do     # what is as it was is not compiled again
		cmp -s "new/$g" "tree/$g" || { mkdir -p "tree/$(dirname "$g")" && cp "new/$g" "tree/$g"; }
	done
	make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 || { echo "not ok $name: $(head -n 1 log)" && continue; }
	compare "$name" step --steps=3 --dump-step=2
	compare "$name" eval --eval
done
