# The tree of tiny.ir on two ranks, byte for byte.
cp "$HERE/tiny.ir" .
"$SBPCC" tiny.ir --ranks=2 -o tree || exit 1
cat tree/.sbpcc
for f in plan.ir trainer.c model.c params.c buffers.h buffers.c blocks.h blocks.c role0/schedule.c kernels/pointwise.c Makefile README.md; do
	echo "==> $f"
	cat "tree/$f"
done
