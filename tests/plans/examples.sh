# All examples under data-parallel, tensor-parallel and ZeRO plans, in exact arithmetic.
for f in "$ROOT"/examples/*.ir; do
	"$PLAIN/test-plans-examples" "$f"       # one at a time: a symbol that one model binds stays bound
done
