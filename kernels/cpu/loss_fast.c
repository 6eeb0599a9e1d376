/* Losses over classes.  One thread checks all labels first: a label outside of the classes ends the job, because it
 * would read outside of x.  Threads share the rows; the loss of each row is kept in scratch and summed in order.  A
 * loss is computed as (top - score) + log(sum), because top + log(sum) would be rounded at the magnitude of the scores;
 * the latter is used only for lse. */
#include "kernels.h"
#include "rows.h"

typedef struct Loss {
	float *y, *logp, *lse, *dx, *each;      /* each: losses of rows, from row `first` on */
	const float *x, *weight, *klse, *dy;
	const int64_t *label;
	int64_t n, inner, ignore, first;
	int64_t from, all;              /* x holds classes from .. from + n - 1 of all */
	float used;
	KLoss kind;
	bool plain;                     /* x holds logarithms already */
} Loss;

K_LOOP float share(const Loss *l, int64_t row)
{
	return l->label[row] == l->ignore ? 0 : l->weight ? l->weight[l->label[row]] : 1;
}

/* The sum of the weights of all rows, in order; *code is set if a label is out of range. */
static float check(Ctx *c, const Loss *l, int64_t rows, int *code)
{
	float used = 0;
	for (int64_t r = 0; r < rows; r++) {
		int64_t k = l->label[r];
		if (k != l->ignore && (k < 0 || k >= l->all)) {
			*code = rt_error(c, RT_DATA, "row %lld has label %lld, but there are %lld classes",
				(long long)r, (long long)k, (long long)l->all);
			return 0;
		}
		used += share(l, r);
	}
	return used;
}

/* The largest score, and the sum of exp(x - largest); with keep the exponentials go to `to`. */
K_LOOP float sum_of(const float *x, int64_t n, int64_t inner, float *largest, bool keep, float *to)
{
	float top = -INFINITY, sum = 0;
	if (inner == 1) {
		top = row_most(x, n);
		sum = row_exps(x, n, 1, top, keep, to);
	} else {
		for (int64_t j = 0; j < n * inner; j += inner)
			top = x[j] > top ? x[j] : top;
		for (int64_t j = 0; j < n * inner; j += inner) {
			float e = fast_exp_belowf(x[j] - top);
			sum += e;
			if (keep)
				to[j] = e;
		}
	}
	*largest = top;
	return sum;
}

K_LOOP void times(float *dx, int64_t n, int64_t inner, float f)
{
	if (inner == 1)
		K_VECTOR for (int64_t j = 0; j < n; j++)
			dx[j] *= f;
	else
		for (int64_t j = 0; j < n * inner; j += inner)
			dx[j] *= f;
}

K_LOOP void losses(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Loss *l = arg;
	(void)thread;
	for (int64_t r = l->first + lo; r < l->first + hi; r++) {
		int64_t at = r / l->inner * l->n * l->inner + r % l->inner;
		const float *x = l->x + at;
		int64_t k = l->label[r] - l->from;
		float top = 0, log = l->plain ? 0 : logf(sum_of(x, l->n, l->inner, &top, false, NULL)), w = share(l, r);
		float v = l->label[r] == l->ignore || k < 0 || k >= l->n ? 0 : w * (top - x[k * l->inner] + log);
		if (l->logp)
			for (int64_t j = 0; j < l->n; j++)
				l->logp[at + j * l->inner] = x[j * l->inner] - top - log;
		if (l->lse)
			l->lse[r] = top + log;
		l->each[r - l->first] = v;
	}
}
K_EACH_ISA(losses)

/* The factor of the gradient of a row. */
K_LOOP float slope(const Loss *l, int64_t row)
{
	return share(l, row) * l->dy[l->kind == K_LOSS_NONE ? row : 0] / (l->kind == K_LOSS_MEAN ? l->used : 1);
}

