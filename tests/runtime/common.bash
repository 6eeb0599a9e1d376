# For the scripts of tests/runtime.
check() { # name, command...: prints ok or not ok
	local name=$1
	shift
	if "$@" >log 2>&1; then echo "ok $name"; else echo "not ok $name: exit status $?: $(head -n 2 log)"; fi
}
refused() { # name, exit status, text, command...
	local name=$1 want=$2 text=$3 status
	shift 3
	"$@" >log 2>&1
	status=$?
	if [ $status = "$want" ] && grep -q -- "$text" log; then echo "ok $name"; else echo "not ok $name: exit status $status: $(head -n 2 log)"; fi
}
sanitized='-g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all'
tree() { # tree, options of sbpcc...: compiled with the sanitizers, or with FLAGS
	local tree=$1 flags=${FLAGS:-$sanitized} loops=()
	shift
	case $flags in *-fsanitize=*) loops=(LOOPS=) ;; esac
	"$SBPCC" "$@" -o "$tree" >log 2>&1 && make -s -C "$tree" STATIC= "${loops[@]}" CFLAGS="$flags" >log 2>&1 || { echo "not ok $tree: $(head -n 3 log)" && exit 1; }
}
slow_action() { # tree, make's options...: one action of rank 1 takes 5 seconds
	local tree=$1
	shift
	sed -i 's/^#include "comm.h"/&\n#include <unistd.h>/; s/^\tc->values = values;/&\n\tif (c->rank \&\& c->step == 3 \&\& c->id == 2)\n\t\tsleep(5);/' "$tree/rt/actor.c"
	grep -q 'sleep(5)' "$tree/rt/actor.c" && make -s -C "$tree" CFLAGS=-O1 "$@" >log 2>&1 || echo "not ok slow-action: $(head -n 2 log)"
}
losses() { # trainer, options...
	"$@" --every=1 2>err | grep -o '^step *[0-9]* *loss [^ ]*'
}
