/* Conversion between ONNX's own multi-device messages (IR version 11) and our annotations.
 *
 * Writing mirrors what the messages can express, for other tools: a mesh becomes a DeviceConfigurationProto, S and B of
 * an operand or result a ShardingSpecProto, the stage pipeline_stage.  P has no message: it is written as B, which only
 * means that such a tool reduces earlier.  Our annotations are written as well and take precedence: messages named
 * sbpcc.* are not read again.
 *
 * Reading is for files of other tools.  A spec lists shards and devices, not a mesh, so the mesh is inferred: of all
 * shapes for the set of devices, the first under which every spec is one S or B per mesh axis. */
#include "onnx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "sbpcc."
enum { AXES = 8, SPLITS = 4, DEVICES = 4096, KINDS = 64 };

/* Writing. */

typedef struct Grid {               /* a mesh or a slice of one */
	Name mesh;
	int naxis;
	int64_t size[AXES], stride[AXES], first;
} Grid;

static const Annot *find_mesh(const Model *m, Name name, int *count)
{
	const Annot *found = NULL;

	*count = 0;
	for (const Annot *a = m->annot; a; a = a->next) {
		if (strcmp(a->name, "mesh") || a->narg < 3 || a->arg[2].kind != ARG_LIST)
			continue;
		++*count;
		if (!name || a->arg[0].s == name)
			found = a;
	}
	return found;
}

/* The devices that an @on names; without one, those of the only mesh.  False when they are ambiguous. */
static bool grid_of(const Model *m, const Annot *on, Grid *g)
{
	const Arg *where = on && on->narg ? &on->arg[0] : NULL;
	int count;
	const Annot *mesh = find_mesh(m, where ? where->s : NULL, &count);
	int64_t stride = 1;

	if (!mesh || (!where && count != 1) || mesh->arg[2].narg > AXES)
		return false;
	*g = (Grid){ .mesh = mesh->arg[0].s, .naxis = mesh->arg[2].narg };
	for (int k = g->naxis; k-- > 0; stride *= mesh->arg[2].arg[k].i) {
		const Arg *s = where && where->kind == ARG_INDEX && k < where->narg ? &where->arg[k] : NULL;
		int64_t all = mesh->arg[2].arg[k].i, from = 0, to = all - 1;

		if (all < 1 || all > DEVICES || stride > DEVICES)
			return false;
		if (s && s->kind == ARG_RANGE)
			from = s->i, to = s->j;
		else if (s && s->kind == ARG_INT)
			from = to = s->i;
		if (from < 0 || to >= all || from > to)
			return false;
		g->size[k] = to - from + 1;
		g->stride[k] = stride;
		g->first += from * stride;
	}
	return true;
}

/* The signature of one tensor as the tensor axis that each mesh axis splits, -1 for none. */
static bool splits(const Grid *g, const Arg *sbp, int n, int *split)
{
	if (n != g->naxis)
		return false;
	for (int i = 0; i < n; i++) {
		const Arg *a = &sbp[i];

		split[i] = -1;
		if (a->kind == ARG_CALL && a->s[0] == 'S' && a->narg == 1 && a->arg[0].kind == ARG_INT)
			split[i] = (int)a->arg[0].i;
		else if ((a->kind != ARG_WORD && a->kind != ARG_CALL) || (a->s[0] != 'B' && a->s[0] != 'P'))
			return false;
	}
	return true;
}

/* The device of a shard: coordinates on the axes of one kind (splitting a tensor axis, or none) from a running number.
 * */
static int64_t device_of(const Grid *g, const int *split, int64_t shard, const int *axes, int naxes, int64_t copy)
{
	int64_t at = g->first;

	for (int d = naxes; d-- > 0;)
		for (int k = g->naxis; k-- > 0;)
			if (split[k] == axes[d]) {
				at += shard % g->size[k] * g->stride[k];
				shard /= g->size[k];
			}
	for (int k = g->naxis; k-- > 0;)
		if (split[k] < 0) {
			at += copy % g->size[k] * g->stride[k];
			copy /= g->size[k];
		}
	return at;
}

