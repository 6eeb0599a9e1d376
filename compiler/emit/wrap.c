/* Lines of generated C have at most 120 columns, with tabs of 8.
 *
 * The emitter prints each statement and each row of a table as one line.  A line that is too long is broken here, from
 * the outside to the inside: at commas of the outermost brackets, each argument as a whole as long as it fits on a
 * line.  An argument that does not fit begins a line of its own and is broken in the same way, with one more tab.  A
 * literal with designated fields then has a field on each line.  These are breaks that clang-format keeps, with the
 * .clang-format of the tree.  A comment is broken at blanks, and goes above its statement if both do not fit on a line.
 * Strings are not broken. */
#include "emit/emit.h"

#include <string.h>

enum { TAB = 8 };

typedef struct Out {
	Text *t;
	size_t col;                     /* the column after what is printed of this line */
} Out;

typedef struct Span { const char *s; size_t n; } Span;

static void put(Out *o, const char *s, size_t n)
{
	text_raw(o->t, s, n);
	o->col += n;
}

static void new_line(Out *o, int tabs)
{
	text_raw(o->t, "\n", 1);
	for (int i = 0; i < tabs; i++)
		text_raw(o->t, "\t", 1);
	o->col = (size_t)tabs * TAB;
}

/* ---- code ---- */

/* The position after one character of code; a string counts as one. */
static const char *after(const char *s, const char *end)
{
	if (*s == '"')
		for (s++; s < end && *s != '"'; s++)
			s += *s == '\\';
	return s < end ? s + 1 : end;
}

static int nesting(char c)
{
	return c == '\0' ? 0 : strchr("([{", c) ? 1 : strchr(")]}", c) ? -1 : 0;
}

/* Separators after which a line is broken, the loosest first: commas, then binary operators between blanks. */
static const char *const separators[][2] = { { ",", "," }, { " &&", " ||" }, { " +", " -" }, { " *", " /" } };
enum { LEVELS = sizeof separators / sizeof separators[0] };

/* The first item of a list and its separator, which are removed from the list; blanks after it are dropped. */
static Span next_item(Span *list, int level)
{
	const char *s = list->s, *end = s + list->n, *stop = end;
	int depth = 0;
	for (const char *at = s; at < end; at = after(at, end)) {
		depth += nesting(*at);
		for (int i = 0; i < 2 && !depth && stop == end; i++) {
			size_t n = strlen(separators[level][i]);
			if (n < (size_t)(end - at) && !strncmp(at, separators[level][i], n) && at[n] == ' ')
				stop = at + n;
		}
		if (stop < end)
			break;
	}
	Span item = { s, (size_t)(stop - s) };
	while (stop < end && *stop == ' ')
		stop++;
	*list = (Span){ stop, (size_t)(end - stop) };
	return item;
}

/* The first level at which x has several items; LEVELS: none. */
static int level_of(Span x)
{
	int level = 0;
	for (Span rest = x; level < LEVELS; level++, rest = x) {
		next_item(&rest, level);
		if (rest.n)
			break;
	}
	return level;
}

/* The longest pair of parentheses or braces in x: what is between them; an empty span: there is none. */
static Span longest(Span x)
{
	Span best = { x.s, 0 };
	const char *open = NULL, *end = x.s + x.n;
	int depth = 0;
	for (const char *at = x.s; at < end; at = after(at, end)) {
		int change = nesting(*at);
		if (change > 0 && depth++ == 0)
			open = at + 1;
		if (change < 0 && --depth == 0 && open && *at != ']' && (size_t)(at - open) > best.n)
			best = (Span){ open, (size_t)(at - open) };
	}
	return best;
}

static Span trimmed(Span x)
{
	for (; x.n && *x.s == ' '; x.s++)
		x.n--;
	while (x.n && x.s[x.n - 1] == ' ')
		x.n--;
	return x;
}

static void put_code(Out *, Span, int tabs, size_t tail);

/* Items of a list, as many on a line as fit; the first one follows what is printed, after a blank or not.  tail:
 * columns that follow the last one on its line. */
static void fill(Out *o, Span list, const char *blank, int tabs, size_t tail)
{
	bool broken = false;
	int level = level_of(list);
	while (list.n) {
		Span item = level < LEVELS ? next_item(&list, level) : list;
		if (level == LEVELS)
			list.n = 0;
		size_t rest = list.n ? 0 : tail;
		if (!broken && o->col + strlen(blank) + item.n + rest <= EMIT_COLUMNS) {
			put(o, blank, strlen(blank));
			put(o, item.s, item.n);
		} else {
			new_line(o, tabs);
			broken = o->col + item.n + rest > EMIT_COLUMNS;
			put_code(o, item, tabs, rest);
		}
		blank = " ";
	}
}

