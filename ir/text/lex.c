/* Text to tokens.
 *
 * The lexis is that of ONNX's text syntax: ids, "strings" in which a backslash keeps the next byte, numbers that
 * start with a digit, comments from # to the end of the line.  We add '->', and one notation that ONNX's syntax leaves
 * free: directly after or between the quotes of a string, \xNN is one byte ("a"\x1b"b"), so that a name of any
 * bytes can be printed without a raw control character.
 *
 * A file is checked once as a whole (UTF-8, no NUL); after that a token is two pointers and no more is copied
 * than its interned name.  Numbers are converted when the parser knows what it wants. */
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool id_first(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool id_next(int c)
{
	return id_first(c) || digit(c);
}

static Loc loc_of(const Lex *lx, const uint8_t *from, const uint8_t *to)
{
	size_t len = to > from ? (size_t)(to - from) : 1;

	return (Loc){ .file = lx->file, .len = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len,
		.off = (uint64_t)(from - lx->text) };
}

/* Length of the UTF-8 sequence at s, 0 when it is malformed, overlong, a surrogate or above U+10FFFF. */
static int utf8_length(const uint8_t *s, const uint8_t *end)
{
	int n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;

	if (n == 0 || end - s < n)
		return 0;
	for (int i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
		(s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

int lex_open(Lex *lx, uint32_t file)
{
	const SrcFile *f = file_of(file);
	const uint8_t *s = f->data, *end = s + f->bytes;

	*lx = (Lex){ .text = s, .at = s, .end = end, .file = file, .line = true };
	while (s < end) {
		int n = *s ? utf8_length(s, end) : 0;

		if (n == 0) {
			if (*s == 0)
				err_at(loc_of(lx, s, s + 1), "NUL byte in the text");
			else
				err_at(loc_of(lx, s, s + 1), "byte 0x%02X is not valid UTF-8", *s);
			return -1;
		}
		s += n;
	}
	if (end - lx->at >= 3 && memcmp(lx->at, "\xef\xbb\xbf", 3) == 0)
		lx->at += 3;
	return 0;
}

static void skip_blanks(Lex *lx)
{
	for (; lx->at < lx->end; lx->at++) {
		int c = *lx->at;

		if (c == '#') {
			const uint8_t *nl = memchr(lx->at, '\n', (size_t)(lx->end - lx->at));

			lx->at = nl ? nl : lx->end;
			if (!nl)
				return;
			c = '\n';
		}
		if (c == '\n')
			lx->line = true;
		else if (c != ' ' && c != '\t' && c != '\r' && c != '\v' && c != '\f')
			return;
	}
}

static Token bad(Token t)
{
	t.kind = TOK_BAD;
	return t;
}

static bool too_long(const Lex *lx, const uint8_t *from, size_t len, const char *what)
{
	if (len <= (size_t)limits.name_bytes)
		return false;
	fail_at(EXIT_LIMIT, loc_of(lx, from, from + 1),
		"%s of %zu bytes; the limit is %lld (--max-name-bytes)", what, len,
		(long long)limits.name_bytes);
	return true;
}

static int hex_value(int c)
{
	return digit(c)               ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

/* The byte of "\xNN" at s; -1 when s is something else. */
static int hex_byte(const uint8_t *s, const uint8_t *end)
{
	int hi, lo;

	if (end - s < 4 || s[0] != '\\' || s[1] != 'x')
		return -1;
	hi = hex_value(s[2]);
	lo = hex_value(s[3]);
	return hi < 0 || lo < 0 ? -1 : hi * 16 + lo;
}

/* A string is one or more pieces without blanks between them: "..." and \xNN.  Returns its end, NULL after
 * explaining. */
static const uint8_t *string_end(const Lex *lx)
{
	const uint8_t *s = lx->at, *end = lx->end;
	int byte;

	while (s < end) {
		const uint8_t *open = s;

		if (*s != '"') {
			byte = hex_byte(s, end);
			if (byte < 0)
				break;
			if (byte == 0) {
				err_at(loc_of(lx, s, s + 4), "a string cannot hold a NUL byte");
				return NULL;
			}
			s += 4;
			continue;
		}
		for (s++; s < end && *s != '"'; s++)
			s += *s == '\\' && s + 1 < end;
		if (s == end) {
			err_at(loc_of(lx, open, open + 1), "this string is not closed");
			if (lx->longstring.file)
				note_at(lx->longstring, "this string goes over the end of its line");
			return NULL;
		}
		s++;
	}
	return s;
}

static Token string(Lex *lx, Token t)
{
	const uint8_t *s = lx->at, *end = string_end(lx);
	char small[256] = "", *buf = small;
	size_t n = 0;

	lx->at = end ? end : lx->end;
	if (!end || too_long(lx, s, (size_t)(end - s), "string"))
		return bad(t);
	t.kind = TOK_STRING;
	t.loc = loc_of(lx, s, end);
	if (memchr(s, '\n', t.loc.len))
		lx->longstring = t.loc;
	if (t.loc.len > sizeof small && !(buf = calloc(t.loc.len, 1)))
		die("out of memory for a string");
	while (s < end) {
		if (*s != '"') {
			buf[n++] = (char)hex_byte(s, end);
			s += 4;
			continue;
		}
		for (s++; *s != '"'; s++) {
			s += *s == '\\';
			buf[n++] = (char)*s;
		}
		s++;
	}
	t.name = name_n(buf, n);
	if (buf != small)
		free(buf);
	return t;
}

/* The end of the number at s: digits, at most one dot, an exponent. */
static const uint8_t *number_end(const uint8_t *s, const uint8_t *end, bool *real)
{
	const uint8_t *e;

	*real = false;
	if (*s == '-')
		s++;
	while (s < end && digit(*s))
		s++;
	if (s < end && *s == '.') {
		*real = true;
		for (s++; s < end && digit(*s); s++)
			;
	}
	if (s < end && (*s == 'e' || *s == 'E')) {
		e = s + 1;
		if (e < end && (*e == '+' || *e == '-'))
			e++;
		if (e < end && digit(*e)) {
			*real = true;
			for (s = e; s < end && digit(*s); s++)
				;
		}
	}
	return s;
}

static bool is_word(const uint8_t *s, size_t n, const char *word)
{
	if (n != strlen(word))
		return false;
	for (size_t i = 0; i < n; i++)
		if (tolower(s[i]) != word[i])
			return false;
	return true;
}

static bool float_word(const uint8_t *s, size_t n)
{
	return is_word(s, n, "inf") || is_word(s, n, "infinity") || is_word(s, n, "nan");
}

/* The end of "nan(0x7fc00001)" at s: a NaN by its bits; NULL when it is none. */
static const uint8_t *nan_end(const uint8_t *s, const uint8_t *end)
{
	if (end - s < 8 || !is_word(s, 3, "nan") || memcmp(s + 3, "(0x", 3))
		return NULL;
	for (s += 6; s < end && isxdigit(*s); s++)
		;
	return s < end && *s == ')' ? s + 1 : NULL;
}

bool lex_is_float_word(Name s)
{
	return float_word((const uint8_t *)s, strlen(s));
}

bool lex_is_id(const char *s)
{
	if (!id_first((unsigned char)*s))
		return false;
	for (s++; *s; s++)
		if (!id_next((unsigned char)*s))
			return false;
	return true;
}

static const uint8_t *id_end(const uint8_t *s, const uint8_t *end)
{
	while (s < end && id_next(*s))
		s++;
	return s;
}

static Token simple(Lex *lx, Token t, int kind, const uint8_t *to)
{
	t.kind = kind;
	t.loc = loc_of(lx, lx->at, to);
	lx->at = to;
	return t;
}

Token lex_next(Lex *lx)
{
	Token t = { 0 };
	const uint8_t *s, *e, *end = lx->end;
	bool real;

	skip_blanks(lx);
	t.line = lx->line;
	lx->line = false;
	s = lx->at;
	t.loc = loc_of(lx, s, s);
	if (s == end)
		return t;
	if ((*s == 'n' || *s == 'N') && (e = nan_end(s, end)) != NULL)
		return simple(lx, t, TOK_FLOAT, e);
	if (id_first(*s)) {
		e = id_end(s, end);
		if (too_long(lx, s, (size_t)(e - s), "name")) {
			lx->at = end;
			return bad(t);
		}
		t.name = name_n((const char *)s, (size_t)(e - s));
		return simple(lx, t, TOK_ID, e);
	}
	if (digit(*s) || (*s == '-' && s + 1 < end && digit(s[1]))) {
		e = number_end(s, end, &real);
		return simple(lx, t, real ? TOK_FLOAT : TOK_INT, e);
	}
	if (*s == '"' || hex_byte(s, end) >= 0)
		return string(lx, t);
	if (*s == '-' && s + 1 < end && s[1] == '>')
		return simple(lx, t, TOK_TO, s + 2);
	if (*s == '=' && s + 1 < end && s[1] == '>')
		return simple(lx, t, TOK_GIVES, s + 2);
	if (*s == '-') {
		e = id_end(s + 1, end);
		if (float_word(s + 1, (size_t)(e - s - 1)))
			return simple(lx, t, TOK_FLOAT, e);
	}
	if (strchr("<>()[]{},:;=@?.*/", *s))
		return simple(lx, t, *s, s + 1);
	if (*s >= 0x80)
		e = s + utf8_length(s, end);
	else
		e = s + 1;
	t.loc = loc_of(lx, s, e);
	if (*s >= 0x80)
		err_at(t.loc, "'%.*s' cannot stand here; a name with such characters is written in quotes",
			(int)(e - s), s);
	else if (*s > ' ' && *s < 0x7f)
		err_at(t.loc, "'%c' cannot stand here", *s);
	else
		err_at(t.loc, "control character 0x%02X cannot stand here", *s);
	lx->at = e;
	return bad(t);
}

int lex_int(Token t, int64_t *out)
{
	const uint8_t *s = file_of(t.loc.file)->data + t.loc.off, *end = s + t.loc.len;
	bool minus = *s == '-';
	int64_t v = 0;

	for (s += minus; s < end; s++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, *s - '0', &v)) {
			err_at(t.loc, "this integer does not fit 64 bits");
			return -1;
		}
	if (!minus && __builtin_sub_overflow((int64_t)0, v, &v)) {
		err_at(t.loc, "this integer does not fit 64 bits");
		return -1;
	}
	*out = v;
	return 0;
}

/* "nan(0x7fc00001)": all bits of the number. */
static int nan_bits(Token t, const uint8_t *s, double *wide, float *narrow)
{
	uint64_t u = 0;
	uint32_t low;
	bool ok = t.loc.len <= 7 + 16;
	double w;
	float f;

	for (s += 6; ok && *s != ')'; s++)
		u = u << 4 | (unsigned)hex_value(*s);
	low = (uint32_t)u;
	memcpy(&w, &u, sizeof w);
	memcpy(&f, &low, sizeof f);
	if (!ok || (wide && w == w) || (narrow && (u >> 32 || f == f))) {
		err_at(t.loc, "these are not the bits of a NaN of type %s", narrow ? "float" : "double");
		return -1;
	}
	if (wide)
		memcpy(wide, &u, sizeof *wide);
	if (narrow)
		memcpy(narrow, &low, sizeof *narrow);
	return 0;
}

/* The dot is moved into the exponent: strtod reads "15e-1" as the same number in every locale. */
int lex_float(Token t, double *wide, float *narrow)
{
	const uint8_t *s = file_of(t.loc.file)->data + t.loc.off, *end = s + t.loc.len;
	char small[128], *buf = small, *o;
	long exponent = 0;
	double w = 0;
	float f = 0;
	bool dot = false;

	if (t.loc.len > 7 && end[-1] == ')')
		return nan_bits(t, s, wide, narrow);
	if (t.loc.len + 32 > sizeof small && !(buf = malloc(t.loc.len + 32)))
		die("out of memory");
	o = buf;
	for (; s < end && *s != 'e' && *s != 'E'; s++) {
		if (id_first(*s)) {             /* inf, nan: no exponent follows */
			memcpy(o, s, (size_t)(end - s));
			o += end - s;
			s = end;
			break;
		}
		if (*s == '.')
			dot = true;
		else
			*o++ = (char)*s;
		if (dot && *s != '.')
			exponent--;
	}
	if (s < end || dot) {
		long e = 0;
		bool minus = false;

		if (s < end) {
			s++;
			minus = *s == '-';
			s += *s == '-' || *s == '+';
			for (; s < end; s++)
				e = e < 100000000 ? e * 10 + (*s - '0') : e;
		}
		o += sprintf(o, "e%ld", (minus ? -e : e) + exponent);
	}
	*o = 0;
	if (wide)
		w = strtod(buf, NULL);
	if (narrow)
		f = strtof(buf, NULL);
	o = buf + (*buf == '-');
	dot = digit(*o);                        /* a number, not the word inf */
	if (buf != small)
		free(buf);
	if (dot && (w - w != 0 || f - f != 0)) {
		err_at(t.loc, "this number is too large for %s", narrow ? "float" : "double");
		return -1;
	}
	if (wide)
		*wide = w;
	if (narrow)
		*narrow = f;
	return 0;
}
