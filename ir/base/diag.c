/* Messages: location, text, the source line with a caret; exit codes.
 *
 * Everything that is printed passes through diag_escape, so no byte of an input reaches a terminal raw. */
#define _GNU_SOURCE
#include "base.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

FILE *diag_out;
const char *diag_pass;

/* stderr is not a constant expression in C. */
__attribute__((constructor)) static void diag_start(void)
{
	diag_out = stderr;
}

static int nerror, nhidden;
static bool whole;                      /* --max-errors does not apply */
static ExitCode first_code;
static bool muted;                      /* the last error was only counted: its notes are dropped too */

int diag_printable(const uint8_t *p, size_t n)
{
	if (p[0] < 0x80)
		return p[0] >= 0x20 && p[0] < 0x7f;
	int len = p[0] >= 0xc2 && p[0] < 0xe0   ? 2
	          : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
	          : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
	                                        : 0;

	if (!len || (size_t)len > n)
		return 0;
	for (int i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
		(p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	/* C1 controls, bidirectional overrides and line separators act on a terminal or hide text. */
	if ((len == 2 && p[0] == 0xc2 && p[1] < 0xa0) ||
		(len == 3 && p[0] == 0xe2 &&
			((p[1] == 0x80 && p[2] >= 0x8b && p[2] <= 0xaf) || (p[1] == 0x81 && p[2] >= 0xa0))))
		return 0;
	return len;
}

char *diag_escape(Arena *a, const char *text, size_t n)
{
	char *out = arena_alloc(a, 4 * n + 1), *q = out;

	for (size_t i = 0; i < n;) {
		const uint8_t *p = (const uint8_t *)text + i;
		int len = diag_printable(p, n - i);

		if (len) {
			memcpy(q, p, (size_t)len);
			q += len;
			i += (size_t)len;
		} else {
			q += sprintf(q, "\\x%02x", *p);
			i++;
		}
	}
	*q = 0;
	return out;
}

/* The line around a location, cut to a window of 160 bytes; the caret line has tabs under tabs. */
static void show_source(Loc loc)
{
	const SrcFile *f = file_of(loc.file);
	enum { WINDOW = 160 };
	int line, col;

	if (!f || f->binary || loc.off > f->bytes)
		return;
	loc_linecol(loc, &line, &col);
	size_t start = loc_line(f, loc.off), end = loc.off;
	if (start > loc.off)
		return;
	while (end < f->bytes && f->data[end] != '\n' && f->data[end] != '\r' && end - loc.off < WINDOW)
		end++;
	if (loc.off - start > WINDOW / 2)
		start = loc.off - WINDOW / 2;
	if (end - start > WINDOW)
		end = start + WINDOW;
	Arena tmp = { 0 };
	char *text = arena_alloc(&tmp, end - start + 1);
	memcpy(text, f->data + start, end - start);
	for (char *p = text; *p; p++)
		*p = *p == '\t' ? ' ' : *p;
	fprintf(diag_out, "%5d | %s\n", line, diag_escape(&tmp, text, end - start));
	char *before = diag_escape(&tmp, text, loc.off - start);
	int width = 0;
	for (const char *p = before; *p; p++)
		width += ((uint8_t)*p & 0xc0) != 0x80;
	size_t len = loc.len ? loc.len : 1;
	if (loc.off + len > end)
		len = end > loc.off ? end - loc.off : 1;
	fprintf(diag_out, "      | %*s^", width, "");
	for (size_t i = 1; i < len; i++)
		if (loc.off + i >= f->bytes || (f->data[loc.off + i] & 0xc0) != 0x80)
			fputc('~', diag_out);
	fputc('\n', diag_out);
	arena_free(&tmp);
}

static void say(Loc loc, const char *kind, const char *fmt, va_list ap)
{
	Arena tmp = { 0 };
	va_list again;

	if (!diag_out)
		return;
	fflush(stdout);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	char *text = arena_alloc(&tmp, (size_t)n + 1);
	vsnprintf(text, (size_t)n + 1, fmt, ap);
	fprintf(diag_out, "%s: %s: %s\n", loc_text(loc), kind, diag_escape(&tmp, text, (size_t)n));
	show_source(loc);
	arena_free(&tmp);
}

/* Prints the calls of functions that lead to loc, the innermost first. */
static void say_calls(Loc loc)
{
	while (diag_out && loc.call) {
		loc = loc_call(loc);
		fprintf(diag_out, "%s: note: called here\n", loc_text(loc));
		show_source(loc);
	}
}

static void vfail(ExitCode code, Loc loc, const char *fmt, va_list ap)
{
	if (nerror++ == 0)
		first_code = code;
	muted = nerror > limits.errors && !whole;
	nhidden += muted;
	if (muted)
		return;
	say(loc, "error", fmt, ap);
	say_calls(loc);
}

void err_at(Loc loc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfail(EXIT_INPUT, loc, fmt, ap);
	va_end(ap);
}

void fail_at(ExitCode code, Loc loc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfail(code, loc, fmt, ap);
	va_end(ap);
}

static bool hushed;

void diag_hush(bool on)
{
	hushed = on;
}

void warn_at(Loc loc, const char *fmt, ...)
{
	va_list ap;

	muted = hushed;
	if (hushed)
		return;
	va_start(ap, fmt);
	say(loc, "warning", fmt, ap);
	say_calls(loc);
	va_end(ap);
}

void note_at(Loc loc, const char *fmt, ...)
{
	va_list ap;

	if (muted)
		return;
	va_start(ap, fmt);
	say(loc, "note", fmt, ap);
	va_end(ap);
}

void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "sbpcc: internal error%s%s: ", diag_pass ? " in pass " : "", diag_pass ? diag_pass : "");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr,
		"\nsbpcc: this is a bug of ours; the same command with --dump-after=all shows how far it came\n");
	va_end(ap);
	exit(EXIT_BUG);
}

