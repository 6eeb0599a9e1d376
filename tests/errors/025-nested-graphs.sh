# exit: 5
# 100,000 graphs, each in an attribute of a node of the one around it. Sizes from the inside out, then headers.
LC_ALL=C awk 'function len(n) { k = 1; while (n > 127) { n = int(n / 128); k++ } return k }
	function put(n) { while (n > 127) { printf "%c", n % 128 + 128; n = int(n / 128) } printf "%c", n }
	BEGIN { for (i = 300000; i >= 1; i--) { size[i] = inner; inner += 1 + len(inner) }
		printf "\010\010"
		for (i = 1; i <= 300000; i++) { printf "%c", i % 3 == 1 ? (i == 1 ? 58 : 50) : i % 3 == 2 ? 10 : 42; put(size[i]) } }' >model.onnx
"$SBPCC" model.onnx -o out
