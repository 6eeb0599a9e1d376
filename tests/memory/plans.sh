# No two live values of any example overlap in memory.
for f in "$ROOT"/examples/*.ir; do
	"$BUILD/test-memory-plans" "$f"         # one at a time: a symbol that one model binds stays bound
done
