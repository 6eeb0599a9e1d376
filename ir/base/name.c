/* Interned names, patterns of names, distances between words. */
#include "base.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Slot { const char *s; uint32_t len, hash; } Slot;

static struct { Slot *slot; size_t n, cap; } table;

/* Eight bytes at a time: names of exported models are long paths. */
static uint32_t hash(const char *s, size_t n)
{
	uint64_t h = n * 0x9e3779b97f4a7c15u, w = 0;

	for (; n >= 8; s += 8, n -= 8) {
		memcpy(&w, s, 8);
		h = (h ^ w) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	w = 0;
	if (n)
		memcpy(&w, s, n);
	return (uint32_t)((h ^ w) * 0xff51afd7ed558ccdu >> 32);
}

static void grow(void)
{
	size_t cap = table.cap ? table.cap * 2 : 4096;
	arena_charge((int64_t)(cap * sizeof(Slot)));
	Slot *slot = calloc(cap, sizeof *slot);

	if (!slot)
		die("out of memory for names");
	for (size_t i = 0; i < table.cap; i++) {
		size_t k = table.slot[i].hash & (cap - 1);

		if (!table.slot[i].s)
			continue;
		while (slot[k].s)
			k = (k + 1) & (cap - 1);
		slot[k] = table.slot[i];
	}
	free(table.slot);
	arena_charge(-(int64_t)(table.cap * sizeof *slot));
	table.slot = slot;
	table.cap = cap;
}

Name name_n(const char *text, size_t n)
{
	uint32_t h = hash(text, n);

	if (n > UINT32_MAX)
		die("a name of %zu bytes", n);
	if (table.n * 2 >= table.cap)
		grow();
	size_t i = h & (table.cap - 1);
	for (; table.slot[i].s; i = (i + 1) & (table.cap - 1)) {
		const Slot *t = &table.slot[i];

		if (t->hash == h && t->len == n && (!n || !memcmp(t->s, text, n)))
			return t->s;
	}
	char *s = arena_alloc(&arena_process, n + 1);
	if (n)
		memcpy(s, text, n);
	table.slot[i] = (Slot){ s, (uint32_t)n, h };
	table.n++;
	return s;
}

void name_ahead(const char *text, size_t n)
{
	if (table.cap)
		__builtin_prefetch(&table.slot[hash(text, n) & (table.cap - 1)]);
}

Name name_of(const char *text)
{
	return name_n(text, strlen(text));
}

/* Most formats hold %s alone, and printf is slow for a name of every value; -1: another format, or too long. */
static int words(char *out, size_t cap, const char *fmt, va_list ap)
{
	size_t n = 0;

	for (; *fmt; fmt++) {
		const char *s = fmt;
		size_t len = 1;
		if (*fmt == '%') {
			if (*++fmt != 's')
				return -1;
			s = va_arg(ap, const char *);
			len = s ? strlen(s) : cap;
		}
		if (len >= cap - n)
			return -1;
		memcpy(out + n, s, len);
		n += len;
	}
	return (int)n;
}

Name name_fmt(const char *fmt, ...)
{
	char small[256];
	va_list ap;

	va_start(ap, fmt);
	int n = words(small, sizeof small, fmt, ap);
	va_end(ap);
	if (n >= 0)
		return name_n(small, (size_t)n);
	va_start(ap, fmt);
	n = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	if ((size_t)n < sizeof small)
		return name_n(small, (size_t)n);
	char *big = malloc((size_t)n + 1);
	if (!big)
		die("out of memory for a name");
	va_start(ap, fmt);
	vsnprintf(big, (size_t)n + 1, fmt, ap);
	va_end(ap);
	Name name = name_n(big, (size_t)n);
	free(big);
	return name;
}

/* Edits (insert, delete, replace, swap of neighbours) between two words; words over 63 bytes are far from all. */
int name_distance(const char *x, const char *y, bool anycase)
{
	size_t n = strlen(x), m = strlen(y);
	int row[3][64];
	char a[64], b[64];

	if (n > 63 || m > 63)
		return 99;
	for (size_t i = 0; i < n; i++)
		a[i] = (char)(anycase ? tolower((unsigned char)x[i]) : x[i]);
	for (size_t j = 0; j < m; j++)
		b[j] = (char)(anycase ? tolower((unsigned char)y[j]) : y[j]);
	for (size_t j = 0; j <= m; j++)
		row[0][j] = (int)j;
	for (size_t i = 1; i <= n; i++) {
		int *now = row[i % 3], *up = row[(i + 2) % 3], *upup = row[(i + 1) % 3];

		now[0] = (int)i;
		for (size_t j = 1; j <= m; j++) {
			int d = up[j - 1] + (a[i - 1] != b[j - 1]);

			if (up[j] + 1 < d)
				d = up[j] + 1;
			if (now[j - 1] + 1 < d)
				d = now[j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && upup[j - 2] + 1 < d)
				d = upup[j - 2] + 1;
			now[j] = d;
		}
	}
	return row[n % 3][m];
}

/* One character class "[a-z]" or "[!abc]" at p; *end is after it.  A '[' that is never closed is an ordinary
 * character. */
static bool in_class(const char *p, char c, const char **end)
{
	const char *q = p + 1;
	bool not = *q == '!', hit = false;

	q += not;
	for (const char *start = q; *q && (*q != ']' || q == start); q++) {
		if (q[1] == '-' && q[2] && q[2] != ']') {
			hit |= (uint8_t)c >= (uint8_t)q[0] && (uint8_t)c <= (uint8_t)q[2];
			q += 2;
		} else {
			hit |= c == *q;
		}
	}
	if (*q != ']') {
		*end = p + 1;
		return c == '[';
	}
	*end = q + 1;
	return hit != not;
}

bool name_match(const char *p, const char *s)
{
	const char *star = NULL, *from = NULL;

	while (*s) {
		const char *next = p + 1;

		if (*p == '*') {
			star = p++;
			from = s;
		} else if (*p && (*p == '?' || (*p == '[' ? in_class(p, *s, &next) : *p == *s))) {
			p = next;
			s++;
		} else if (star) {
			p = star + 1;
			s = ++from;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return !*p;
}
