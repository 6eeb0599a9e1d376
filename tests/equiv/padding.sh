# If the exporter records the padding index of an embedding, that row is looked up but not trained, as in PyTorch.
cat >net.ir <<'M'
<ir_version: 10, opset_import: ["" : 21]>
@train(loss: loss, optimizer: sgd(lr: 0.1), batch: 4, steps: 1, data: npy("."))
g (int64[N, 3] ids) => (float loss) <float[5, 2] w @init(normal(0, 1.0))>
{
  e = Gather(w, ids) @meta("pkg.torch.onnx.fx_node", "%e = call_function[target=torch.ops.aten.embedding.default](args = (%w, %ids, 1), kwargs = {})")
  loss = ReduceMean<keepdims = 0>(Mul(e, e))
}
M
npy() { printf '\223NUMPY\1\0v\0'; printf "%-117s\n" "{'descr': '<i8', 'fortran_order': False, 'shape': (4, 3), }"; }
{ npy && for i in 0 1 2 1 3 4 0 1 1 2 3 4; do printf '%b\0\0\0\0\0\0\0' "\\x0$i"; done; } >ids.npy
sed 's/, 1), kwargs/), kwargs/' net.ir >plain.ir
for m in net plain; do
	"$SBPCC" $m.ir -o tree >log 2>&1 && make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1 && tree/trainer --dump=$m >log 2>&1 || { echo "not ok $m: $(head -n 1 log)" && exit; }
	tail -c +129 $m/step/w.grad.npy | od -An -v -t f4 -w8 >$m.txt
done
[ "$(awk '$1 == 0 && $2 == 0 { print NR }' net.txt)" = 2 ] && [ -z "$(awk '$1 == 0' plain.txt)" ] && cmp -s <(sed 2d net.txt) <(sed 2d plain.txt) &&
	echo "ok padding" || { echo "not ok padding: other gradients" && paste net.txt plain.txt | sed 's/^/ /'; }
