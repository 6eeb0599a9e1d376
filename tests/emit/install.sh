# What `meson install` writes into a folder: the program, its manual page and completion, documents, examples that
# compile there.
check() {
	local what=$1
	shift
	if "$@" >log 2>&1; then echo "ok $what"; else echo "not ok $what: $*" && head -n 20 log | sed 's/^/    /'; fi
}
check installs env DESTDIR="$TMP/dest" meson install -C "$PLAIN" --no-rebuild
at=$(dirname "$(dirname "$(find "$TMP/dest" -path '*/bin/sbpcc')")")
check runs "$at/bin/sbpcc" --version
for f in share/man/man1/sbpcc.1 share/bash-completion/completions/sbpcc.bash share/doc/sbpcc/ir/LANGUAGE.md share/doc/sbpcc/README.md \
	share/doc/sbpcc/CHANGELOG.md share/doc/sbpcc/CONTRIBUTING.md share/doc/sbpcc/LICENSE share/doc/sbpcc/examples/README.md share/doc/sbpcc/bench/README.md share/sbpcc/examples/gpt.ir share/sbpcc/examples/plans/tensor.place; do
	check "has-${f##*/}" test -s "$at/$f"
done
check compiles-an-example "$at/bin/sbpcc" "$at/share/sbpcc/examples/mlp.ir" -o tree
check leaves-nothing-else-in-bin test "$(ls "$at/bin")" = sbpcc

# Manual page and completion have every option of --help, and no others.
"$at/bin/sbpcc" --help | grep -o '^  --[a-z-]*' | tr -d ' ' | sort >options
sed -n 's/^\.B \\-\\-//p' "$at/share/man/man1/sbpcc.1" | sed 's/\\-/-/g; s/[=[].*//; s/^/--/' | sort >man
check manual-has-all-options diff options man
complete() { # the words that bash offers after these
	bash --norc -c '. "$1"; shift; COMP_WORDS=(sbpcc "$@"); COMP_CWORD=$#; compopt() { :; }; _sbpcc; printf "%s\n" "${COMPREPLY[@]}"' complete "$at/share/bash-completion/completions/sbpcc.bash" "$@"
}
complete -- | sed 's/=$//' | grep '^--' | sort >offered
check completion-has-all-options diff options offered
check completion-of-a-choice test "$(complete --target = cu)" = cuda
check completion-of-a-word test "$(complete --dump)" = --dump-after=
if command -v mandoc >/dev/null; then
	mandoc -T lint -W warning "$at/share/man/man1/sbpcc.1" 2>&1 | grep -v 'missing date' >lint     # a date would make each build another
	check manual-is-clean test ! -s lint
fi
check unknown-help sh -c '"$1" --help=pdf; test $? -eq 2' sh "$at/bin/sbpcc"