int diag_errors(void)
{
	return nerror;
}

ExitCode diag_exit(void)
{
	return nerror ? first_code : EXIT_OK;
}

void diag_whole(bool on)
{
	whole = on;
}

void diag_finish(void)
{
	if (nhidden && diag_out)
		fprintf(diag_out, "sbpcc: %d more error%s not shown (--max-errors)\n", nhidden,
			nhidden == 1 ? "" : "s");
}

void diag_reset(void)
{
	nerror = nhidden = 0;
	first_code = EXIT_OK;
	muted = false;
}

/* The nearest word of the list.  Case is ignored first, and decides between equally near words. */
const char *diag_suggest(const char *word, const char *const *list)
{
	const char *best = NULL;
	int least = strlen(word) < 3 ? 1 : (int)strlen(word) / 3 + 2;        /* any word of one letter would be near */
	int exact = INT_MAX;

	for (; *list; list++) {
		int d = name_distance(word, *list, true), e = d <= least ? name_distance(word, *list, false) : INT_MAX;

		if (d < least || (best && d == least && e < exact)) {
			least = d;
			exact = e;
			best = *list;
		}
	}
	return best;
}

/* Names all words of a short list; of a long one only the nearest. */
void diag_unknown(Loc loc, const char *what, const char *word, const char *const *list)
{
	enum { SHORT = 16 };
	const char *near = diag_suggest(word, list);
	const char *all = "";
	int n = 0;

	for (; list[n] && n <= SHORT; n++)
		all = name_fmt("%s%s%s", all, n ? ", " : "", list[n]);
	const char *meant = near ? name_fmt("; did you mean %s?", near) : "";
	if (n && n <= SHORT && !(near && n == 1))
		err_at(loc, "%s %s%s%s %s", what, word, meant, near ? " Known are:" : "; known are:", all);
	else
		err_at(loc, "%s %s%s", what, word, meant);
}
