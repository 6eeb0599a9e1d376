. "$HERE/fuzz"
find "$ROOT/tests/ir" "$ROOT/examples" -name '*.ir' -size -16k >list 2>/dev/null
i=0
mkdir -p all
while read -r f; do cp "$f" "all/$((i += 1)).ir"; done <list
[ "$i" -gt 0 ] && fuzz text all/* || fuzz text