static void put_spec(WireOut *o, Name tensor, const Grid *g, const int *split)
{
	int axes[AXES], naxes = 0;
	int64_t shards = 1, copies = 1, dev[DEVICES];
	size_t at = wire_out_open(o, 2);

	for (int k = 0; k < g->naxis; k++) {
		int d = 0;

		*(split[k] < 0 ? &copies : &shards) *= g->size[k];
		if (split[k] < 0)
			continue;
		while (d < naxes && axes[d] < split[k])
			d++;
		if (d < naxes && axes[d] == split[k])
			continue;
		memmove(axes + d + 1, axes + d, sizeof *axes * (size_t)(naxes++ - d));
		axes[d] = split[k];
	}
	wire_out_text(o, 1, tensor);
	for (int64_t s = 0; s < shards; s++)
		dev[s] = copies > 1 ? -1 - s : device_of(g, split, s, axes, naxes, 0);
	wire_out_ints(o, 2, dev, (int)shards, false);
	for (int64_t s = 0; copies > 1 && s < shards; s++) {
		size_t group = wire_out_open(o, 3);

		wire_out_int(o, 1, -1 - s);
		for (int64_t c = 0; c < copies; c++)
			wire_out_int(o, 2, device_of(g, split, s, axes, naxes, c));
		wire_out_close(o, group);
	}
	for (int d = 0; d < naxes; d++) {
		size_t dim = wire_out_open(o, 4), simple;
		int64_t n = 1;

		for (int k = 0; k < g->naxis; k++)
			n *= split[k] == axes[d] ? g->size[k] : 1;
		wire_out_int(o, 1, axes[d]);
		simple = wire_out_open(o, 2);
		wire_out_int(o, 3, n);
		wire_out_close(o, simple);
		wire_out_close(o, dim);
	}
	wire_out_close(o, at);
}

/* The entry of a node's @sbp for operand i (or result i, behind the arrow); NULL when there is none. */
static const Arg *entry_of(const Annot *sbp, int i, bool result)
{
	bool behind = false;

	for (int k = 0; sbp && k < sbp->narg; k++) {
		if (sbp->arg[k].arrow)
			behind = true;
		if (behind == result && i-- == 0)
			return &sbp->arg[k];
	}
	return NULL;
}

static void put_tensor(WireOut *o, const Model *m, const Value *v, const Arg *entry, const Grid *g, bool known)
{
	const Annot *own = annot_find(v->annot, "sbp"), *on = annot_find(v->annot, "on");
	int split[AXES];
	Grid there;

	if (entry && known) {
		bool list = entry->kind == ARG_LIST;

		if (splits(g, list ? entry->arg : entry, list ? entry->narg : 1, split))
			put_spec(o, v->name, g, split);
	} else if (own && (on || known)) {
		there = *g;
		if ((!on || grid_of(m, on, &there)) && (!known || there.mesh == g->mesh) &&
			splits(&there, own->arg, own->narg, split))
			put_spec(o, v->name, &there, split);
	}
}

bool onnx_shard_put_node(WireOut *o, uint32_t num, const Model *m, const Node *n)
{
	const Annot *sbp = annot_find(n->annot, "sbp"), *stage = annot_find(n->annot, "stage"),
		    *on = annot_find(n->annot, "on");
	Grid g = { 0 };
	bool known = grid_of(m, on, &g), any = sbp || stage || on;

	for (int i = 0; i < n->nin && !any; i++)
		any = n->in[i] && annot_find(n->in[i]->annot, "sbp");
	for (int i = 0; i < n->nout && !any; i++)
		any = n->out[i] && annot_find(n->out[i]->annot, "sbp");
	if (!any || (!known && !stage))
		return false;
	size_t at = wire_out_open(o, num);
	wire_out_text(o, 1, known ? name_fmt(PREFIX "%s", g.mesh) : name_of(PREFIX "stages"));
	for (int i = 0; known && i < n->nin; i++)
		if (n->in[i])
			put_tensor(o, m, n->in[i], entry_of(sbp, i, false), &g, known);
	for (int i = 0; known && i < n->nout; i++)
		if (n->out[i])
			put_tensor(o, m, n->out[i], entry_of(sbp, i, true), &g, known);
	if (stage && stage->narg)
		wire_out_int(o, 3, stage->arg[0].i);
	wire_out_close(o, at);
	return true;
}

