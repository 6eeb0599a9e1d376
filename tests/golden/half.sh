# In bf16 and fp16, models train as PyTorch does with casts at the same places: their distance from float64 is at most
# twice that of PyTorch.
. "$HERE/common.bash"
all "$HERE"/*/want.bf16.txt "$HERE"/*/want.fp16.txt