/* The loss of a row, and its gradient while the row is in the cache, with one exponential per number; dx may be x. */
K_LOOP void both(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Loss *l = arg;
	(void)thread;
	for (int64_t r = l->first + lo; r < l->first + hi; r++) {
		int64_t at = r / l->inner * l->n * l->inner + r % l->inner, k = l->label[r];
		const float *x = l->x + at;
		float *dx = l->dx + at, w = slope(l, r), here = k == l->ignore ? 0 : x[k * l->inner], top;
		float sum = sum_of(x, l->n, l->inner, &top, true, dx), log = logf(sum);
		times(dx, l->n, l->inner, w / sum);
		if (k != l->ignore)
			dx[k * l->inner] -= w;
		l->lse[r] = top + log;
		l->each[r - l->first] = k == l->ignore ? 0 : share(l, r) * (top - here + log);
	}
}
K_EACH_ISA(both)

/* All rows; losses that are summed are computed for as many rows at a time as the scratch holds. */
static int run(Ctx *c, Loss *l, int64_t rows)
{
	int code = 0;
	float sum = 0, used = l->used = check(c, l, rows, &code);
	int64_t room = l->kind == K_LOSS_NONE ? rows : (int64_t)(c->program->work_shared / sizeof(float));
	for (l->first = 0; !code && l->first < rows; l->first += room) {
		int64_t m = rows - l->first < room ? rows - l->first : room;
		l->each = l->kind == K_LOSS_NONE ? l->y : (float *)(void *)c->shared;
		rt_parallel(c, m, 1 + 2048 / (l->n + 1), l->dx ? K_PICK(c, both) : K_PICK(c, losses), l);
		for (int64_t r = 0; r < m && l->kind != K_LOSS_NONE; r++)
			sum += l->each[r];
	}
	if (!code && l->kind != K_LOSS_NONE)
		*l->y = l->kind == K_LOSS_MEAN ? sum / used : sum;
	return code;
}

int k_xent_f32(Ctx *c, float *y, float *logp, float *lse, const float *x, const int64_t *label, const float *weight,
	int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	Loss l = { .y = y, .logp = logp, .lse = lse, .x = x, .label = label, .weight = weight, .n = n, .all = n,
		.inner = inner, .ignore = ignore, .kind = kind };
	return run(c, &l, outer * inner);
}

int k_xent_both_f32(Ctx *c, float *y, float *lse, float *dx, const float *x, const int64_t *label, const float *weight,
	const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	Loss l = { .y = y, .lse = lse, .dx = dx, .x = x, .label = label, .weight = weight, .dy = dy, .n = n, .all = n,
		.inner = inner, .ignore = ignore, .kind = kind };
	return run(c, &l, outer * inner);
}

int k_nll_shard_f32(Ctx *c, float *y, const float *x, const int64_t *label, const float *weight, int64_t outer,
	int64_t n, int64_t inner, int64_t ignore, KLoss kind, int64_t first, int64_t all)
{
	Loss l = { .y = y, .x = x, .label = label, .weight = weight, .n = n, .from = first, .all = all, .inner = inner,
		.ignore = ignore, .kind = kind, .plain = true };
	return run(c, &l, outer * inner);
}

int k_nll_f32(Ctx *c, float *y, const float *x, const int64_t *label, const float *weight, int64_t outer, int64_t n,
	int64_t inner, int64_t ignore, KLoss kind)
{
	return k_nll_shard_f32(c, y, x, label, weight, outer, n, inner, ignore, kind, 0, n);
}

/* The gradient at the label.  If this rank has all classes, it is minus the sum of the others: p - 1 would cancel for a
 * confident prediction. */
K_LOOP void at_label(const Loss *l, float *dx, int64_t k, float w)
{
	float sum = 0;
	if (l->n != l->all) {
		dx[k * l->inner] -= w;
		return;
	}
	dx[k * l->inner] = 0;
	if (l->inner == 1)
		sum = row_sum(dx, NULL, l->n);
	else
		for (int64_t j = 0; j < l->n * l->inner; j += l->inner)
			sum += dx[j];
	dx[k * l->inner] = -sum;
}

