/* spin N FOLDER: writes N random nets (states.h) as Promela into FOLDER/I.pml, every second one with an order bug, and
 * prints for each `I refused` or `I proved`, as check_net says.  spin.sh asks spin about them.
 *
 * The model knows nothing of the walk in compiler/lanes: a process for each lane; counters of pieces made, read and
 * given back; a rendezvous channel and a buffered one for each channel, of which the first move of all chooses one
 * kind.  A net is wrong if a process cannot go on (an invalid end state), if bytes are in use twice with buffered
 * sends, or if a block runs before one of its stage and micro-batch that it needs (assertions). */
#include "states.h"

static const LaneNet *net;
static FILE *f;

/* Numbers of registers and of readers over all roles; pieces and scratch of blocks are areas. */
static int reg_id(int r, int g)
{
	for (int i = 0; i < r; i++)
		g += net->role[i].nreg;
	return g;
}

static int lane_id(int r, int l)
{
	for (int i = 0; i < r; i++)
		l += net->role[i].nlane;
	return l;
}

enum { PIECES = 8 };    /* more than any register of these nets has copies */
static int area_id(int r, int g, int k) { return reg_id(r, g) * PIECES + k; }
static int scratch_id(int r, int b)
{
	int id = reg_id(net->nrole, 0) * PIECES;
	for (int i = 0; i < r; i++)
		id += net->role[i].nblock;
	return id + b;
}

/* What a task waits for, makes and gives back, as a list of registers of its role. */
typedef struct Does3 { int v[3][16], n[3]; } Does3;
enum { WAIT, MAKE, GIVE };

static Does3 work_of(int r, const LaneTask *t)
{
	Does3 d = { 0 };
	if (t->act == DO_BLOCK) {
		const LaneBlock *b = &net->role[r].block[t->id];
		const int *list[] = { b->wait, b->make, b->give }, n[] = { b->nwait, b->nmake, b->ngive };
		for (int k = 0; k < 3; k++)
			for (int i = 0; i < n[k]; i++)
				d.v[k][d.n[k]++] = list[k][i];
	} else if (t->act == DO_SEND) {
		d.v[WAIT][d.n[WAIT]++] = d.v[GIVE][d.n[GIVE]++] = net->channel[t->id].from_reg;
	} else {
		d.v[MAKE][d.n[MAKE]++] = net->channel[t->id].to_reg;
	}
	return d;
}

static bool lane_reads(int r, int l, int g)
{
	const Lane *lane = &net->role[r].lane[l];
	for (int i = 0; i < lane->ntask; i++) {
		Does3 d = work_of(r, &lane->task[i]);
		for (int k = 0; k < d.n[WAIT]; k++)
			if (d.v[WAIT][k] == g)
				return true;
	}
	return false;
}

/* An area is taken: no other that shares its bytes is in use. */
static void take(int r, int area, int64_t from, int64_t bytes, const char *when)
{
	const LaneRole *role = &net->role[r];
	fprintf(f, "\t\t%s", when);
	for (int g = 0; g < role->nreg; g++)
		for (int k = 0; k < role->reg[g].copies; k++) {
			int64_t x = role->reg[g].offset + k * role->reg[g].bytes;
			if (area_id(r, g, k) != area && x < from + bytes && from < x + role->reg[g].bytes)
				fprintf(f, " assert(!buffered || !used[%d]);", area_id(r, g, k));
		}
	for (int b = 0; b < role->nblock; b++) {
		int64_t x = role->block[b].offset;
		if (scratch_id(r, b) != area && x < from + bytes && from < x + role->block[b].scratch)
			fprintf(f, " assert(!buffered || !used[%d]);", scratch_id(r, b));
	}
	fprintf(f, " used[%d] = 1;\n", area);
}

static void begin(int r, const LaneTask *t, const Does3 *d)
{
	const LaneRole *role = &net->role[r];
	fputs("\td_step {\n", f);
	for (int i = 0; i < d->n[MAKE]; i++) {
		int g = d->v[MAKE][i];
		const LaneRegister *x = &role->reg[g];
		if (!x->bytes)
			continue;
		fputs("\t\tif\n", f);
		for (int k = 0; k < x->copies; k++) {
			const char *when = arena_printf(&arena_process, ":: made[%d] %% %d == %d ->", reg_id(r, g),
				x->copies, k);
			take(r, area_id(r, g, k), x->offset + k * x->bytes, x->bytes, when);
		}
		fputs("\t\tfi;\n", f);
	}
	if (t->act == DO_BLOCK && role->block[t->id].scratch)
		take(r, scratch_id(r, t->id), role->block[t->id].offset, role->block[t->id].scratch, "");
	fputs("\t\tskip\n\t};\n", f);
}

static void end(int r, int l, const LaneTask *t, const Does3 *d)
{
	const LaneRole *role = &net->role[r];
	int me = lane_id(r, l);
	for (int i = 0; i < d->n[WAIT]; i++)
		fprintf(f, "\t\tseen%d[%d]++;\n", me, d->v[WAIT][i]);
	for (int i = 0; i < d->n[MAKE]; i++)
		fprintf(f, "\t\tmade[%d]++;\n", reg_id(r, d->v[MAKE][i]));
	for (int i = 0; i < d->n[GIVE]; i++) {
		int g = d->v[GIVE][i];
		/* free when all lanes that read it have given it back: each of these registers has one reader */
		for (int k = 0; k < role->reg[g].copies; k++)
			fprintf(f, "\t\tif :: given%d[%d] %% %d == %d -> used[%d] = 0 :: else fi;\n", me, g,
				role->reg[g].copies, k, area_id(r, g, k));
		fprintf(f, "\t\tgiven%d[%d]++;\n", me, g);
	}
	if (t->act == DO_BLOCK && role->block[t->id].scratch)
		fprintf(f, "\t\tused[%d] = 0;\n", scratch_id(r, t->id));
}

