# The documents are true as far as a program can tell: links between them resolve, headings included; files, sections
# of ir/LANGUAGE.md and options that they name exist.
set -u
documents="README.md CONTRIBUTING.md CHANGELOG.md bench/README.md examples/README.md ir/LANGUAGE.md compiler/lanes/PIPELINES.md tests/exported/README.md"
"$SBPCC" --help >help
wrong=0
bad() { # document, what is wrong
	echo "not ok $1: $2"
	wrong=$((wrong + 1))
}
count() { # document, kind, number looked at
	[ "$3" -gt 0 ] && [ $wrong = 0 ] && echo "ok $1 $2, $3 of them"
	wrong=0
}
# The anchors that a browser makes of headings: small letters and digits, - for blanks, nothing else.
anchors() { sed -n '/^```/,/^```/!s/^#\{1,6\} //p' "$1" | tr 'A-Z ' 'a-z-' | sed 's/[^a-z0-9_-]//g'; }

for d in $documents; do
	f=$ROOT/$d n=0
	sed 's/`[^`]*`//g' "$f" | grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//' >links
	while read -r link; do
		n=$((n + 1))
		case $link in *://*) continue ;; esac
		file=${link%%#*}
		to=$f
		[ -z "$file" ] || to=$(dirname "$f")/$file
		[ -e "$to" ] || { bad "$d" "the link $link leads nowhere"; continue; }
		case $link in *'#'*) anchors "$to" | grep -qxF "${link#*#}" || bad "$d" "the link $link: $to has no such heading" ;; esac
	done <links
	count "$d" links $n

	# Names in capitals (ir/ops/NAME.ir) stand for any name; patterns must match something.
	n=0
	grep -oE '(^|[^A-Za-z0-9_./-])(\.ci|ir|compiler|runtime|kernels|templates|tests|examples|bench)/[A-Za-z0-9_./*?-]*' "$f" |
		sed 's/^[^a-z.]//; s/[.]*$//' | sort -u >files
	while read -r file; do
		case $file in *[A-Z][A-Z]* | */) case $file in *.md | */) ;; *) continue ;; esac ;; esac
		n=$((n + 1))
		compgen -G "$ROOT/$file" >/dev/null || bad "$d" "there is no $file"
	done <files
	count "$d" files $n

	n=0
	for s in $(tr '\n' ' ' <"$f" | grep -oE '(ir/LANGUAGE.md[])(a-z/A-Z.]*,? )?section [0-9]+(\.[0-9]+)?' | sed 's/.*section //' | sort -u); do
		n=$((n + 1))
		grep -q "^##* $s[. ]" "$ROOT/ir/LANGUAGE.md" || bad "$d" "ir/LANGUAGE.md has no section $s"
	done
	count "$d" sections $n

	# Options of sbpcc, of generated programs (runtime/), of tests/run; the last line: those of meson and mpirun.
	n=0
	for o in $(grep -oE '(^|[^-A-Za-z0-9])--[a-z][a-z-]*' "$f" | sed 's/.*--/--/; s/-$//' | sort -u); do
		n=$((n + 1))
		grep -q -- "^  $o\b" help || grep -rq --include='*.c' "\"${o#--}\"" "$ROOT/runtime" || grep -q -- "$o\b" "$ROOT/tests/run" ||
			case $o in --buildtype | --verbose | --destdir | --hostfile | --map-by | --bind-to | --mca | --signal | --requeue | --nodes | --ntasks-per-node | --cpus-per-task | --time) ;;
			*) bad "$d" "no program has the option $o" ;;
			esac
	done
	count "$d" options $n
done
