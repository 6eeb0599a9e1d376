. "$HERE/wire"
printf '\0\0\200\77\0\0\0\100' >w.bin
{
	int 1 2 && int 2 1 && str 8 w
	{ str 1 location; str 2 w.bin; } | msg 13
	{ str 1 checksum; str 2 da39a3ee5e6b4b0d3255bfef95601890afd80709; } | msg 13
	int 14 1
} | msg 5 | add >model.onnx
"$SBPCC" model.onnx -o out