/* The numbers of the devices of a mesh: as given, or 0, 1, 2, ... */
static int64_t rank_of(const Annot *mesh, int64_t i)
{
	int64_t left = i;

	for (int k = 3; k < mesh->narg; k++) {
		const Arg *a = &mesh->arg[k], *list = a->kind == ARG_LIST ? a->arg : a;

		for (int j = 0, n = a->kind == ARG_LIST ? a->narg : 1; j < n; j++) {
			int64_t from = list[j].i, to = list[j].kind == ARG_RANGE ? list[j].j : from;

			if (left <= to - from)
				return from + left;
			left -= to - from + 1;
		}
	}
	return i;
}

void onnx_shard_put_configs(WireOut *o, uint32_t num, const Model *m)
{
	bool stages = false;
	Grid g;

	for (const Annot *a = m->annot; a; a = a->next) {
		int64_t n = 1;

		if (strcmp(a->name, "mesh") || a->narg < 3 || a->arg[2].kind != ARG_LIST)
			continue;
		for (int k = 0; k < a->arg[2].narg && n <= DEVICES; k++)
			n *= a->arg[2].arg[k].i > DEVICES ? DEVICES + 1 : a->arg[2].arg[k].i;
		if (n < 1 || n > DEVICES)
			continue;
		size_t at = wire_out_open(o, num);
		wire_out_text(o, 1, name_fmt(PREFIX "%s", a->arg[0].s));
		wire_out_int(o, 2, n);
		for (int64_t i = 0; i < n; i++)
			wire_out_text(o, 3,
				name_fmt("%s:%lld", a->arg[1].s ? a->arg[1].s : "cpu", (long long)rank_of(a, i)));
		wire_out_close(o, at);
	}
	for (int i = 0; m->graph && i < m->graph->nnode && !stages; i++) {
		const Annot *a = m->graph->node[i]->annot;

		stages = annot_find(a, "stage") && !grid_of(m, annot_find(a, "on"), &g);
	}
	if (stages) {
		size_t at = wire_out_open(o, num);

		wire_out_text(o, 1, name_of(PREFIX "stages"));
		wire_out_int(o, 2, 1);
		wire_out_close(o, at);
	}
}

/* Reading. */

static const WireSpec CONFIG     = { "DeviceConfigurationProto",     " siS" };
static const WireSpec NODE_CFG   = { "NodeDeviceConfigurationProto", " sSi" };
static const WireSpec SHARDING   = { "ShardingSpecProto",            " sISS" };
static const WireSpec GROUP      = { "IntIntListEntryProto",         " iI" };
static const WireSpec SHARD_DIM  = { "ShardedDimProto",              " iS" };
static const WireSpec SIMPLE_DIM = { "SimpleShardedDimProto",        " isi" };

typedef struct Sharding {           /* one tensor */
	Name tensor;
	int64_t *entry; int nentry;     /* a device, or the key of a group, for each shard */
	struct Group { int64_t key, *dev; int n; } *group; int ngroup;
	struct { int64_t axis, shards; } dim[SPLITS]; int ndim;
	bool bad;                       /* more than the messages of one tensor can express */
	uint16_t *shard;                /* by position in the sorted set of devices */
	struct Devices *set;
} Sharding;

typedef struct Devices {            /* a set of devices, which becomes a mesh */
	int64_t *dev; int n;
	Name config, mesh;
	bool cuda;
	int64_t size[3]; int naxis;
	Sharding **used; int nused;     /* specs that differ, the first KINDS of them */
	struct Devices *next;
} Devices;

