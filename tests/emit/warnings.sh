# long: yes
# Other compilers of Debian build sbpcc in release mode and a generated tree without a warning.
for cc in gcc-11 gcc-12 gcc-13 gcc-14 clang-14 clang-15 clang-16 clang-19 clang-22; do
	command -v "$cc" >/dev/null || { echo "skip $cc: not installed"; continue; }
	if { CC=$cc meson setup "$TMP/$cc" "$ROOT" --buildtype=release --werror && ninja -C "$TMP/$cc" sbpcc; } >log 2>&1; then
		echo "ok sbpcc-by-$cc"
	else
		echo "not ok sbpcc-by-$cc: warnings or errors" && grep -E 'warning|error' log | head -n 20 | sed 's/^/    /'
		continue
	fi
	(cd "$ROOT" && "$TMP/$cc/sbpcc" examples/gpt.ir --ranks=2 -o "$TMP/tree-$cc") >log 2>&1 && make -s -C "tree-$cc" CC="$cc" CFLAGS='-O2 -Werror' >log 2>&1 &&
		echo "ok tree-by-$cc" || { echo "not ok tree-by-$cc: warnings or errors" && grep -E 'warning|error' log | head -n 20 | sed 's/^/    /'; }
done
