# External data is named by key and value, in quotes or not; the printed text says the same.
head -c 32 /dev/zero >w.bin
cat >model.ir <<'END'
g () => (float y)
<
  float[4] w = [location: "w.bin", offset: "16", length: "16"],
  float[2, 2] q = ["location": "w.bin", "checksum": "de8a847bff8c343d69b853a215e6ee775ef2ef96"], float one = {1}
>
{
  a = Constant<value = float[2] named = [location: "w.bin"]>()
  b = Constant<value = float [location: "w.bin"]>()
  y = Relu(one)
}
END
"$SBPCC" --print model.ir >once.ir && "$SBPCC" --print once.ir >twice.ir && cmp once.ir twice.ir && cat once.ir
