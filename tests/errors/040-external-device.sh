# Links are allowed below --data-root, but they must lead to a file.
. "$HERE/wire"
. "$HERE/external"
mkdir models
ln -s "$(realpath --relative-to=models /dev/zero)" models/zero.bin
external zero.bin >models/model.onnx
"$SBPCC" --data-root=/ models/model.onnx -o out
