/* exp, log, tanh and erf of kernels/cpu/fastmath.h against the double functions of C: every 97th float, and special
 * ones. */
#include "fastmath.h"

#include <stdbool.h>
#include <stdio.h>

/* The exponential of a softmax: nothing below the normal numbers, and of nothing above 0. */
static double below(double x)
{
	return x < -87 ? 0 : exp(x);
}

static const struct { const char *name; float (*f)(float); double (*want)(double); double ulps; } functions[] = {
	{ "exp", NULL, exp, 2 }, { "log", NULL, log, 2 }, { "tanh", NULL, tanh, 3 }, { "erf", NULL, erf, 3 },
	{ "exp-below-0", NULL, below, 2 },
};

/* One loop each, so that the compiler may write vector code, as it will in programs. */
#define LOOP(name) \
	static void name##_all(float *y, const float *x, int n) \
	{ \
		for (int i = 0; i < n; i++) \
			y[i] = fast_##name##f(x[i]); \
	}
LOOP(exp) LOOP(log) LOOP(tanh) LOOP(erf) LOOP(exp_below)
static void (*const loops[])(float *, const float *, int) = { exp_all, log_all, tanh_all, erf_all, exp_below_all };

static double ulps(float y, double want)
{
	if (isnan(want))
		return isnan(y) ? 0 : 1e9;
	if ((float)want == y)
		return 0;
	if (isinf(y) || isnan(y))
		return isinf(y) && fabs(want) > 3.4028235e38 && (y > 0) == (want > 0) ? 0 : 1e9;
	int e;
	frexp(want, &e);
	double unit = ldexp(1, e - 24);
	return fabs((double)y - want) / (unit > 0x1p-149 ? unit : 0x1p-149);
}

int main(void)
{
	enum { N = 4096 };
	static const float special[] = { INFINITY, -INFINITY, NAN, -0.0f, 0x1p-149f, 88.722839f, -103.9f };
	static float x[N], y[N];
	int bad = 0;
	for (int f = 0; f < 5; f++) {
		double worst = 0;
		float at = 0;
		for (uint64_t i = 0; i < UINT64_C(1) << 32; i += 97 * N) {
			for (uint64_t k = 0; k < N; k++) {
				uint32_t bits = (uint32_t)(i + k * 97);
				memcpy(&x[k], &bits, sizeof x[k]);
			}
			if (i == 0)
				memcpy(x, special, sizeof special);
			loops[f](y, x, N);
			for (int k = 0; k < N; k++) {
				if (f == 4 && x[k] > 0)
					continue;
				double u = ulps(y[k], functions[f].want((double)x[k]));
				if (u > worst)
					worst = u, at = x[k];
			}
		}
		bool fine = worst <= functions[f].ulps;
		printf(fine ? "ok %s\n" : "not ok %s: %g is off by %g units in the last place\n", functions[f].name,
			(double)at, worst);
		fprintf(stderr, "%s: %.2f at %g\n", functions[f].name, worst, (double)at);
		bad |= !fine;
	}
	return bad;
}
