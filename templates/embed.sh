#!/bin/sh
# embed.sh OUT FILE...: writes OUT, a C file that holds the text of every FILE: what generated trees are made of.
#
#     const int nemit_text;                   how many files
#     const char *const emit_text_name[];     "matmul.cu", without folders
#     const char *const emit_text[];          the text, ended by '\0'
set -eu
out=$1
shift
{
	echo '/* Written by embed.sh. Do not edit. */'
	echo 'extern const int nemit_text;'
	echo 'extern const char *const emit_text_name[];'
	echo 'extern const char *const emit_text[];'
	n=0
	for f in "$@"; do
		echo "static const char text${n}[] = {"
		od -An -v -to1 "$f" | sed "s/ \([0-7]*\)/'\\\\\\1',/g"
		echo '0 };'
		n=$((n + 1))
	done
	echo "const int nemit_text = $n;"
	echo 'const char *const emit_text_name[] = {'
	for f in "$@"; do
		echo "	\"${f##*/}\","
	done
	echo '	0 };'
	echo 'const char *const emit_text[] = {'
	i=0
	while [ "$i" -lt "$n" ]; do
		echo "	text$i,"
		i=$((i + 1))
	done
	echo '	0 };'
} > "$out.tmp"
mv "$out.tmp" "$out"
