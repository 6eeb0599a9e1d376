# The multi-device messages of ONNX (IR version 11): S, B and stages are written into them beside our own annotations,
# and the messages of files from other tools are read.
set -u
. "$ROOT/tests/errors/wire"
is() { # what, want, got
	if [ "$2" = "$3" ]; then echo "ok $1"; else printf 'not ok %s: differs\n  want %s\n  got  %s\n' "$1" "$2" "$3"; fi
}
hex() { od -A n -t x1 -v "$1" | tr -d ' \n'; }
has() { # what, message, file: the bytes of one message stand in the file
	case $(hex "$3") in *$(hex "$2")*) echo "ok $1" ;; *) echo "not ok $1: the message $(hex "$2") is not in the file" ;; esac
}
split() { { int 1 "${1%/*}" && int 3 "${1#*/}" | msg 2; } | msg 4; }                 # AXIS/SHARDS
group() { { int 1 "$1" && for d in $2; do int 2 "$d"; done; } | msg 3; }             # key, devices
spec() { { str 1 "$1" && for d in $2; do int 2 "$d"; done && cat; } | msg 2; }      # value, devices; groups and splits on stdin

cat >model.ir <<'END'
<ir_version: 11, opset_import: ["" : 21]>
@mesh(gpus, cpu, [2, 2])
g (float[8, 16] x) => (float[8, 4] y)
<float[16, 32] w1 @init(zeros) @sbp(B, S(1)), float[32, 4] w2 @init(zeros) @sbp(B, S(0))>
{
	h = MatMul(x, w1) @on(gpus) @sbp([S(0), B], [B, S(1)] -> [S(0), S(1)]) @stage(0)
	r = Relu(h) @stage(0)
	y = MatMul(r, w2) @sbp([B, S(1)], [B, S(0)] -> [B, P]) @stage(1)
}
END
"$SBPCC" --print model.ir >want.ir && "$SBPCC" --write=model.onnx model.ir && "$SBPCC" --print model.onnx >got.ir
is identity "$(cat want.ir)" "$(cat got.ir)"
{ { str 1 sbpcc.gpus && int 2 4 && for d in 0 1 2 3; do str 3 cpu:$d; done; } | msg 26; } >want
has mesh want model.onnx
{ group -1 '0 1' && group -2 '2 3' && split 0/2; } | spec x '-1 -2' >want
has s-and-b want model.onnx
{ group -1 '0 2' && group -2 '1 3' && split 1/2; } | spec w1 '-1 -2' >want
has b-and-s want model.onnx
{ split 0/2 && split 1/2; } | spec h '0 1 2 3' >want
has s-and-s want model.onnx
{ str 1 sbpcc.gpus && int 3 0; } | msg 10 >want
has stage want model.onnx

# A file of others: S(0) of x over two devices, w on both, the second node in stage 1.
placed() { { str 1 theirs && cat; } | msg 10; }
two() {
	{ { split 0/2 | spec x '0 1' && group -1 '0 1' | spec w -1 && split 0/2 | spec h '0 1' && int 3 0; } | placed | node MatMul 'x w' h &&
		{ int 3 1 | placed; } | node Relu h y && str 2 g && value 11 x 1 '8 16' && value 11 w 1 '16 4' && value 12 y 1 '8 4'; } </dev/null
}
{ int 1 11 && two | msg 7 && { str 1 '' && int 2 21; } | msg 8 && { str 1 theirs && int 2 2 && str 3 gpu0 && str 3 gpu1; } | msg 26; } >foreign.onnx
"$SBPCC" --print foreign.onnx 2>messages | sed 's/ @unknown([^)]*)//g' | grep -v '^@unknown' >got.ir
cat messages >&2
is foreign '@mesh(theirs, cuda, [2], [0, 1])
  h = MatMul(x, w) @on(theirs) @sbp(S(0), B -> S(0)) @stage(0)
  y = Relu(h) @stage(1)' "$(grep -e mesh -e ' = ' got.ir)"
