# A legal @into: values that were equal to the older value, copies and other shapes of it, read before and after it is
# overwritten, have the values of the evaluator.
cat >model.ir <<'M'
g (float[4] x) => (float[4] y, float[4] z, float[4] v, float[2, 2] w) <int64[2] two = {2, 2}, float[4] s = {1, 2, 3, 4}> {
  a = Relu(x)
  b = Relu(x)
  c = Identity(a)
  r = Reshape(a, two)
  d = Identity(a)
  e = Reshape(d, two)
  f = Add(Reshape(e, [4]), s)
  y @into(a) = Exp(a)
  z = Mul(b, c)
  t @into(s) = Sub(y, s)
  v = Mul(f, t)
  w = Neg(r)
}
M
mkdir in out
{
	printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
	printf '\0\0\200\77\0\0\0\100\0\0\200\277\0\0\0\77'             # 1, 2, -1, 0.5
} >in/x.npy
"$SBPCC" model.ir --eval --inputs=in --outputs=out || exit 1
"$SBPCC" model.ir --infer -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 && tree/trainer --infer=in >log 2>&1 || { cat log && exit 1; }
i=0
for n in y z v w; do
	cmp -s -i 128 "in/$n.npy" "out/output_$i.npy" && echo "ok $n" || { echo "not ok $n: $(od -An -tf4 -j128 "in/$n.npy" | tr '\n' ' ') where the evaluator has $(od -An -tf4 -j128 "out/output_$i.npy" | tr '\n' ' ')"; }
	i=$((i + 1))
done
