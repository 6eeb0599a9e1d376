# In bf16 and fp16, models train as PyTorch does with casts in the same places: not further from float64 than twice what PyTorch is.
. "$HERE/common.bash"
all "$HERE"/*/want.bf16.txt "$HERE"/*/want.fp16.txt
