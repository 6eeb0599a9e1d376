# The thread pool, plain and under the thread sanitizer.
build() { # name, flags
	local name=$1
	shift
	gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -g "$@" -I"$ROOT/runtime" -o "$name" "$HERE/pool.c" "$ROOT/runtime/thread.c" "$ROOT/runtime/base.c" -pthread
}
build plain && ./plain || echo "not ok pool: exit $?"
if build tsan -fsanitize=thread 2>/dev/null; then
	TSAN_OPTIONS=halt_on_error=1 ./tsan >tsan.out 2>tsan.err && echo "ok tsan" || { echo "not ok tsan: exit $?"; sed 's/^/    /' tsan.err | head -n 40; }
else
	echo "skip tsan: gcc has no thread sanitizer here"
fi
