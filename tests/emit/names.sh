# Names of a model are identifiers of C in blocks.c: hostile ones, words of C, macros, names of ours, names that become
# equal or are too long, and names of other letters.  The tree compiles without warnings, contains no text of theirs that
# is not plain, and trains to the same losses as the same model with plain names.
cat >net.in <<'IR'
<ir_version: 10, opset_import: ["" : 23]>
@train(loss: loss, optimizer: adamw(lr: 0.01), batch: 8, steps: 5, data: points(classes: 3), seed: 1)
net (float[N, 6] "@0", int64[N] "@1") => (float loss)
<
  float[6, 8] "@2" @init(constant(0.3)), float[8] "@3" @init(zeros),
  float[8, 8] "@4" @init(constant(0.3)), float[8] "@5" @init(zeros),
  float[8, 3] "@6" @init(constant(0.3)), float[3] "@7" @init(zeros)
>
{
  "@8" = MatMul("@0", "@2")
  "@9" = Add("@8", "@3")
  "@A" = Tanh("@9")
  "@B" = MatMul("@A", "@4")
  "@C" = Add("@B", "@5")
  "@D" = Sigmoid("@C")
  "@E" = Mul("@D", "@A")
  "@F" = MatMul("@E", "@6")
  "@G" = Add("@F", "@7")
  loss = SoftmaxCrossEntropyLoss("@G", "@1")
}
IR
keys=(0 1 2 3 4 5 6 7 8 9 A B C D E F G)
long=$(printf 'a%.0s' {1..200})
model() { # file, 17 names
	local out=$1 i
	shift
	cp net.in "$out"
	for i in "${!keys[@]}"; do
		NAME=${*:i + 1:1} perl -pi -e 's/\@'"${keys[i]}"'"/$ENV{NAME}"/g' "$out"
	done
}
check() { # name, 17 names
	local name=$1 cc
	shift
	model "$name.ir" "$@"
	"$SBPCC" "$name.ir" --ranks=2 -o "$name" >log 2>&1 || { echo "not ok $name: $(head -n 2 log)" && return; }
	for cc in gcc clang; do
		command -v $cc >/dev/null || { echo "skip $name-$cc: $cc is not installed" && continue; }
		(cd "$name" && $cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Wconversion -Werror -I. -Irt -Ikernels -fsyntax-only blocks.c role*/*.c model.c params.c buffers.c) >log 2>&1 &&
			echo "ok $name-$cc" || { echo "not ok $name-$cc: does not compile" && head -n 5 log | sed 's/^/ /'; }
	done
	make -s -C "$name" STATIC= CFLAGS=-O1 >log 2>&1 || { echo "not ok $name-builds: $(head -n 2 log)" && return; }
	"$name/trainer" --every=1 2>log | sed -n 's/^step.* loss \([0-9.]*\) .*/\1/p' >"$name.losses"
	[ "$(wc -l <"$name.losses")" = 5 ] && cmp -s plain.losses "$name.losses" && echo "ok $name-trains-the-same" || echo "not ok $name-trains-the-same: $(tr '\n' ' ' <"$name.losses") $(head -n 1 log)"
}
check plain x y w1 b1 w2 b2 w3 b3 v1 v2 v3 v4 v5 v6 v7 v8 v9
check words int label main MPI_Init NULL t c h while errno EOF _Bool __x linux values here code
check equal a.b label a_b a:b a/b a-b A.b "$long" "${long}b" "${long}c" 0abc 1 2 3 4_ '4.' '4-'
check others 'größe' 'ラベル' 'é' 'è' 'ê' '重み' '×' '÷' ' ' '  ' '#define X' '%d%s' "it's" '\\' '$HOME' '`id`' '??/'
check hostile '*/ system(\"x\"); /*' 'label' '$(shell id)' '/* */' '*/' '//' '\\n' '#include' '{' '}' '\");' ';' '@' '~' '?' '<' '>'
# Nothing of a hostile name is in a file but as plain text.
grep -rlE 'system\("x"\)|\$\(shell id\)' hostile --include='*.[ch]' --include=Makefile >log && echo "not ok hostile-is-escaped: $(head -n 1 log)" || echo "ok hostile-is-escaped"
# No identifier is longer than 40 bytes.
grep -oE 'h\.[A-Za-z0-9_]+' equal/blocks.c | awk '{ if (length($0) > 42) { print; bad = 1 } } END { exit bad }' >log && echo "ok at-most-40-bytes" || echo "not ok at-most-40-bytes: $(head -n 1 log)"
