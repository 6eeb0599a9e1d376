# Every value that a program of an example stores (step, eval, infer) is what the reference evaluator computes from
# the same graph.
cp "$ROOT"/examples/*.ir .
how='data: points(classes: 2), steps: 3'
# main FROM DUMP: where there is a training step, two of them; then infer on the inputs that lie in FROM.
cat >infer.c <<'C'
#include "model.h"
#include "comm.h"
#include "save.h"
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	sbp_context *s = sbp_context_new(NULL);
	Ctx *c = (Ctx *)s;              /* which a session begins with */
	void *in[8], *out[8];
	for (int i = 0; i < 2 && argc == 3; i++)
		if (sbp_step(s, NULL))
			break;
	if (argc != 3 || sbp_get(s, "", NULL, 0) == 0 || rt_dump_begin(c, argv[2]))      /* a call that fails, but opens it */
		return 2;
	const RtIo *p = &c->program->io[RT_INFER];
	for (int i = 0; i < p->ninput + p->noutput; i++) {
		const RtTensor *t = i < p->ninput ? &p->input[i].t : &p->output[i - p->ninput];
		size_t n = rt_bytes(c, t);
		char path[4096];
		*(i < p->ninput ? &in[i] : &out[i - p->ninput]) = malloc(n);
		snprintf(path, sizeof path, "%s/%s.npy", argv[1], t->name);
		FILE *f = i < p->ninput ? fopen(path, "rb") : NULL;
		if (i < p->ninput && (!f || fseek(f, 128, SEEK_SET) || fread(in[i], 1, n, f) != n))
			return 3;
		if (f)
			fclose(f);
	}
	if (sbp_infer(s, (const void *const *)in, out)) {
		fprintf(stderr, "%s\n", sbp_error(s));
		return 1;
	}
	return 0;
}
C
same() { # name, part, option of the reader...
	local name=$1 part=$2
	shift 2
	if "$PLAIN/test-equiv-values" "$name.ir" dump "$part" "$how" "$@" >got.txt 2>&1; then echo "ok $name-$part"; else echo "not ok $name-$part: values differ"; fi
	sed 's/^\([^#]\)/ \1/' got.txt | head -n 12
}
compare() { # name, part, option of the program...
	local name=$1 part=$2
	shift 2
	rm -rf dump
	tree/trainer --dump=dump "$@" >log 2>&1 || { echo "not ok $name-$part: $(head -n 1 log)" && return; }
	same "$name" "$part"
}
build() { # model, option...: what is as it was is not compiled again
	"$SBPCC" "$@" --train="$how" -o tree >log 2>&1 || return 1
	make -s -C tree STATIC= CFLAGS=-O1 >log 2>&1
}
infer() { # name; dump/eval has the inputs
	local name=$1 alone=
	mv dump/eval from && rm -rf dump
	if ! grep -q RT_INFER tree/model.c; then     # the only output is the loss: a program of its own
		alone=--infer
		build "$name.ir" --infer || { echo "not ok $name-infer: $(head -n 1 log)" && return; }
	fi
	objects="$(sed -n '/^OBJ = /,/[^\\]$/p' tree/Makefile | grep -o '[a-z0-9_/]*\.o' | grep -v '^trainer.o' | sed 's|^|tree/|') tree/rt/comm_local.o"
	# shellcheck disable=SC2086
	cc -std=c11 -D_GNU_SOURCE -O1 -Itree -Itree/rt -Itree/kernels -o infer infer.c $objects -pthread -lm >log 2>&1 && ./infer from dump >log 2>&1 ||
		{ echo "not ok $name-infer: $(head -n 1 log)" && return; }
	cp -n from/*.npy dump/infer/      # the inputs, which no action wrote
	same "$name" infer $alone
	rm -rf from
}
for f in *.ir; do
	name=${f%.ir}
	build "$f" || { echo "not ok $name: $(head -n 1 log)" && continue; }
	compare "$name" step --steps=3 --dump-step=2
	compare "$name" eval --eval
	infer "$name"
done
