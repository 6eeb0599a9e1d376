# Files of both of PyTorch's exporters train as PyTorch does: losses of 20 steps and gradients of the first.
# seconds: 900
. "$HERE/common.bash"
all "$HERE"/*.onnx/want.*.txt
