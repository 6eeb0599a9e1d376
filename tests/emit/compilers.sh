# The same input gives the same tree, whichever compiler built sbpcc: the test compares an sbpcc built by gcc with one
# built by clang, on the examples for C and CUDA, on every optimizer, and on the dumps of the models of tests/passes.
command -v clang >/dev/null || { echo "clang is not installed" && exit 77; }
flock "$ROOT/build" bash -c 'cd "$ROOT" && { [ -f build/clang/build.ninja ] || CC=clang meson setup build/clang -Db_lundef=false -Doptimization=0 -Ddebug=false; } &&
	ninja -C build/clang sbpcc && ninja -C build/gcc sbpcc' >log 2>&1 </dev/null || { tail -n 20 log && exit 1; }
other=$ROOT/build/clang/sbpcc
same() { # name, option...
	local what=$1 a b
	shift
	rm -rf one two
	"$PLAIN/sbpcc" "$@" -o one >one.log 2>&1
	a=$?
	"$other" "$@" -o two >two.log 2>&1
	b=$?
	sed -i 's/^two:/one:/' two.log
	if [ $a = 0 ] && [ $b = 0 ] && diff -r one two >diff && diff one.log two.log >diff; then
		echo "ok $what"
	else
		echo "not ok $what: exit status $a and $b, $(grep -c '^[<>]' diff) lines differ" && head -n 5 diff | cut -c1-160 | sed 's/^/ /'
	fi
}
for f in "$ROOT"/examples/*.ir; do
	name=${f##*/}
	same "$name" "$f" --ranks=1
	same "$name-on-2" "$f" --ranks=2 --target=cuda
done
i=0
for o in 'sgd(lr: 0.1)' 'nesterov(lr: 0.1, weight_decay: 0.1)' 'adam(lr: 0.1, amsgrad: true), ema: 0.9' 'adamw(lr: 0.1), clip: norm(1.0), schedule: cosine(total: 10, warmup: 3)' 'lamb(lr: 0.1)' 'lars(lr: 0.1)' \
	'rmsprop(lr: 0.1, centered: true)' 'adagrad(lr: 0.1, lr_decay: 0.1)' 'lion(lr: 0.1), clip: value(1.0)' 'sgd(lr: 0.1, momentum: 0.9, dampening: 0.5), precision: fp16'; do
	same "optimizer-$((i += 1))" "$ROOT/examples/mlp.ir" --train="optimizer: $o, data: points(classes: 2), batch: 8, microbatch: 4" --ranks=2
done
bad=0
for f in "$ROOT"/tests/passes/*/*.ir "$ROOT"/tests/equiv/*.ir; do
	"$PLAIN/sbpcc" "$f" --dump-after=all --stop-after=prove >one.txt 2>&1
	"$other" "$f" --dump-after=all --stop-after=prove >two.txt 2>&1
	cmp -s one.txt two.txt || { bad=1 && echo "not ok ${f##*/}: $(diff one.txt two.txt | head -n 2 | tail -n 1)"; }
done
[ $bad = 1 ] || echo "ok dumps"
