/* The test column of a row as operands and as a graph of one node: shared by the programs that walk the table. */
#ifndef SBPCC_TESTS_CASE_H
#define SBPCC_TESTS_CASE_H

#include "ir.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAXIN = 16 };

typedef struct Case {
	const Op *op;
	int nin;
	struct In {
		bool given, isconst;
		DType dtype;
		int ndim;
		int64_t dim[8];
		double lo, hi;
		int64_t c[32]; int nc;
		Name name;
	} in[MAXIN];
	Attr attr[16]; int nattr;
	char title[200];
} Case;

static uint64_t rng = 88172645463325252u;

static inline double uniform(double lo, double hi)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return lo + (hi - lo) * (double)(rng >> 11) * 0x1p-53;
}

/* ---- the test column ---- */

static inline DType case_type(Name type)
{
	DType t = dtype_of(type, strlen(type));

	return t ? t : type[0] == 'I' ? DT_INT64 : type[0] == 'B' ? DT_BOOL : DT_DOUBLE;
}

static inline const char *ints(const char *p, int64_t *v, int *n, int max, char close)
{
	char *end;

	for (*n = 0; *p && *p != close; p += strspn(p, ", ")) {
		if (*n == max)
			return NULL;
		v[(*n)++] = strtoll(p, &end, 10);
		if (end == p)
			return NULL;
		p = end;
	}
	return *p ? p + 1 : NULL;
}

static inline const char *read_attr(Case *c, const char *p, Arena *a)
{
	const char *colon = strchr(p, ':');
	Attr at = { .name = name_n(p, (size_t)(colon - p)) };
	int64_t v[32];
	char *end;

	p = colon + 1;
	if (*p == '"') {
		end = strchr(p + 1, '"');
		at.type = AT_STRING;
		at.u.s = name_n(p + 1, (size_t)(end - p) - 1);
		p = end + 1;
	} else if (*p == '[' && p[1] == '"') {
		at.type = AT_STRINGS;
		for (p++; *p == '"'; p += strspn(p, ", ")) {
			end = strchr(p + 1, '"');
			arena_push(a, at.u.ss, at.n, name_n(p + 1, (size_t)(end - p) - 1));
			p = end + 1;
		}
		p++;
	} else if (*p == '[') {
		const char *close = strchr(p, ']');
		bool isfloat = memchr(p, '.', (size_t)(close - p));

		at.type = isfloat ? AT_FLOATS : AT_INTS;
		if (isfloat) {
			for (p++; *p != ']'; p += strspn(p, ", ")) {
				arena_push(a, at.u.fs, at.n, strtof(p, &end));
				p = end;
			}
			p++;
		} else {
			p = ints(p + 1, v, &at.n, 32, ']');
			at.u.is = arena_array(a, int64_t, at.n + 1);
			memcpy(at.u.is, v, sizeof *v * (size_t)at.n);
		}
	} else {
		at.u.i = strtoll(p, &end, 10);
		at.type = AT_INT;
		if (*end == '.' || *end == 'e') {
			at.type = AT_FLOAT;
			at.u.f = strtof(p, &end);
		}
		p = end;
	}
	for (int i = 0; c->op->schema && i < c->op->schema->nattr; i++)
		if (c->op->schema->attr[i].name == at.name && c->op->schema->attr[i].type == AT_FLOAT &&
			at.type == AT_INT) {
			at.type = AT_FLOAT;
			at.u.f = (float)at.u.i;
		}
	c->attr[c->nattr++] = at;
	return p;
}

/* "x:[2,3] axes:{1} =keepdims:0": one variant, up to '|' or the end.  NULL on a mistake in the column. */
static inline const char *read_case(Case *c, const Op *op, const char *p, Arena *a)
{
	const Schema *s = op->schema;

	*c = (Case){ .op = op };
	while (p && *p && *p != '|') {
		if (*p == ' ' || *p == '\n' || *p == '\t') {
			p++;
			continue;
		}
		if (*p == '=') {
			if (c->nattr == 16)
				return NULL;
			p = read_attr(c, p + 1, a);
			continue;
		}
		const char *colon = strchr(p, ':');
		if (!colon)
			return NULL;
		Name name = name_n(p, (size_t)(colon - p));
		int at = c->nin;
		for (int i = 0; i < s->nin; i++)
			if (s->in[i].name == name && !c->in[i].given)
				at = i;
		if (at >= MAXIN)
			return NULL;
		struct In *in = &c->in[at];
		const Operand *o = s->nin ? &s->in[at < s->nin ? at : s->nin - 1] : NULL;
		*in = (struct In){ .given = true, .name = name, .dtype = o ? case_type(o->type) : DT_DOUBLE, .lo = -1,
			.hi = 1 };
		if (at >= c->nin)
			c->nin = at + 1;
		p = colon + 1;
		size_t word = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789");
		if (word) {
			in->dtype = dtype_of(p, word);
			p += word;
		}
		if (!dtype_is_float(in->dtype)) {
			in->lo = 0;
			in->hi = 2;
		}
		if (*p == '(') {
			char *end;

			in->lo = strtod(p + 1, &end);
			in->hi = strtod(end + 1, &end);
			p = end + 1;
		}
		if (*p == '[')
			p = ints(p + 1, in->dim, &in->ndim, 8, ']');
		else if (*p == '{') {
			const char *q = ints(p + 1, in->c, &in->nc, 32, '}');

			in->isconst = true;
			if (in->dtype == DT_DOUBLE && !word)
				in->dtype = DT_INT64;
			in->ndim = 1;
			in->dim[0] = in->nc;
			p = q;
		} else
			return NULL;
	}
	return p;
}

