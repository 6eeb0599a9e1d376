# exit: 0
# Names of the model, of a value and of the file are HTML elements; the report holds none of them unescaped.
file='<b>&lt;".ir'
sed 's|\<w1\>|"<img src=x onerror=y>"|g; s|^mlp |"</title><script>" |' "$ROOT/examples/mlp.ir" >"$file"
grep -q onerror "$file" && grep -q '^"</title>' "$file" && "$SBPCC" "$file" -o out && ! grep -riE '<img|onerror=|<script|<b>|&lt;' out --exclude=plan.ir --exclude=model.ir >&2 && make -s -C out
