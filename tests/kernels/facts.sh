# The facts about kernels agree with what there is: each row of compiler/target/kernel_rows.c has a call that emit/ prints, each call has a
# row, and each target that a row names has a file of that kernel.
rows="$ROOT/compiler/target/kernel_rows.c"
sed -n 's/^\t{ \.name = "\([a-z_0-9]*\)", \.file = "\([a-z_0-9]*\)".*/\1 \2/p' "$rows" | sort -u >facts
cat "$ROOT"/compiler/emit/*.c | sed -n 's/^\t{ "\([a-z_0-9]*\)", "\([a-z_0-9]*\)", call_[a-z_0-9]*, \(true\|false\) },$/\1 \2/p' | sort -u >calls
[ "$(wc -l <facts)" -gt 80 ] || echo "not ok rows: only $(wc -l <facts) were read"
if diff facts calls >log; then echo "ok every-row-has-a-call"; else echo "not ok every-row-has-a-call: < a row without, > a call without" && sed 's/^/ /' log; fi
# A row is two lines: the second one has the columns of the targets.
awk -F'"' '/^\t\{ \.name = / { file = $4 } /^\t  \.c = / { if ($0 ~ /\.c = KERNEL_HERE/) print "cpu/" file ".c"; if ($0 ~ /\.cuda = KERNEL_HERE/) print "cuda/" file ".cu" }' "$rows" | sort -u >files
bad=''
while read -r f; do [ -f "$ROOT/kernels/$f" ] || bad="$bad $f"; done <files
[ "$(wc -l <files)" -gt 20 ] || bad="$bad (only $(wc -l <files) files were read)"
if [ -z "$bad" ]; then echo "ok every-target-has-its-file"; else echo "not ok every-target-has-its-file: missing:$bad"; fi
