# The examples, made smaller, train as PyTorch does: losses of 20 steps and gradients of the first, in micro-batches too.
# seconds: 900
. "$HERE/common.bash"
all "$HERE"/*/want.txt