static void guard(int r, int l, const Does3 *d)
{
	const LaneRole *role = &net->role[r];
	fputs("\t(true", f);
	for (int i = 0; i < d->n[WAIT]; i++)
		fprintf(f, " && made[%d] > seen%d[%d]", reg_id(r, d->v[WAIT][i]), lane_id(r, l), d->v[WAIT][i]);
	for (int i = 0; i < d->n[MAKE]; i++)
		for (int k = 0; k < role->nlane; k++)
			if (lane_reads(r, k, d->v[MAKE][i]))
				fprintf(f, " && made[%d] < given%d[%d] + %d", reg_id(r, d->v[MAKE][i]), lane_id(r, k),
					d->v[MAKE][i], role->reg[d->v[MAKE][i]].copies);
	fputs(");\n", f);
}

/* F, B and W of a stage and micro-batch in this order; an update behind all. */
static void legal(int r, int l, int i)
{
	static const int turn[] = { [BLOCK_F] = 1, [BLOCK_B] = 2, [BLOCK_BW] = 2, [BLOCK_W] = 3, [BLOCK_UPDATE] = 4 };
	const LaneRole *role = &net->role[r];
	const LaneTask *t = &role->lane[l].task[i];
	const LaneBlock *b = &role->block[t->id];
	for (int k = i + 1; k < role->lane[l].ntask; k++) {
		const LaneTask *u = &role->lane[l].task[k];
		const LaneBlock *c = u->act == DO_BLOCK ? &role->block[u->id] : NULL;
		bool same = c && c->stage == b->stage && t->micro == u->micro;
		if (c && (same || b->kind == BLOCK_UPDATE) && turn[c->kind] < turn[b->kind])
			fputs("\tassert(false);\n", f);
	}
}

static void write_task(int r, int l, int i)
{
	const LaneTask *t = &net->role[r].lane[l].task[i];
	Does3 d = work_of(r, t);
	guard(r, l, &d);
	if (t->act == DO_BLOCK)
		legal(r, l, i);
	if (t->act == DO_RECEIVE)
		fprintf(f, "\tif :: buffered -> buffer%d?0 :: !buffered -> meet%d?0 fi;\n", t->id, t->id);
	begin(r, t, &d);
	for (int m = 0; t->act == DO_BLOCK && m < net->role[r].block[t->id].nmeet; m++) {
		int id = net->role[r].block[t->id].meet[m];
		fprintf(f, "\tcame[%d]++; met%d[%d]++; (came[%d] >= %d * met%d[%d]);\n", id, lane_id(r, l), id, id,
			net->meet[id].nrole, lane_id(r, l), id);
	}
	if (t->act == DO_SEND)
		fprintf(f, "\tif :: buffered -> atomic { buffer%d!0; d_step {\n", t->id);
	else
		fputs("\td_step {\n", f);
	end(r, l, t, &d);
	if (t->act == DO_SEND) {
		fprintf(f, "\t\tskip } } :: !buffered -> meet%d!0; d_step {\n", t->id);
		end(r, l, t, &d);
		fputs("\t\tskip } fi;\n", f);
	} else {
		fputs("\t\tskip\n\t};\n", f);
	}
}

static void write_net(void)
{
	int nlane = lane_id(net->nrole, 0);
	fprintf(f, "bool buffered; byte made[%d]; bit used[%d]; byte came[%d];\n", reg_id(net->nrole, 0),
		scratch_id(net->nrole, 0) + 1, net->nmeet + 1);
	for (int c = 0; c < net->nchannel; c++)
		fprintf(f, "chan meet%d = [0] of { bit }; chan buffer%d = [16] of { bit };\n", c, c);
	for (int r = 0; r < net->nrole; r++)
		for (int l = 0; l < net->role[r].nlane; l++)
			fprintf(f, "byte seen%d[%d], given%d[%d], met%d[%d];\n", lane_id(r, l), net->role[r].nreg,
				lane_id(r, l), net->role[r].nreg, lane_id(r, l), net->nmeet + 1);
	for (int r = 0; r < net->nrole; r++)
		for (int l = 0; l < net->role[r].nlane; l++) {
			fprintf(f, "proctype lane%d() {\n\tbyte step = 0;\n\tdo\n\t:: step < %d ->\n",
				lane_id(r, l), STEPS);
			for (int i = 0; i < net->role[r].lane[l].ntask; i++)
				write_task(r, l, i);
			fputs("\tstep++\n\t:: else -> break\n\tod\n}\n", f);
		}
	fputs("init {\n\tif :: buffered = true :: buffered = false fi;\n\tatomic {\n", f);
	for (int l = 0; l < nlane; l++)
		fprintf(f, "\t\trun lane%d();\n", l);
	fputs("\t}\n}\n", f);
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[1]) : 0;
	seed = 2;
	for (int i = 0; i < n; i++) {
		Arena a = { 0 };
		LaneNet made;
		char path[4096];
		random_net(&a, i % 2, &made);
		net = &made;
		snprintf(path, sizeof path, "%s/%d.pml", argv[2], i);
		f = fopen(path, "w");
		if (!f)
			return 1;
		write_net();
		fclose(f);
		printf("%d %s\n", i, check_net(&made, &a) ? "refused" : "proved");
		arena_free(&a);
	}
	return n == 0;
}