typedef struct NodeSpec {
	Node *n;
	Name config;
	Sharding *spec; int nspec;
	int64_t stage;
} NodeSpec;

struct OnnxShards {
	WireIn *w;
	struct { Name name; bool cuda; } *config; int nconfig;
	NodeSpec *node; int nnode;
	Devices *set, **last;
	int nset, lost;
};

OnnxShards *onnx_shard_reader(WireIn *w)
{
	OnnxShards *r = arena_new(w->arena, OnnxShards);

	r->w = w;
	r->last = &r->set;
	return r;
}

static bool ours(Name config)
{
	return !strncmp(config, PREFIX, strlen(PREFIX));
}

/* False: the message is ours, and need not be kept. */
bool onnx_shard_config(OnnxShards *r, const WireField *f)
{
	WireMsg m = wire_msg(r->w, &CONFIG, f, NULL);
	Name name = name_of("");
	bool cuda = false;
	WireField g;

	while (wire_next(&m, &g)) {
		if (g.num == 1)
			name = wire_name(r->w, &g);
		else if (g.num == 3) {
			Name dev = wire_name(r->w, &g);

			cuda |= strcasestr(dev, "cuda") || strcasestr(dev, "gpu");
		}
	}
	if (ours(name))
		return false;
	r->config = arena_grow(r->w->arena, r->config, r->nconfig, sizeof *r->config);
	r->config[r->nconfig].name = name;
	r->config[r->nconfig++].cuda = cuda;
	return true;
}

static void read_group(OnnxShards *r, const WireField *f, Sharding *s)
{
	WireMsg m = wire_msg(r->w, &GROUP, f, NULL);
	struct Group group = { 0 };
	WireField g;

	while (wire_next(&m, &g)) {
		if (g.num == 1)
			group.key = (int64_t)g.v;
		else
			wire_ints(r->w, &g, &group.dev, &group.n);
	}
	arena_push(r->w->arena, s->group, s->ngroup, group);
}

/* Several splits of one axis belong to axes that were fused; only a split of the outermost one is a plain S. */
static void read_dim(OnnxShards *r, const WireField *f, Sharding *s)
{
	WireMsg m = wire_msg(r->w, &SHARD_DIM, f, NULL);
	int64_t axis = 0, shards = 1;
	int simple = 0;
	WireField g;

	while (wire_next(&m, &g)) {
		if (g.num == 1) {
			axis = (int64_t)g.v;
			continue;
		}
		WireMsg in = wire_msg(r->w, &SIMPLE_DIM, &g, NULL);
		int64_t n = 1;
		WireField h;

		while (wire_next(&in, &h))
			if (h.num == 3)
				n = (int64_t)h.v;
		s->bad |= simple++ > 0 && n > 1;
		shards = n > 1 ? n : shards;
	}
	if (s->ndim == SPLITS || shards < 1 || shards > DEVICES) {
		s->bad = true;
		return;
	}
	s->dim[s->ndim].axis = axis;
	s->dim[s->ndim++].shards = shards;
}

static Sharding read_sharding(OnnxShards *r, const WireField *f)
{
	WireMsg m = wire_msg(r->w, &SHARDING, f, NULL);
	Sharding s = { .tensor = name_of("") };
	WireField g;

	while (wire_next(&m, &g)) {
		switch (g.num) {
		case 1: s.tensor = wire_name(r->w, &g); break;
		case 2: wire_ints(r->w, &g, &s.entry, &s.nentry); break;
		case 3: read_group(r, &g, &s); break;
		case 4: read_dim(r, &g, &s); break;
		}
	}
	return s;
}

