/* Identifiers of C from names of the model.
 *
 * Every byte but letters, digits and _ becomes _; an identifier has at most 40 bytes.  It is never a word of C, nor one
 * of the few words that generated functions use themselves, nor one that a header may have defined as a macro: those
 * get a _ at the end.  Of names that become equal, all but the first get a number. */
#include "emit/emit.h"

#include <ctype.h>
#include <string.h>

enum { LENGTH = 40 };

static bool reserved(const char *s)
{
	static const char *const words[] = {
		"auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
		"extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return",
		"short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void",
		"volatile", "while", "asm", "typeof", "bool", "true", "false", "nullptr", "constexpr",
		"thread_local", "alignas", "alignof", "static_assert", "linux", "unix", "i386", "errno", "stdin",
		"stdout", "stderr", "complex", "imaginary",
		"t", "main",
	};
	bool lower = false;
	for (const char *p = s; *p; p++)
		lower |= islower((unsigned char)*p) != 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcmp(s, words[i]))
			return true;
	return !lower && strlen(s) > 2;         /* macros are in capitals */
}

const char *names_c(Arena *a, const char *name)
{
	char *s = arena_array(a, char, LENGTH + 3), *to = s;
	if (!isalpha((unsigned char)*name) || (unsigned char)*name > 127)
		*to++ = 'v';                    /* _x and 0x are not ours */
	for (; *name && to < s + LENGTH; name++)
		*to++ = (unsigned char)*name < 128 && isalnum((unsigned char)*name) ? *name : '_';
	if (reserved(s))
		s[strlen(s) < LENGTH ? strlen(s) : LENGTH - 1] = '_';
	return s;
}

const char *names_unique(Arena *a, Map *taken, const char *name)
{
	const char *s = name;
	for (int i = 2; map_get(taken, name_of(s)); i++) {
		const char *end = arena_printf(a, "_%d", i);
		size_t n = strlen(name), most = LENGTH - strlen(end);
		s = arena_printf(a, "%.*s%s", (int)(n < most ? n : most), name, end);
	}
	map_put(taken, name_of(s), (void *)(intptr_t)1);
	return s;
}

/* ---- what several names have in common ---- */

static size_t component(const char *s)
{
	return strcspn(s, "./:");
}

static int components(const char *s)
{
	int n = 1;
	for (; s[component(s)]; s += component(s) + 1)
		n++;
	return n;
}

static const char *component_at(const char *s, int k, size_t *n)
{
	while (k--)
		s += component(s) + 1;
	*n = component(s);
	return s;
}

/* A name without its digits: that of x1, x2, ... */
static const char *letters(Arena *a, const char *s)
{
	char *out = arena_array(a, char, strlen(s) + 1), *to = out;
	for (const char *p = s; *p; p++)
		if (!isdigit((unsigned char)*p))
			*to++ = *p;
	return *out ? out : s;
}

const char *names_common(Arena *a, const char *const *name, int n)
{
	int parts = components(name[0]);
	const char *out = "";
	bool alike = true, same = true;
	for (int i = 1; i < n; i++) {
		alike &= components(name[i]) == parts;
		same &= !strcmp(name[i], name[0]);
	}
	if (!alike || same)
		return name[0];
	for (int k = 0; k < parts; k++) {
		size_t len, other;
		const char *first = component_at(name[0], k, &len);
		bool equal = true;
		for (int i = 1; i < n; i++) {
			const char *s = component_at(name[i], k, &other);
			equal &= other == len && !strncmp(s, first, len);
		}
		if (equal && len)
			out = arena_printf(a, "%s%s%.*s", out, *out ? "." : "", (int)len, first);
	}
	return *out ? out : letters(a, name[0]);
}
