# The programs of all examples compile without a warning with gcc and clang, and train and evaluate cleanly under the
# address, undefined-behaviour and thread sanitizers, with two threads. Each kind of build has one tree, whose files
# change from example to example, so that equal files are compiled once.
cp -r "$ROOT"/examples/*.ir .
kinds='gcc clang asan tsan'
build() { # kind
	case $1 in
	gcc) make -s -C "$1" STATIC= CFLAGS=-O1 ;;
	clang) make -s -C "$1" CC=clang STATIC= LOOPS= CFLAGS=-O0 ;;
	asan) make -s -C "$1" STATIC= LOOPS= CFLAGS='-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all' ;;
	tsan) make -s -C "$1" STATIC= LOOPS= CFLAGS='-g -O1 -fsanitize=thread' ;;
	esac
}
run() { # kind
	case $1 in
	asan | tsan) "$1/trainer" --steps=2 --threads=2 && "$1/trainer" --eval --threads=2 ;;
	esac
}
export TSAN_OPTIONS=halt_on_error=1:exitcode=66
for f in *.ir; do
	name=${f%.ir}
	compiler=$SBPCC                 # once under the sanitizers; the tree is the same
	for kind in $kinds; do
		[ $kind != clang ] || command -v clang >/dev/null || { echo "skip $name-$kind: no clang here" && continue; }
		"$compiler" "$f" --train='data: points(classes: 2)' -o $kind >log 2>&1 || { echo "not ok $name: $(head -n 1 log)" && continue; }
		compiler=$PLAIN/sbpcc
		build $kind >log 2>&1 && [ ! -s log ] && run $kind >log 2>&1 && echo "ok $name-$kind" || { echo "not ok $name-$kind: it warns, fails or is not clean" && sed 's/^/ /' log | head -n 20; }
	done
done
