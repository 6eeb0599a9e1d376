# Lines of C and CUDA have at most 120 columns, with a tab stop every eight columns: those of the compiler, of what is
# copied into trees, of templates, of tests, and of the trees that sbpcc writes.
set -u
check() { # name, a file with one path per line
	xargs awk '{
		columns = 0
		n = split($0, part, "\t")
		for (i = 1; i <= n; i++)
			columns += length(part[i]) + (i < n ? 8 - (columns + length(part[i])) % 8 : 0)
		if (columns > 120)
			print FILENAME ":" FNR ": " columns " columns"
	}' <"$2" >long || { echo "not ok $1: not all files can be read" && return; }
	if [ -s long ]; then
		echo "not ok $1: $(wc -l <long) lines have more than 120 columns" && head -n 20 long | sed 's/^/  /'
	else
		echo "ok $1"
	fi
}
# The check itself: a line of 120 columns passes, one of 121 does not.
printf 'ab\t%0112d\n' 0 >fits && printf 'ab\t%0113d\n' 0 >exceeds
echo fits >list && check fits list | grep -qx 'ok fits' || echo "not ok check: a line of 120 columns is refused"
echo exceeds >list && check exceeds list | grep -q '^  exceeds:1: 121 columns' || echo "not ok check: a line of 121 columns passes"

folders="ir compiler runtime kernels tests bench examples"
(cd "$ROOT" && if [ -e .git ]; then git ls-files; else find $folders -type f; fi) >tracked
for folder in $folders; do
	grep -E "^$folder/.*\.(c|h|cu|cuh)$" tracked | sed "s|^|$ROOT/|" >list
	if [ -s list ]; then check "$folder, $(wc -l <list) files" list; else echo "not ok $folder: it has no C files"; fi
done
for o in gpt:--ranks=2 gpt:--target=cuda cnn:--ranks=2 lstm:--infer bert:--ranks=2; do
	"$SBPCC" "$ROOT/examples/${o%:*}.ir" "${o#*:}" -o tree >log 2>&1 || { echo "not ok $o: $(head -n 1 log)" && continue; }
	find tree -name '*.[ch]' -o -name '*.cu' >list
	if [ -s list ]; then check "tree of $o" list; else echo "not ok tree of $o: it has no C files"; fi
	rm -r tree
done
