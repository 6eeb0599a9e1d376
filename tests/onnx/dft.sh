# Fourier transforms of every kind of length follow their definition: a matrix of cosines and sines made from the
# index alone.  512 takes one product, 1024 and 1500 take two, 300,000 takes three; 1031 is prime, 2062 is twice that.
set -u
head='<ir_version: 8, opset_import: ["" : 20]>'
# signal ELEMENTS PARTS: x [1, elements, parts], without a period.
signal() {
	cat <<END
	start = Constant<value = int64 {0}>() step = Constant<value = int64 {1}>() first = Constant<value = int64[1] {0}>() second = Constant<value = int64[1] {1}>()
	many = Constant<value = int64 {$(($1 * $2))}>()
	count = Range(start, many, step)
	prime = Constant<value = int64 {1013}>()
	digits = Cast<to = 11>(Mod(Mul(count, count), prime))
	unit = Constant<value = double {1013}>()
	shape = Constant<value = int64[3] {1, $1, $2}>()
	x = Reshape(Div(digits, unit), shape)
END
}
# worst NAME: dft.ir gives one number, the largest difference.
worst() {
	"$SBPCC" --eval dft.ir --inputs . --outputs out 2>err || { echo "not ok $1: $(head -n 1 err)"; return; }
	local v && v=$(od -A n -t f8 -j 128 out/output_0.npy | tr -d ' ')
	awk "BEGIN { exit !(\"$v\" != \"nan\" && $v < 1e-9) }" && echo "ok $1" || echo "not ok $1: differs by $v"
}
# dft NAME ELEMENTS LENGTH PARTS INVERSE ONESIDED: against the definition.
dft() {
	local in=$2 len=$3 parts=$4 sign=-1 scale=1 wide=$3
	[ "$5" = 1 ] && sign=1 scale=$len
	[ "$6" = 1 ] && wide=$((len / 2 + 1))
	cat >dft.ir <<END
$head
g () => (double worst) {
$(signal "$in" "$parts")
	n = Constant<value = int64 {$len}>()
	got = DFT<inverse = $5, onesided = $6>(x, n, step)
	k = Range(start, n, step)
	turn = Constant<value = double {$(awk "BEGIN { printf \"%.20e\", 2 * atan2(0, -1) / $len }")}>()
	angle = Mul(Cast<to = 11>(Mod(Mul(Unsqueeze(k, first), Unsqueeze(k, second)), n)), turn)
	sign = Constant<value = double {$sign}>()
	c = Cos(angle)
	s = Mul(Sin(angle), sign)
	pads = Constant<value = int64[6] {0, 0, 0, 0, $((len > in ? len - in : 0)), $((2 - parts))}>()
	end = Constant<value = int64[1] {$len}>() wide = Constant<value = int64[1] {$wide}>()
	r, i = Split<axis = 2, num_outputs = 2>(Slice(Pad(x, pads), first, end, second))
	re = Sub(MatMul(c, r), MatMul(s, i))
	im = Add(MatMul(s, r), MatMul(c, i))
	scale = Constant<value = double {$scale}>()
	want = Slice(Div(Concat<axis = 2>(re, im), scale), first, wide, second)
	worst = ReduceMax<keepdims = 0>(Abs(Sub(got, want)))
}
END
	worst "$1"
}
# back NAME LENGTH PARTS ONESIDED: there and back again.
back() {
	cat >dft.ir <<END
$head
g () => (double worst) {
$(signal "$2" "$3")
	n = Constant<value = int64 {$2}>()
	there = DFT<onesided = $4>(x, n, step)
	again = DFT<inverse = 1, onesided = $4>(there, n, step)
	worst = ReduceMax<keepdims = 0>(Abs(Sub(again, x)))
}
END
	worst "$1"
}
dft one-product 512 512 2 0 0
dft two-products 1024 1024 2 0 0
dft real-one-sided 1024 1024 1 0 1
dft padded 700 1500 1 0 0
dft truncated 1500 1024 2 0 0
dft prime 1031 1031 2 0 0
dft prime-inverse 1031 1031 2 1 0
dft inverse 1500 1500 2 1 0
dft twice-a-prime 2062 2062 1 0 1
back three-products 300000 2 0
back one-sided-even 1024 1 1
back one-sided-odd 1031 1 1
back one-sided-short 512 1 1