/* False: the message is ours, and need not be kept. */
bool onnx_shard_node(OnnxShards *r, Node *n, const WireField *f)
{
	WireMsg m = wire_msg(r->w, &NODE_CFG, f, NULL);
	NodeSpec s = { .n = n, .config = name_of(""), .stage = -1 };
	WireField g;

	while (wire_next(&m, &g)) {
		if (g.num == 1)
			s.config = wire_name(r->w, &g);
		else if (g.num == 3)
			s.stage = (int64_t)g.v;
		else
			arena_push(r->w->arena, s.spec, s.nspec, read_sharding(r, &g));
	}
	if (ours(s.config))
		return false;
	/* Of several configurations the first one counts. */
	if (!r->nnode || r->node[r->nnode - 1].n != n)
		arena_push(r->w->arena, r->node, r->nnode, s);
	return true;
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static const struct Group *group_of(const Sharding *s, int64_t key)
{
	for (int i = 0; i < s->ngroup; i++)
		if (s->group[i].key == key)
			return &s->group[i];
	return NULL;
}

typedef struct Held { int64_t dev, shard; } Held;

/* Each device with its shard, sorted by device; the number of devices, or 0 when one would hold two shards. */
static int held_shards(const Sharding *s, Held *held)
{
	int64_t shards = 1;
	int n = 0;

	for (int i = 0; i < s->ndim; i++)
		if ((shards *= s->dim[i].shards) > DEVICES)
			return 0;
	if (s->bad || shards != s->nentry)
		return 0;
	for (int i = 0; i < s->nentry; i++) {
		const struct Group *g = group_of(s, s->entry[i]);

		for (int k = 0; k < (g ? g->n : 1); k++) {
			if (n == DEVICES)
				return 0;
			held[n++] = (Held){ g ? g->dev[k] : s->entry[i], i };
		}
	}
	qsort(held, (size_t)n, sizeof *held, by_number);
	for (int i = 0; i < n; i++)
		if (held[i].dev < 0 || (i && held[i].dev == held[i - 1].dev))
			return 0;
	return n;
}

static Devices *device_set(OnnxShards *r, const Held *held, int n, Name config)
{
	Devices *set = r->set;

	for (; set; set = set->next) {
		bool same = set->n == n && set->config == config;

		for (int i = 0; i < n && same; i++)
			same = set->dev[i] == held[i].dev;
		if (same)
			return set;
	}
	if (r->nset == 256)
		return NULL;
	r->nset++;
	set = arena_new(r->w->arena, Devices);
	*set = (Devices){ .dev = arena_array(r->w->arena, int64_t, n), .n = n, .config = config };
	for (int i = 0; i < n; i++)
		set->dev[i] = held[i].dev;
	for (int i = 0; i < r->nconfig; i++)
		set->cuda |= r->config[i].name == config && r->config[i].cuda;
	*r->last = set;
	r->last = &set->next;
	return set;
}

static bool put_on(OnnxShards *r, Sharding *s, Name config)
{
	Held held[DEVICES];
	int n = held_shards(s, held);

	if (!n || !(s->set = device_set(r, held, n, config)))
		return false;
	s->shard = arena_array(r->w->arena, uint16_t, n);
	for (int i = 0; i < n; i++)
		s->shard[i] = (uint16_t)held[i].shard;
	return true;
}

/* One S or B per mesh axis under which each device holds the shard that the spec gives it: choice[k] is the index
 * of a split axis, ndim for B. */
static bool express(const Sharding *s, const int64_t *size, int naxis, int *choice)
{
	int tries = 1;

	for (int k = 0; k < naxis; k++)
		tries *= s->ndim + 1;
	for (int t = 0; t < tries; t++) {
		bool ok = true;

		for (int k = 0, x = t; k < naxis; k++, x /= s->ndim + 1)
			choice[k] = x % (s->ndim + 1);
		for (int d = 0; d < s->ndim && ok; d++) {
			int64_t n = 1;

			for (int k = 0; k < naxis; k++)
				n *= choice[k] == d ? size[k] : 1;
			ok = n == s->dim[d].shards;
		}
		for (int q = 0; q < s->set->n && ok; q++) {
			int64_t at[3], rest = q, shard = 0;

			for (int k = naxis; k-- > 0; rest /= size[k])
				at[k] = rest % size[k];
			for (int d = 0; d < s->ndim; d++)
				for (int k = 0; k < naxis; k++)
					if (choice[k] == d)
						shard = shard * size[k] + at[k];
			ok = shard == s->shard[q];
		}
		if (ok)
			return true;
	}
	return false;
}

static bool all_expressed(const Devices *set, const int64_t *size, int naxis)
{
	int choice[3];

	for (int i = 0; i < set->nused; i++)
		if (!express(set->used[i], size, naxis, choice))
			return false;
	return true;
}

static void find_shape(Devices *set)
{
	int64_t n = set->n;

	set->naxis = 1;
	set->size[0] = n;
	if (all_expressed(set, set->size, 1))
		return;
	for (int64_t a = 2; a < n; a++)
		if (n % a == 0 && all_expressed(set, (int64_t[]){ a, n / a }, 2)) {
			set->naxis = 2;
			set->size[0] = a, set->size[1] = n / a;
			return;
		}
	for (int64_t a = 2; a < n; a++)
		for (int64_t b = 2; n % a == 0 && b < n / a; b++)
			if (n / a % b == 0 && all_expressed(set, (int64_t[]){ a, b, n / a / b }, 3)) {
				set->naxis = 3;
				set->size[0] = a, set->size[1] = b, set->size[2] = n / a / b;
				return;
			}
}

static void put_mesh(OnnxShards *r, Model *m, Devices *set, int number)
{
	char *buf = NULL, id[40];
	size_t len = 0, k = 0;
	int count;
	FILE *f = open_memstream(&buf, &len);

	if (!f)
		die("out of memory for a mesh");
	for (const char *p = set->config; *p && k < 24; p++)
		id[k++] = isalnum((unsigned char)*p) ? *p : '_';
	if (!k || isdigit((unsigned char)id[0]))
		memcpy(id, "mesh", k = 4);
	id[k] = 0;
	set->mesh = name_of(id);
	while (find_mesh(m, set->mesh, &count))
		set->mesh = name_fmt("%s%d", id, number++);
	fprintf(f, "@mesh(%s, %s, [", set->mesh, set->cuda ? "cuda" : "cpu");
	for (int i = 0; i < set->naxis; i++)
		fprintf(f, i ? ", %lld" : "%lld", (long long)set->size[i]);
	fputs("], [", f);
	for (int i = 0; i < set->n; i++)
		fprintf(f, i ? ", %lld" : "%lld", (long long)set->dev[i]);
	fputs("])", f);
	fclose(f);
	Name text = name_of(buf);
	free(buf);
	if (parse_annots(file_memory("<device configuration>", text, strlen(text)), m, ON_MODEL, &m->annot))
		r->w->bad = true;
}

static Sharding *spec_of(NodeSpec *s, const Value *v)
{
	for (int i = 0; v && i < s->nspec; i++)
		if (s->spec[i].tensor == v->name && s->spec[i].set)
			return &s->spec[i];
	return NULL;
}

static void put_signature(FILE *f, NodeSpec *s, const Devices *set, const Value *v)
{
	const Sharding *h = spec_of(s, v);
	int choice[3];

	if (!h || h->set != set || !express(h, set->size, set->naxis, choice)) {
		fputs("_", f);
		return;
	}
	fputs(set->naxis > 1 ? "[" : "", f);
	for (int k = 0; k < set->naxis; k++) {
		fputs(k ? ", " : "", f);
		if (choice[k] == h->ndim)
			fputs("B", f);
		else
			fprintf(f, "S(%lld)", (long long)h->dim[choice[k]].axis);
	}
	fputs(set->naxis > 1 ? "]" : "", f);
}

static void put_node(OnnxShards *r, Model *m, NodeSpec *s)
{
	const Devices *set = NULL;
	const Node *n = s->n;
	char *buf = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&buf, &len);

	if (!f)
		die("out of memory for an annotation");
	for (int i = n->nout; i-- > 0;)
		if (spec_of(s, n->out[i]))
			set = spec_of(s, n->out[i])->set;
	for (int i = n->nin; i-- > 0 && !set;)
		if (spec_of(s, n->in[i]))
			set = spec_of(s, n->in[i])->set;
	if (set) {
		fprintf(f, "@on(%s) @sbp(", set->mesh);
		for (int i = 0; i < n->nin; i++) {
			fputs(i ? ", " : "", f);
			put_signature(f, s, set, n->in[i]);
		}
		for (int i = 0; i < n->nout; i++) {
			fputs(i ? ", " : n->nin ? " -> " : "-> ", f);
			put_signature(f, s, set, n->out[i]);
		}
		fputs(") ", f);
	}
	if (s->stage >= 0)
		fprintf(f, "@stage(%lld)", (long long)s->stage);
	fclose(f);
	Name text = name_of(buf);
	free(buf);
	if (parse_annots(file_memory("<device configuration>", text, strlen(text)), m, ON_NODE, &s->n->annot))
		r->w->bad = true;
}

