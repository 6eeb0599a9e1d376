#!/bin/sh
# embed.sh NAME OUT FILE...: writes OUT, a C file that holds the text of every FILE.
#
#     const int nNAME;                        how many files
#     const char *const NAME_name[];          "norm.ir", without folders
#     const char *const NAME[];               the text, ended by '\0'
#
# The text is written as character constants, not as string literals: C promises only 4095 characters in a literal.
# Octal escapes, because an ASCII-only int such as '\342' fits a char without a warning wherever char is signed.
set -eu
name=$1 out=$2
shift 2
{
	echo '/* Written by embed.sh. Do not edit. */'
	echo "extern const int n$name;"
	echo "extern const char *const ${name}_name[];"
	echo "extern const char *const ${name}[];"
	n=0
	for f in "$@"; do
		echo "static const char text${n}[] = {"
		od -An -v -to1 "$f" | sed "s/ \([0-7]*\)/'\\\\\\1',/g"
		echo '0 };'
		n=$((n + 1))
	done
	echo "const int n$name = $n;"
	echo "const char *const ${name}_name[] = {"
	for f in "$@"; do
		echo "	\"${f##*/}\","
	done
	echo '	0 };'
	echo "const char *const ${name}[] = {"
	i=0
	while [ "$i" -lt "$n" ]; do
		echo "	text$i,"
		i=$((i + 1))
	done
	echo '	0 };'
} > "$out.tmp"
mv "$out.tmp" "$out"
