# exit: 0
printf '\xef\xbb\xbf# made on Windows\r\ng (float[2] x) => (float[2] y) {\r\n\ty = Relu(x)\r\n}\r\n' >model.ir
"$SBPCC" --print model.ir >once.ir && "$SBPCC" --print once.ir >twice.ir && cmp once.ir twice.ir
