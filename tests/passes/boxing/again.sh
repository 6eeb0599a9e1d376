# The pass, run on its own result, inserts nothing.
for f in "$HERE"/*.ir; do
	name=$(basename "$f" .ir)
	args=$(sed -n 's/^# args: //p' "$f")
	# shellcheck disable=SC2086
	if "$SBPCC" $args --dump-after=boxing --stop-after=boxing "$f" >once.ir && "$SBPCC" $args --dump-after=boxing --stop-after=boxing once.ir >twice.ir &&
		cmp -s once.ir twice.ir; then echo "ok $name"; else echo "not ok $name: the second dump differs"; fi
done
