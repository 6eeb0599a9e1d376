# A file NAME_fast.c replaces NAME.c in generated trees, so it must have every kernel of NAME.c; otherwise trees take
# the plain file.
for f in "$ROOT"/kernels/cpu/*_fast.c; do
	name=$(basename "$f" _fast.c)
	kernels() { grep -o '^int k_[a-z0-9_]*' "$1" | sort; }
	kernels "$ROOT/kernels/cpu/$name.c" >plain.txt
	kernels "$f" >fast.txt
	missing=$(comm -23 plain.txt fast.txt | tr '\n' ' ')
	[ -z "$missing" ] && echo "ok $name" || echo "not ok $name: no fast $missing"
done