/* ---- one case as a graph ---- */

typedef struct Run { Model *m; Graph *g; Node *n; Value *in[MAXIN]; Tensor *t[MAXIN]; } Run;

static inline Tensor *make(const struct In *in, Arena *a)
{
	Tensor *t = tensor_new(a, in->dtype, in->ndim, in->dim);

	for (int64_t i = 0; i < tensor_elements(t); i++)
		if (in->isconst)
			tensor_set(t, i, (double)in->c[i]);
		else if (dtype_is_float(in->dtype))
			tensor_set(t, i, uniform(in->lo, in->hi));
		else
			tensor_set(t, i, floor(uniform(in->lo, in->hi)));
	return t;
}

static inline int version_of(const Op *op)
{
	return op->domain && *op->domain ? 0 : op->until ? op->until : OPSET_MAX;
}

static inline int nresults(const Op *op)
{
	const Schema *s = op->schema;
	int n = 0;

	for (int i = 0; i < s->nout; i++)
		if (!s->out[i].optional || s->out[i].variadic || i == 0)
			n = i + 1;
	return n ? n : 1;
}

/* A graph of one node; t[] gives the operands.  Constants become initialisers, the rest inputs. */
static inline int build_case(Run *r, const Case *c, int nout, bool symbolic)
{
	r->m = model_new();
	r->g = r->m->graph = graph_new(r->m, NULL, name_of("walk"));
	r->n = node_new(r->g, name_of(c->op->domain ? c->op->domain : ""), name_of(c->op->name), (Loc){ 0 });
	r->n->version = version_of(c->op);
	r->n->row = c->op;
	for (int i = 0; i < c->nin; i++) {
		const struct In *in = &c->in[i];

		r->in[i] = NULL;
		if (in->given) {
			Value *v = graph_value_here(r->g, name_fmt("in%d", i), (Loc){ 0 });

			r->in[i] = v;
			v->type = type_tensor(r->g->arena, in->dtype, in->ndim, in->dim);
			if (in->isconst) {
				v->data = r->t[i];
				v->init = true;
				arena_push(r->g->arena, r->g->init, r->g->ninit, v);
			} else {
				v->input = true;
				if (symbolic && in->ndim && in->dim[0] > 1)
					v->type->dim[0] = dim_symbol(name_fmt("walk%lld", (long long)in->dim[0]));
				arena_push(r->g->arena, r->g->in, r->g->nin, v);
			}
		}
		node_in(r->n, r->in[i]);
	}
	for (int i = 0; i < nout; i++)
		node_out(r->n, graph_value_here(r->g, name_fmt("out%d", i), (Loc){ 0 }));
	for (int i = 0; i < c->nattr; i++)
		arena_push(r->g->arena, r->n->attr, r->n->nattr, c->attr[i]);
	Value *outs[64];
	for (int i = 0; i < nout; i++)
		outs[i] = r->n->out[i];
	if (inline_append(r->g, r->n) < 0)
		return -1;
	for (int i = 0; i < nout; i++) {
		outs[i]->output = true;
		arena_push(r->g->arena, r->g->out, r->g->nout, outs[i]);
	}
	return 0;
}

static inline int inputs_of(const Case *c, Tensor **t, Tensor **in)
{
	int n = 0;

	for (int i = 0; i < c->nin; i++)
		if (c->in[i].given && !c->in[i].isconst)
			in[n++] = t[i];
	return n;
}

static inline void fail(const Case *c, const char *what)
{
	printf("not ok %s: %s\n", c->title, what);
}

static inline bool quiet(FILE **keep)
{
	*keep = diag_out;
	diag_out = NULL;
	return true;
}

#endif