/* ".a = 1, .b = 2", one on each line. */
static void put_fields(Out *o, Span list, int tabs)
{
	while (list.n) {
		Span item = next_item(&list, 0);
		item.n -= item.s[item.n - 1] == ',';
		new_line(o, tabs + 1);
		put_code(o, item, tabs + 1, 1);
		put(o, ",", 1);
	}
	new_line(o, tabs);
}

static void put_code(Out *o, Span x, int tabs, size_t tail)
{
	Span in = longest(x);
	if (o->col + x.n + tail <= EMIT_COLUMNS) {
		put(o, x.s, x.n);
	} else if (level_of(x) < LEVELS) {
		fill(o, x, "", tabs + 1, tail);
	} else if (!in.n) {
		put(o, x.s, x.n);
	} else {
		Span list = trimmed(in);
		const char *close = in.s + in.n, *end = x.s + x.n;
		bool braces = *close == '}', blank = close[-1] == ' ';
		put(o, x.s, (size_t)(in.s - x.s));
		if (braces && *list.s == '.') {
			put_fields(o, list, tabs);
		} else {
			fill(o, list, blank ? " " : "", tabs + 1, (size_t)(end - close) + blank + tail);
			put(o, " ", blank);
		}
		put(o, close, (size_t)(end - close));
	}
}

/* ---- comments ---- */

/* Where a line of a comment of which n characters fit ends: at a blank, outside of brackets unless that leaves half of
 * the line empty. */
static size_t cut(Span x, size_t n)
{
	size_t any = 0, outside = 0;
	int depth = 0;
	for (size_t i = 1; i < x.n && (i <= n || !any); i++) {
		depth += nesting(x.s[i]);
		if (x.s[i] == ' ' && i + 3 < x.n) {     /* not before the end of the comment */
			any = i;
			outside = depth <= 0 ? i : outside;
		}
	}
	if (!any)
		return x.n;
	return 2 * outside > n ? outside : any;
}

/* A line of a comment that begins with slash and star, or with a star; later lines are indented as its text is. */
static void put_comment(Out *o, Span x, int tabs)
{
	Span lead = *x.s == '/' ? (Span){ " * ", 3 } : (Span){ x.s, strspn(x.s, " *") };
	while (o->col + x.n > EMIT_COLUMNS) {
		size_t n = cut(x, EMIT_COLUMNS - o->col);
		Span line = trimmed((Span){ x.s, n });
		put(o, line.s, line.n);
		x = trimmed((Span){ x.s + n, x.n - n });
		if (!x.n)
			return;
		new_line(o, tabs);
		put(o, lead.s, lead.n);
	}
	put(o, x.s, x.n);
}

/* ---- lines ---- */

static size_t columns(Span x)
{
	size_t n = 0;
	for (size_t i = 0; i < x.n; i++)
		n = x.s[i] == '\t' ? n / TAB * TAB + TAB : n + 1;
	return n;
}

static void put_line(Text *t, Span x)
{
	int tabs = 0;
	if (columns(x) <= EMIT_COLUMNS || *x.s == '#') {
		text_raw(t, x.s, x.n);
		return;
	}
	while (x.n && *x.s == '\t')
		x.s++, x.n--, tabs++;
	for (int i = 0; i < tabs; i++)
		text_raw(t, "\t", 1);
	Out o = { t, (size_t)tabs * TAB };
	if (!strncmp(x.s, "/*", 2) || !strncmp(x.s, " *", 2)) {
		put_comment(&o, x, tabs);
		return;
	}
	const char *end = x.s + x.n, *about = x.s;
	while (about < end && strncmp(about, " /*", 3))
		about = after(about, end);
	if (about < end) {
		put_comment(&o, (Span){ about + 1, (size_t)(end - about) - 1 }, tabs);
		new_line(&o, tabs);
	}
	put_code(&o, (Span){ x.s, (size_t)(about - x.s) }, tabs, 0);
}

void wrap_lines(Text *t)
{
	Text out = { 0 };
	for (const char *at = t->s, *end = t->s + t->n; at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		put_line(&out, (Span){ at, (size_t)((stop ? stop : end) - at) });
		text_raw(&out, "\n", stop != NULL);
		at = stop ? stop + 1 : end;
	}
	*t = out;
}