/* Counts axes from the front; not needed for a spec whose tensor has no known number of axes. */
static bool fix_axes(const NodeSpec *s, Sharding *h)
{
	const Node *n = s->n;
	const Value *v = NULL;

	for (int i = 0; i < n->nin; i++)
		v = n->in[i] && n->in[i]->name == h->tensor ? n->in[i] : v;
	for (int i = 0; i < n->nout; i++)
		v = n->out[i] && n->out[i]->name == h->tensor ? n->out[i] : v;
	for (int d = 0; d < h->ndim; d++) {
		if (h->dim[d].axis < 0 && v && v->type && v->type->ndim >= 0)
			h->dim[d].axis += v->type->ndim;
		if (h->dim[d].axis < 0 || h->dim[d].axis >= NDIM_MAX)
			return false;
	}
	return v != NULL;
}

static bool like_another(const Sharding *h)
{
	for (int i = 0; i < h->set->nused; i++) {
		const Sharding *o = h->set->used[i];
		bool same = o->ndim == h->ndim;

		for (int d = 0; d < h->ndim && same; d++)
			same = o->dim[d].shards == h->dim[d].shards;
		if (same && !memcmp(o->shard, h->shard, sizeof *h->shard * (size_t)h->set->n))
			return true;
	}
	return false;
}

