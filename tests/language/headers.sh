# Headers of ir/ and compiler/ are tables of contents: a section for each file, under which each function that the file
# defines stands; its name begins with the name of the file.  No header has more than 200 lines.
#
# Exceptions: the words of messages (die, err_at, ...), and the files of a reader, which share the name of their folder
# (onnx_attr.c: onnx_..., parse_value.c: parse_...).
export LC_ALL=C
cd "$ROOT" || exit 1
find ir compiler -name '*.h' | sort >"$TMP/headers"
wc -l $(cat "$TMP/headers") runtime/*.h kernels/*.h | awk '$2 != "total" && $1 > 200 { print; n++ } END { exit n > 0 }' >"$TMP/long" &&
	echo "ok lengths, $(wc -l <"$TMP/headers") headers" || { echo "not ok lengths: headers of more than 200 lines" && sed 's/^/    /' "$TMP/long"; }
{
	find ir compiler -name '*.c' | sed 's/^/file /'
	find "$PLAIN" -name 'ir_*.c.o' -o -name 'compiler_*.c.o' | sort | xargs nm -A -g --defined-only | sed -n 's/^\([^:]*\):[0-9a-f]* T /symbol \1 /p'
	while read -r h; do sed "s|^|line $h |" "$h"; done <"$TMP/headers"
} | awk '
function base(path) { sub(/.*\//, "", path); sub(/\.[a-z]*$/, "", path); return path }
function begins(name, b) { return name == b || index(name, b "_") == 1 }
$1 == "file" { flat = $2; gsub(/\//, "_", flat); path[flat] = $2; next }
$1 == "symbol" {
	object = $2
	sub(/.*\//, "", object); sub(/\.o$/, "", object)
	if (!(object in path)) next
	at[$3] = path[object]
	b = base(path[object])
	shared = b ~ /^onnx_/ ? "onnx" : b ~ /^parse_/ ? "parse" : b
	if (!begins($3, b) && !begins($3, shared) && $3 !~ /^(die|err_at|warn_at|note_at|fail_at)$/ && $3 != "main")
		print "name " $3 " is defined in " path[object]
	next
}
{
	if ($2 != header) { header = $2; section = " " base(header) " " }
	text = $0
	sub(/^line [^ ]+ ?/, "", text)
	if (match(text, /^\/\* (---- )?[a-z_0-9]+\.c(, [a-z_0-9]+\.c)*/)) {
		section = substr(text, RSTART, RLENGTH)
		gsub(/[^a-z_0-9.]+/, " ", section); gsub(/\.c/, "", section)
		section = section " "
	}
	if (text !~ /^[A-Za-z_]/ || text ~ /^static /) next
	while (match(text, /[A-Za-z_][A-Za-z_0-9]*\(/)) {
		name = substr(text, RSTART, RLENGTH - 1)
		text = substr(text, RSTART + RLENGTH)
		if (!(name in at)) continue
		seen++
		if (!index(section, " " base(at[name]) " "))
			print "section " header ": " name " of " at[name] " stands under" section
	}
}
END { print "seen " seen + 0 }' >"$TMP/found"
[ "$(sed -n 's/^seen //p' "$TMP/found")" -gt 500 ] || echo "not ok headers: they were not read"
for what in name section; do
	n=$(grep -c "^$what " "$TMP/found")
	[ "$n" = 0 ] && echo "ok $what" || { echo "not ok $what: $n functions" && sed -n "s/^$what /    /p" "$TMP/found"; }
done
