#!/bin/sh
# Between the folders of ir/ and compiler/ includes and calls go one way: no folder reaches itself again through others.
# Calls are read from the objects of the plain build, whose names are the paths of their sources; a folder is the
# directory of the source.  Where there is a circle, each arrow of it is named with one symbol or header.
set -u
cd "$ROOT" || exit 1
find ir compiler -name '*.c' -o -name '*.h' | sort >"$TMP/files"
find "$PLAIN" -name 'ir_*.c.o' -o -name 'compiler_*.c.o' | sort >"$TMP/objects"
{
	sed 's/^/file /' "$TMP/files"
	xargs grep -o '^#include "[^"]*"' /dev/null <"$TMP/files" | sed 's/^\([^:]*\):#include "\(.*\)"/include \1 \2/'
	xargs nm -A -g <"$TMP/objects" | sed 's/^\([^:]*\):/symbol \1 /'
} | awk '
function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
function arrow(from, to, what, where) {
	if (from == to || (from, to) in why)
		return
	why[from, to] = what " (" where ")"
	direct[from] = direct[from] " " to
	known[from] = known[to] = 1
}
function header(from, name,   path, parts, n, i, k) {   # beside the file that includes it, else in a folder of its own
	path = folder(from) "/" name
	while (sub(/[^\/]+\/\.\.\//, "", path))
		;
	if (path in file)
		return path
	for (k in file)
		if (length(k) > length(name) && substr(k, length(k) - length(name)) == "/" name)
			return k
	return ""
}
$1 == "file" {
	file[$2] = 1
	o = $2
	gsub(/\//, "_", o)
	source[o ".o"] = $2
}
$1 == "include" { included[$2 " " $3] = 1 }
$1 == "symbol" {
	o = $2
	sub(/.*\//, "", o)
	if (!(o in source))
		next                            # of a file that is gone
	built[source[o]] = 1
	name = $NF
	if ($(NF - 1) == "U")
		used[source[o] " " name] = 1
	else
		defined[name] = source[o]
}
function reaches(from, to,   list, n, i) {
	if (from == to)
		return 1
	seen[from] = 1
	n = split(direct[from], list, " ")
	for (i = 1; i <= n; i++)
		if (!(list[i] in seen) && reaches(list[i], to))
			return 1
	return 0
}
END {
	for (f in file)
		if (f ~ /\.c$/ && !(f in built)) {
			print "not ok layers: " f " has no object in the plain build"
			bad = 1
		}
	for (i in included) {
		split(i, at, " ")
		h = header(at[1], at[2])
		if (h != "")
			arrow(folder(at[1]), folder(h), "#include \"" at[2] "\"", at[1])
	}
	for (u in used) {
		split(u, at, " ")
		if (at[2] in defined)
			arrow(folder(at[1]), folder(defined[at[2]]), at[2], at[1])
	}
	for (a in why) {
		narrow++
		split(a, at, SUBSEP)
		split("", seen)
		if (reaches(at[2], at[1]))
			circle[++ncircle] = at[1] " -> " at[2] ": " why[a]
	}
	for (f in known)
		nfolder++
	if (ncircle) {
		print "not ok layers: folders that use each other"
		for (i = 1; i <= ncircle; i++)
			print "    " circle[i]
	} else if (nfolder < 10 || narrow < 20)
		print "not ok layers: only " nfolder + 0 " folders and " narrow + 0 " arrows were found"
	else if (!bad)
		print "ok layers: " nfolder " folders, " narrow " arrows, no circle"
}'
