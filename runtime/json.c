/* Reads JSON from front to back, without building a tree: callers say what they expect next.  Nesting is counted, not
 * recursive. */
#include "save.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static char peek(RtJson *j)
{
	while (j->at < j->end && strchr(" \t\r\n", *j->at) && *j->at)
		j->at++;
	return j->at < j->end ? *j->at : 0;
}

static bool take(RtJson *j, char c)
{
	if (j->bad || peek(j) != c || !c)
		return !(j->bad = true);
	j->at++;
	return true;
}

bool rt_json_open(RtJson *j, char bracket)
{
	return take(j, bracket);
}

bool rt_json_more(RtJson *j, char bracket)
{
	char shut = bracket == '{' ? '}' : ']', c = j->bad ? 0 : peek(j);
	if (c == shut) {
		j->at++;
		return false;
	}
	if (c == ',') {
		j->at++;
		c = peek(j);
		j->bad = c == shut || c == ',';
	}
	if (!c)
		j->bad = true;
	return !j->bad;
}

static int hex(const char *s)
{
	int v = 0;
	for (int i = 0; i < 4; i++) {
		const char *digits = "0123456789abcdef", *d = s[i] ? strchr(digits, s[i] | 32) : NULL;
		if (!d || (s[i] < '0') || (s[i] > '9' && s[i] < 'A'))
			return -1;
		v = v * 16 + (int)(d - digits);
	}
	return v;
}

/* A code point as UTF-8; surrogate pairs stay two characters. */
static size_t encode(int c, char *to)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xC0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	to[0] = (char)(0xE0 | c >> 12);
	to[1] = (char)(0x80 | (c >> 6 & 63));
	to[2] = (char)(0x80 | (c & 63));
	return 3;
}

/* The character after a backslash; -1: invalid. */
static int escaped(RtJson *j)
{
	static const char from[] = "\"\\/bfnrt", is[] = "\"\\/\b\f\n\r\t";
	const char *k = j->at < j->end && *j->at ? strchr(from, *j->at) : NULL;
	if (k) {
		j->at++;
		return is[k - from];
	}
	if (j->end - j->at < 5 || *j->at != 'u')
		return -1;
	j->at += 5;
	return hex(j->at - 4);
}

/* Skips a string of any length. */
static void skip_string(RtJson *j)
{
	take(j, '"');
	while (!j->bad && j->at < j->end && *j->at != '"') {
		unsigned char c = (unsigned char)*j->at++;
		j->bad = (c == '\\' && escaped(j) < 0) || c < 32;
	}
	take(j, '"');
}

int rt_json_string(RtJson *j, char *to, size_t room)
{
	size_t n = 0;
	take(j, '"');
	while (!j->bad && j->at < j->end && *j->at != '"') {
		unsigned char c = (unsigned char)*j->at++;
		int code = c == '\\' ? escaped(j) : 0;
		if (n + 4 > room || code < 0 || c < 32)
			j->bad = true;
		else if (c == '\\')
			n += encode(code, to + n);
		else
			to[n++] = (char)c;
	}
	take(j, '"');
	if (room)
		to[j->bad ? 0 : n] = 0;
	return j->bad ? 0 : (int)n;
}

int rt_json_key(RtJson *j, char *to, size_t room)
{
	int n = rt_json_string(j, to, room);
	take(j, ':');
	return n;
}

/* The characters of a number, as a string. */
static const char *digits(RtJson *j, char *text, size_t room)
{
	size_t n = 0;
	peek(j);
	while (j->at < j->end && *j->at && strchr("+-.0123456789eE", *j->at) && n + 1 < room)
		text[n++] = *j->at++;
	text[n] = 0;
	j->bad |= n == 0;
	return text;
}

int64_t rt_json_int(RtJson *j)
{
	char text[32], *end;
	const char *s = digits(j, text, sizeof text);
	long long v = strtoll(s, &end, 10);
	j->bad |= *end || (v == INT64_MAX && strcmp(s, "9223372036854775807"));
	return j->bad ? 0 : v;
}

double rt_json_number(RtJson *j)
{
	char text[40], *end;
	if (peek(j) == 'n' && j->end - j->at >= 4 && !memcmp(j->at, "null", 4)) {
		j->at += 4;
		return NAN;
	}
	double v = strtod(digits(j, text, sizeof text), &end);
	j->bad |= *end != 0;
	return j->bad ? 0 : v;
}

void rt_json_skip(RtJson *j)
{
	char text[64];
	int depth = 0;
	do {
		char c = peek(j);
		if (c == '"')
			skip_string(j);
		else if (c == '{' || c == '[' || c == '}' || c == ']') {
			depth += c == '{' || c == '[' ? 1 : -1;
			j->at++;
		} else if (c == ',' || c == ':')
			j->at++;
		else if (c >= 'a' && c <= 'z')
			while (j->at < j->end && *j->at >= 'a' && *j->at <= 'z')
				j->at++;
		else
			digits(j, text, sizeof text);
	} while (!j->bad && depth > 0 && depth < 64);
	j->bad |= depth != 0;
}
