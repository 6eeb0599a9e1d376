# sbpcc --eval: where operands come from, what is checked, what is written.
set -u
head='<ir_version: 8, opset_import: ["" : 18]>'
values() { od -A n -t "$2" -j 128 -v "$1" | tr -s ' \n' ' ' | sed 's/^ //; s/ $//'; }
is() { # what, want, got
	if [ "$2" = "$3" ]; then echo "ok $1"; else printf 'not ok %s: differs\n  want %s\n  got  %s\n' "$1" "$2" "$3"; fi
}
constant() { # type, values, file: writes a .npy through the evaluator itself
	printf '%s\ng () => (%s y) { y = Constant<value = %s {%s}>() }\n' "$head" "$1" "$1" "$2" >constant.ir
	"$SBPCC" --eval constant.ir --inputs . --outputs made && mv made/output_0.npy "$3"
}
run() { # model, inputs: exit status, then stderr
	rm -rf out
	"$SBPCC" --eval "$1" --inputs "$2" --outputs out >stdout 2>stderr
	echo "$? $(grep -E 'error|note|warning' stderr | head -n 1)"
}
mkdir -p in

cat >m.ir <<EOF
$head
g (float[N, M] x, float[3] b = {10, 20, 30}) => (float[N, M] y, bfloat16[N, M] z) <float c = {0.5}> {
	t = Add(x, b)
	y = Mul(t, c)
	z = Cast<to = 16>(y)
}
EOF
constant 'float[2, 3]' '1, 2, 3, 4, 5, 6' in/input_0.npy
is by-position '0 note: output z is bfloat16, written as float' "$(run m.ir in)"
is values '5.5 11 16.5 7 12.5 18' "$(values out/output_0.npy f4)"
is bfloat16-as-float '5.5 11 16.5 7 12.5 18' "$(values out/output_1.npy f4)"
mv in/input_0.npy in/x.npy
constant 'float[3]' '0, 0, 0' in/b.npy
is by-name '0 note: output z is bfloat16, written as float' "$(run m.ir in)"
is initialised-input-overridden '0.5 1 1.5 2 2.5 3' "$(values out/output_0.npy f4)"
constant 'float' '2' in/c.npy
run m.ir in >/dev/null
is initialiser-overridden '2 4 6 8 10 12' "$(values out/output_0.npy f4)"
rm in/b.npy in/c.npy

constant 'float[4]' '1, 2, 3, 4' in/x.npy
is wrong-rank '1 m.ir:2:16: error: input x is declared float[N, M], but in/x.npy holds float[4]' "$(run m.ir in)"
constant 'int64[2, 3]' '1, 2, 3, 4, 5, 6' in/x.npy
is wrong-type '1 m.ir:2:16: error: input x is declared float[N, M], but in/x.npy holds int64[2, 3]' "$(run m.ir in)"
constant 'float[2, 2]' '1, 2, 3, 4' in/x.npy
is shapes-that-clash "1 m.ir:3:6: error: Add cannot broadcast 2 with 3: the shapes are float[2, 2] and float[3]" "$(run m.ir in)"
is nothing-written-after-an-error 'no' "$([ -e out ] && echo yes || echo no)"
rm in/x.npy
is missing '4 m.ir:2:16: error: input x is missing: there is neither in/input_0.pb nor .npy nor in/x.npy' "$(run m.ir in)"

cat >same.ir <<EOF
$head
g (float[N] x, float[N] y) => (float[N] z) { z = Add(x, y) }
EOF
constant 'float[2]' '1, 2' in/x.npy
constant 'float[3]' '1, 2, 3' in/y.npy
is one-symbol-two-sizes '1 same.ir:2:25: error: input y is declared float[N], but in/y.npy holds float[3]' "$(run same.ir in)"

cat >data.ir <<EOF
$head
g (float[N] x) => (int64[1, K] where, float[K] kept) {
	zero = Constant<value = float {0}>()
	big = Greater(x, zero)
	where = NonZero(big)
	at = Constant<value = int64[1] {0}>()
	flat = Squeeze(where, at)
	kept = Gather(x, flat)
}
EOF
constant 'float[4]' '1, -2, 3, -4' in/x.npy
is shapes-that-depend-on-data '0 ' "$(run data.ir in)"
is what-nonzero-finds '0 2' "$(values out/output_0.npy d8)"
is what-is-gathered '1 3' "$(values out/output_1.npy f4)"

cat >branch.ir <<EOF
$head
g (bool c, float[N] x) => (float[N] y) {
	y = If (c) <then_branch = then () => (float[N] a) { a = Neg(x) }, else_branch = other () => (float[N] b) { b = Add(x, x) }>
}
EOF
constant 'bool' '1' in/c.npy
is if-takes-a-branch '0 ' "$(run branch.ir in)"
is the-branch-taken '-1 2 -3 4' "$(values out/output_0.npy f4)"

cat >index.ir <<EOF
$head
g (float[N] x) => (float[1] y) {
	at = Constant<value = int64[1] {7}>()
	y = Gather(x, at)
}
EOF
is index-outside '1 index.ir:4:16: error: Gather: index 7 is outside [-4, 3]' "$(run index.ir in)"

# Casting to the floats of 6 bits rounds to even, saturates and has no NaN: expected values are those of ml_dtypes.
constant 'float[11]' '0.0625, 0.07, 0.1875, 1.0625, 1.19, 3.3, 7.6, 100, -100, -inf, nan' in/x.npy
for t in 27 28; do
	printf '%s\ng (float[N] x) => (float[N] y) { s = Cast<to = %d>(x) y = Cast<to = 1>(s) }\n' "${head/18/28}" $t >six.ir
	is cast-$t '0 ' "$(run six.ir in)"
	[ $t = 27 ] && want='0 0.125 0.25 1 1.25 3.25 7.5 7.5 -7.5 -7.5 -0' || want='0.0625 0.0625 0.1875 1 1.25 3.5 8 28 -28 -28 -0'
	is values-$t "$want" "$(values out/output_0.npy f4)"
done
printf '%s\ng (float[N] x) => (float6e3m2[N] q, float[N] y) { h = Constant<value = float {0.5}>() q = QuantizeLinear<output_dtype = 28>(x, h) y = DequantizeLinear(q, h) }\n' "${head/18/28}" >quant.ir
constant 'float[3]' '1, 2.2, 100' in/x.npy
is quantize-6-bits '0 note: output q is float6e3m2, written as float' "$(run quant.ir in)"
is quantized-6-bits '2 4 28' "$(values out/output_0.npy f4)"
is dequantized-6-bits '1 2 14' "$(values out/output_1.npy f4)"
