# Each annotation that the sources look for by name is a row of the table in ir/annot/annot.c: a name that is no row is
# never found, in silence.
export LC_ALL=C
cd "$ROOT" || exit 1
grep -oE '\.family = "@", \.name = "[a-z_]+"' ir/annot/annot.c | grep -oE '"[a-z_]+"$' | sort -u >"$OLDPWD/rows"
find ir compiler tests -name '*.c' -print0 |
	xargs -0 grep -oE 'annot_find\([^;"]*"[a-z_]+"' /dev/null | sort -u >"$OLDPWD/asked"
cd "$OLDPWD" || exit 1
[ "$(wc -l <rows)" -gt 20 ] && [ "$(wc -l <asked)" -gt 50 ] || echo "not ok sources: they were not read"
sed 's/.*"\([a-z_]*\)"$/"\1"/' asked | sort -u | comm -23 - rows >missing
while read -r name; do
	echo "not ok $name is no row of ir/annot/annot.c:" && grep -F "$name" asked | sed 's/:.*//; s/^/    /'
done <missing
[ -s missing ] || echo "ok annotations, asked for $(wc -l <asked) times"