void onnx_shard_finish(OnnxShards *r, Model *m)
{
	int number = 1;

	for (int i = 0; i < r->nnode && !r->w->bad; i++) {
		NodeSpec *s = &r->node[i];

		/* Annotations of ours come first. */
		if (annot_find(s->n->annot, "sbp") || annot_find(s->n->annot, "on") ||
			annot_find(s->n->annot, "stage")) {
			s->nspec = 0;
			s->stage = -1;
			continue;
		}
		for (int k = 0; k < s->nspec; k++) {
			Sharding *h = &s->spec[k];

			if (!fix_axes(s, h) || !put_on(r, h, s->config)) {
				r->lost++;
				h->set = NULL;
				continue;
			}
			if (h->set->nused < KINDS && !like_another(h))
				arena_push(r->w->arena, h->set->used, h->set->nused, h);
		}
	}
	for (Devices *set = r->set; set && !r->w->bad; set = set->next) {
		find_shape(set);
		put_mesh(r, m, set, number);
	}
	for (int i = 0; i < r->nnode && !r->w->bad; i++)
		if (r->node[i].nspec || r->node[i].stage >= 0)
			put_node(r, m, &r->node[i]);
	if (r->lost && !r->w->bad)
		warn_at((Loc){ .file = r->w->file, .len = 1 },
			"%d sharding spec%s cannot be expressed as S and B and %s left out", r->lost,
		        r->lost > 1 ? "s" : "", r->lost > 1 ? "are" : "is");
}
