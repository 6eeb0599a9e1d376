# Files of both of PyTorch's exporters train as PyTorch does: losses of 20 steps and gradients of the first.
. "$HERE/common.bash"
all "$HERE"/*.onnx/want.*.txt
