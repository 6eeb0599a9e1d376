# Another processor: a generated program is plain C there.  It compiles for aarch64 without a warning, runs under
# qemu, and has the losses of this machine except for rounding.  With --long the test also builds sbpcc for aarch64,
# which writes the same tree.
"$ROOT/tests/setup" gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user >why 2>&1 || { tail -n 1 why && exit 77; }
fail() { echo "not ok $1" && sed 's/^/    /' log | head -n 30; }
cd "$ROOT" || exit
"$SBPCC" examples/mlp.ir --steps=20 -o "$TMP/tree" >"$TMP/log" 2>&1 || { cd "$TMP" && fail "compiles: sbpcc"; exit; }
cp -r "$TMP/tree" "$TMP/arm"
make -s -C "$TMP/tree" >"$TMP/log" 2>&1 && "$TMP/tree/trainer" --every=5 >"$TMP/here" 2>&1 || { cd "$TMP" && fail "runs here: $(tail -n 1 here)"; exit; }
if make -s -C "$TMP/arm" CC=aarch64-linux-gnu-gcc CFLAGS='-O1 -Werror' >"$TMP/log" 2>&1; then echo "ok builds"; else cd "$TMP" && fail "builds: make"; exit; fi
qemu-aarch64 "$TMP/arm/trainer" --every=5 >"$TMP/there" 2>"$TMP/log" || { cd "$TMP" && fail "runs: exit status $?"; exit; }
awk 'FNR == NR { if (/^step/) a[$2] = $4; next } /^step/ { n++; d = (a[$2] - $4) / $4; if (!($2 in a) || d > 1e-5 || d < -1e-5) { print "step " $2 ": " a[$2] " here, " $4 " there"; bad = 1 } } END { exit bad || n < 4 }' \
	"$TMP/here" "$TMP/there" >"$TMP/log" && echo "ok trains-alike" || { cd "$TMP" && fail "trains-alike: losses differ"; }
[ -n "$LONG" ] || exit 0
cat >"$TMP/cross" <<'X'
[binaries]
c = 'aarch64-linux-gnu-gcc'
ar = 'aarch64-linux-gnu-ar'
exe_wrapper = ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
X
{ meson setup "$TMP/cross-build" --cross-file "$TMP/cross" --werror && ninja -C "$TMP/cross-build" sbpcc; } >"$TMP/log" 2>&1 || { cd "$TMP" && fail "builds-sbpcc: meson"; exit; }
echo "ok builds-sbpcc"
qemu-aarch64 -L /usr/aarch64-linux-gnu "$TMP/cross-build/sbpcc" examples/mlp.ir --steps=20 -o "$TMP/again" >"$TMP/log" 2>&1
make -s -C "$TMP/tree" clean >/dev/null 2>&1
diff -r "$TMP/tree" "$TMP/again" >"$TMP/log" 2>&1 && echo "ok same-tree" || { cd "$TMP" && fail "same-tree: trees differ"; }