K_LOOP void grads(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Loss *l = arg;
	(void)thread;
	for (int64_t r = lo; r < hi; r++) {
		int64_t at = r / l->inner * l->n * l->inner + r % l->inner, k = l->label[r] - l->from;
		const float *x = l->x + at;
		float *dx = l->y + at, shift = l->klse[r];
		float w = slope(l, r);
		if (l->inner == 1)
			K_VECTOR for (int64_t j = 0; j < l->n; j++)
				dx[j] = w * fast_exp_belowf(x[j] - shift);
		else
			for (int64_t j = 0; j < l->n * l->inner; j += l->inner)
				dx[j] = w * fast_exp_belowf(x[j] - shift);
		if (l->label[r] != l->ignore && k >= 0 && k < l->n)
			at_label(l, dx, k, w);
	}
}
K_EACH_ISA(grads)

int k_xent_grad_shard_f32(Ctx *c, float *dx, const float *x, const int64_t *label, const float *weight,
	const float *lse, const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind,
	int64_t first, int64_t all)
{
	Loss l = { .y = dx, .x = x, .label = label, .weight = weight, .klse = lse, .dy = dy, .n = n, .from = first,
		.all = all, .inner = inner, .ignore = ignore, .kind = kind };
	int code = 0;
	l.used = check(c, &l, outer * inner, &code);
	if (!code)
		rt_parallel(c, outer * inner, 1 + 2048 / (n + 1), K_PICK(c, grads), &l);
	return code;
}

int k_xent_grad_f32(Ctx *c, float *dx, const float *x, const int64_t *label, const float *weight, const float *lse,
	const float *dy, int64_t outer, int64_t n, int64_t inner, int64_t ignore, KLoss kind)
{
	return k_xent_grad_shard_f32(c, dx, x, label, weight, lse, dy, outer, n, inner, ignore, kind, 0, n);
}

K_LOOP void exps(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Loss *l = arg;
	(void)thread;
	for (int64_t r = lo; r < hi; r++) {
		const float *x = l->x + r / l->inner * l->n * l->inner + r % l->inner;
		float sum = 0, top = l->klse[r];
		if (l->inner == 1)
			sum = row_exps(x, l->n, 1, top, false, NULL);
		else
			for (int64_t j = 0; j < l->n * l->inner; j += l->inner)
				sum += fast_exp_belowf(x[j] - top);
		l->y[r] = sum;
	}
}
K_EACH_ISA(exps)

int k_sum_exp_f32(Ctx *c, float *y, const float *x, const float *top, int64_t outer, int64_t n, int64_t inner)
{
	Loss l = { .y = y, .x = x, .klse = top, .n = n, .inner = inner };
	rt_parallel(c, outer * inner, 1 + 2048 / (n + 1), K_PICK(c, exps), &l);
	return 0;
}

/* Counts the classes that rank before the label: classes with a lower number than the label on a score at least as high
 * as its own, later classes on a higher score only. */
K_LOOP void positions(void *arg, int64_t lo, int64_t hi, int thread)
{
	const Loss *l = arg;
	(void)thread;
	for (int64_t r = lo; r < hi; r++) {
		const float *x = l->x + r / l->inner * l->n * l->inner + r % l->inner;
		float own = l->klse[r];
		int64_t at = l->label[r] - l->from, below = at < 0 ? 0 : at > l->n ? l->n : at;
		int32_t count = 0;
		if (l->inner == 1) {
			for (int64_t j = 0; j < below; j++)
				count += !(x[j] < own);
			for (int64_t j = below; j < l->n; j++)
				count += !(x[j] <= own);
		} else {
			for (int64_t j = 0; j < l->n; j++)
				count += j < below ? !(x[j * l->inner] < own) : !(x[j * l->inner] <= own);
		}
		l->y[r] = (float)count;
	}
}
K_EACH_ISA(positions)

int k_ahead_f32(Ctx *c, float *y, const float *x, const float *own, const int64_t *label, int64_t outer, int64_t n,
	int64_t inner, int64_t first)
{
	Loss l = { .y = y, .x = x, .klse = own, .label = label, .n = n, .inner = inner, .from = first };
	rt_parallel(c, outer * inner, 1 + 8192 / (n + 1), K_PICK(c, positions), &l);
	return 0;
}
