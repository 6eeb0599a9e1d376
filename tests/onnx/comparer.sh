# The program that judges the ONNX cases distinguishes right from wrong: made-up cases, and a compiler that copies
# files.
set -u
mkdir -p cases/node
printf '#!/bin/sh\ndir=${2%%/*}; cp "$dir"/got/* "$6"/ 2>/dev/null\n[ -f "$dir/err" ] && cat "$dir/err" >&2\nexit "$(cat "$dir/status")"\n' >sbpcc
chmod +x sbpcc
le16() { printf '%b' "\\x$(printf '%02x' $(($1 % 256)))\\x$(printf '%02x' $(($1 / 256)))"; }
npy() { # descr, shape, bytes
	local head="{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"
	printf '\x93NUMPY\x01\x00'
	le16 $((${#head} + 1))
	printf '%s\n%b' "$head" "$3"
}
one() { # name, TensorProto, npy arguments; exit status in $status, stderr in $err
	local d=cases/node/$1
	mkdir -p "$d/test_data_set_0" "$d/got"
	printf '%b' "$model" >"$d/model.onnx"
	printf '%b' "$2" >"$d/test_data_set_0/output_0.pb"
	npy "$3" "$4" "$5" >"$d/got/output_0.npy"
	echo "$status" >"$d/status"
	[ -z "$err" ] || echo "$err" >"$d/err"
}
model='\x3a\x07\x0a\x05\x22\x03Abs' status=0 err=''
floats='\x0a\x01\x02\x10\x01\x22\x08\x00\x00\x80\x3f\x00\x00\x00\x40'      # float[2] = 1, 2 in float_data
one right "$floats" '<f4' '2,' '\x00\x00\x80\x3f\x00\x00\x00\x40'
one near "$floats" '<f4' '2,' '\x00\x00\x80\x3f\x01\x00\x00\x40'
one far "$floats" '<f4' '2,' '\x00\x00\x80\x3f\x00\x80\x00\x40'
one zero '\x0a\x01\x02\x10\x01\x22\x08\x00\x24\x74\x49\x00\x00\x00\x00' '<f4' '2,' '\x00\x24\x74\x49\x0a\xd7\x23\x3c'  # 1e6, 0 and 0.01: no scale but its own
one shape "$floats" '<f4' '1, 2' '\x00\x00\x80\x3f\x00\x00\x00\x40'
one type "$floats" '<i4' '2,' '\x01\x00\x00\x00\x02\x00\x00\x00'
one nan "$floats" '<f4' '2,' '\x00\x00\x80\x3f\x00\x00\xc0\x7f'
wantnan='\x0a\x01\x02\x10\x01\x22\x08\x00\x00\x80\x3f\x00\x00\xc0\x7f'
one amended-nan "$wantnan" '<f4' '2,' '\x00\x00\x80\x3f\x00\x00\x00\x00'
one amended-nan-stays "$wantnan" '<f4' '2,' '\x00\x00\x80\x3f\x00\x00\xc0\x7f'
one amended-random "$floats" '<f4' '2,' '\x00\x00\x80\x3f\x00\x80\x00\x40'
one amended-atol "$floats" '<f4' '2,' '\x00\x00\x80\x3f\x00\x80\x00\x40'
one amended-atol-beyond "$floats" '<f4' '2,' '\x00\x00\x80\x3f\x00\x80\x10\x40'
one int4 '\x0a\x01\x03\x10\x16\x4a\x02\x2f\x01' '|i1' '3,' '\xff\x02\x01'  # int4[3] = -1, 2, 1 packed
one int4-wrong '\x0a\x01\x03\x10\x16\x4a\x02\x2f\x01' '|i1' '3,' '\x0f\x02\x01'
one half '\x0a\x01\x01\x10\x0a\x4a\x02\x00\x3c' '<f2' '1,' '\x00\x3c'      # float16[1] = 1
one e4m3 '\x0a\x01\x02\x10\x11\x4a\x02\x38\x7f' '<f4' '2,' '\x00\x00\x80\x3f\x00\x00\xc0\x7f'
one missing "$floats" '<f4' '2,' '' && rm cases/node/missing/got/output_0.npy
status=66 one crashed "$floats" '<f4' '2,' '\x00\x00\x80\x3f\x00\x00\x00\x40'
status=1 err='m.onnx: node 0 (Abs), byte 4: error: no' one refused "$floats" '<f4' '2,' ''
model='\x3a\x08\x0a\x06\x22\x04Loop' status=1 err='m.onnx: node 0 (Loop), byte 4: error: no' one refused-loop "$floats" '<f4' '2,' ''
model='\x3a\x08\x0a\x06\x22\x04Loop' status=1 err='' one refused-mute "$floats" '<f4' '2,' ''

printf '%s\n' '# a list' 'amended-nan* nan=0 # why' 'amended-random random' 'amended-atol* atol=0.01' >amended.txt
"$BUILD/test-onnx-run_cases" --sbpcc "$PWD/sbpcc" --amended amended.txt --refused "$HERE/expected-refused.txt" "$PWD/cases" >got
cat >want <<'END'
ok node/amended-atol
not ok node/amended-atol-beyond: output 0: element 1 is 2.2578125, expected 2 (1 of 2 differ)
ok node/amended-nan
not ok node/amended-nan-stays: output 0: element 1 is nan, expected 0 (1 of 2 differ)
ok node/amended-random
not ok node/crashed: exit status 66: 
ok node/e4m3
not ok node/far: output 0: element 1 is 2.0078125, expected 2 (1 of 2 differ)
ok node/half
ok node/int4
not ok node/int4-wrong: output 0: element 0 is 15, expected -1 (1 of 3 differ)
not ok node/missing: output 0: was not written
not ok node/nan: output 0: element 1 is nan, expected 2 (1 of 2 differ)
ok node/near
not ok node/refused: refused: no
ok node/refused-loop (refused: Loop)
not ok node/refused-mute: exit status 1: 
ok node/right
not ok node/shape: output 0: shape is [1,2], expected [2]
not ok node/type: output 0: type is int32, expected float
not ok node/zero: output 0: element 1 is 0.00999999978, expected 0 (1 of 2 differ)
# 21 cases: 8 passed, 1 refused, 12 wrong
# 1 refused: Loop 1
# 12 wrong: Abs 11, Loop 1
END
diff -u want got >diff || { cat diff >&2; exit 1; }
