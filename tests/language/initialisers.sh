# A struct with more than four fields is initialised by the names of its fields: in our sources, in templates, and in the
# trees that sbpcc writes.  The scanner knows a struct by its name in capitals and small letters (Form, RtActor).
export LC_ALL=C
cat >scan.awk <<'A'
# Comments are left out, strings and characters become 0.
function code(s,    out, c) {
	while (s != "") {
		if (comment) {
			if (!(c = index(s, "*/"))) return out
			s = substr(s, c + 2); comment = 0
		} else if (match(s, /\/\*|\/\/|"([^"\\]|\\.)*"|'([^'\\]|\\.)*'/)) {
			out = out substr(s, 1, RSTART - 1)
			c = substr(s, RSTART, 2)
			s = substr(s, RSTART + RLENGTH)
			if (c == "//") return out
			if (c == "/*") comment = 1; else out = out "0"
		} else {
			return out s
		}
	}
	return out
}
# The kind of a list by what stands before it: STRUCT, ROWS (an array of structs), or something else.
function kind_of(before) {
	sub(/[ \t]+$/, "", before)
	if (before ~ /\((const )?(struct )?[A-Z][A-Za-z0-9_]*[a-z][A-Za-z0-9_]*\)$/) return "STRUCT"
	if (before ~ /\((const )?(struct )?[A-Z][A-Za-z0-9_]*[a-z][A-Za-z0-9_]*\[[^]]*\]\)$/) return "ROWS"
	if (before ~ /(struct [a-z_]+|[A-Z][A-Za-z0-9_]*[a-z][A-Za-z0-9_]*|\}) [a-zA-Z0-9_]+ =$/) return "STRUCT"
	if (before ~ /(struct [a-z_]+|[A-Z][A-Za-z0-9_]*[a-z][A-Za-z0-9_]*|\}) [a-zA-Z0-9_]+\[[^]]*\] =$/) return "ROWS"
	if (before ~ /, \*?[a-z][A-Za-z0-9_]* =$/ && declared[depth] == "STRUCT") return "STRUCT"        # Form a = ..., b =
	return kind[depth] == "ROWS" && before ~ /([{,]|\[[A-Za-z0-9_]+\] =)$/ ? "STRUCT" : "OTHER"
}
function ended() { # an item of a list ends
	gsub(/[ \t]/, "", item[depth])
	if (item[depth] != "" && item[depth] !~ /^\./) positional[depth]++
	item[depth] = ""
}
FNR == 1 { depth = comment = 0; before = "" }
/^[ \t]*#/ && !/\\$/ { next }
{
	line = code($0)
	while (match(line, /[][{}(),;]/)) {
		c = substr(line, RSTART, 1)
		text = substr(line, 1, RSTART - 1)
		line = substr(line, RSTART + 1)
		before = before text
		item[depth] = item[depth] text
		if (c == "{" || c == "(" || c == "[") {
			k = c == "{" ? kind_of(before) : "OTHER"
			if (c == "{") declared[depth] = before ~ /= *$/ ? k : ""
			item[depth] = item[depth] c
			kind[++depth] = k; positional[depth] = 0; item[depth] = ""; from[depth] = FNR
		} else if (c == "}" || c == ")" || c == "]") {
			ended()
			if (kind[depth] == "STRUCT" && positional[depth] > 4)
				printf "%s:%d: %d fields without names\n", FILENAME, from[depth], positional[depth]
			depth -= depth > 0
		} else {
			ended()
			if (c == ";") { declared[depth] = ""; before = "" }
		}
		before = before c
	}
	item[depth] = item[depth] line
	before = substr(before line, length(before line) > 200 ? length(before line) - 150 : 1)
	before = before " "
}
A
check() { # what, files
	local what=$1 n
	shift
	[ $# -gt 0 ] && awk -f scan.awk "$@" >found || { echo "not ok $what: no files" && return; }
	n=$(wc -l <found)
	[ "$n" = 0 ] && echo "ok $what" || { echo "not ok $what: $n initialisers" && sed "s|^$ROOT/||; s|^|    |" found; }
}
# The check itself: it finds each of these, and nothing else.
cat >bad.c <<'C'
Form a = { 1, 2, 3, 4, 5 };                                             /* found */
const Form b = { .x = 1, .y = 2, .z = 3, .u = 4, .v = 5 }, c = { 1, 2, 3, 4, 5 };       /* found: c */
static const Row rows[] = {
	{ 1, 2, 3, 4 },
	{ 1, 2, "a, b", f(4, 5, 6), { 7 } },                            /* found */
	[TWO] = { 1, 2, 3, 4, 5 },                                      /* found */
};
static const struct { int a, b, c, d, e; } more[] = { { 1, 2, 3, 4, 5 } };     /* found */
int n[] = { 1, 2, 3, 4, 5 }, m[2][5] = { { 1, 2, 3, 4, 5 }, { 0 } };
void f(void) { g(&(Form){ 1, 2, 3, 4, 5 }, (int[]){ 1, 2, 3, 4, 5 }); }        /* found */
Side s = { .perm = { 1, 2, 3, 4, 5 } };
C
awk -f scan.awk bad.c | cut -d : -f 2 >got
grep -n 'found' bad.c | cut -d : -f 1 >want
cmp -s got want && echo "ok scanner" || echo "not ok scanner: lines $(paste -s -d ' ' got), not $(paste -s -d ' ' want)"
for d in ir compiler runtime kernels templates tests bench; do
	find "$ROOT/$d" -name '*.[ch]' -o -name '*.cu' | sort >list
	mapfile -t files <list
	check "$d" "${files[@]}"
done
for o in gpt:--ranks=2 gpt:--target=cuda cnn:--ranks=2 cnn:--target=cuda lstm:--infer; do
	"$SBPCC" "$ROOT/examples/${o%:*}.ir" "${o#*:}" -o tree >log 2>&1 || { echo "not ok $o: $(head -n 1 log)" && continue; }
	find tree -name '*.[ch]' -o -name '*.cu' | sort >list
	mapfile -t files <list
	check "tree of $o" "${files[@]}"
	rm -r tree
done
