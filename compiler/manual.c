/* The options for people and shells: the text of --help, a manual page (--help=man) and completion for bash
 * (--help=bash).  All three walk the table of main.c, so none can name an option that another lacks. */
#include "compiler.h"

#include <inttypes.h>
#include <string.h>

static const char usage_line[] = "sbpcc MODEL.ir|MODEL.onnx -o DIR [OPTION...]";
static const struct { int code; const char *means; } exits[] = {
	{ EXIT_OK, "done" }, { EXIT_INPUT, "bad input" }, { EXIT_USAGE, "bad usage" }, { EXIT_NOPLAN, "no plan" },
	{ EXIT_ENV, "files or system" }, { EXIT_LIMIT, "a cap was hit" }, { EXIT_BUG, "a bug of sbpcc" },
};
enum { NEXIT = sizeof exits / sizeof exits[0] };

static bool is_cap(const Option *o)
{
	return (o->kind == NUMBER || o->kind == BYTES) && !strncmp(o->name, "max-", 4);
}

/* "--name=ARG" or "--name[=ARG]". */
static const char *written(const Option *o)
{
	return name_fmt("--%s%s%s", o->name, o->arg && o->arg[0] != '[' ? "=" : "", o->arg ? o->arg : "");
}

static void print_text(const Option *list, int n)
{
	printf("usage: %s\n\n", usage_line);
	for (const Option *o = list; o < list + n; o++) {
		if (is_cap(o))
			printf("  %-24s cap %s (default %" PRId64 ")\n", written(o), o->help, *(int64_t *)o->to);
		else
			printf("  %-24s %s\n", written(o), o->help);
	}
	printf("\nexit status:");
	for (int i = 0; i < NEXIT; i++)
		printf("%s %d %s", i ? "," : "", exits[i].code, exits[i].means);
	printf("\n");
}

/* Text for roff: a backslash and a minus are written \e and \-, and no line begins with a dot or a quote. */
static void roff(const char *s)
{
	if (*s == '.' || *s == '\'')
		printf("\\&");
	for (; *s; s++) {
		if (*s == '\\')
			printf("\\e");
		else if (*s == '-')
			printf("\\-");
		else
			putchar(*s);
	}
}

static void print_man(const Option *list, int n)
{
	printf(".TH SBPCC 1 \"\" \"sbpcc %s\" \"User Commands\"\n", stamp_version);
	printf(".SH NAME\nsbpcc \\- ahead\\-of\\-time compiler for distributed deep\\-learning training\n");
	printf(".SH SYNOPSIS\n");
	roff(usage_line);
	printf("\n.SH DESCRIPTION\n"
		"Reads a model, as text (.ir) or as an .onnx file, decides how to spread its training step over "
		"ranks, and writes a\n"
		"self\\-contained C or CUDA program into DIR. Then\n"
		".PP\n.nf\n    make \\-C DIR\n    DIR/trainer \\-\\-help\n.fi\n.PP\n"
		"The language of models and annotations is described in LANGUAGE.md, which is installed with the "
		"documentation.\n"
		".SH OPTIONS\n");
	for (const Option *o = list; o < list + n; o++) {
		printf(".TP\n.B ");
		roff(written(o));
		printf("\n");
		if (is_cap(o))
			roff(name_fmt("Cap %s (default %" PRId64 ").", o->help, *(int64_t *)o->to));
		else
			roff(name_fmt("%s.", o->help));
		printf("\n");
	}
	printf(".SH EXIT STATUS\n");
	for (int i = 0; i < NEXIT; i++) {
		printf(".TP\n.B %d\n", exits[i].code);
		roff(exits[i].means);
		printf("\n");
	}
}

/* Completes options, the words of options that are a choice (a|b), and files elsewhere. */
static void print_bash(const Option *list, int n)
{
	printf("# bash completion for sbpcc, written by sbpcc --help=bash\n"
		"_sbpcc()\n{\n"
		"\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
		"\t[ \"$cur\" = = ] && cur=''\n"
		"\t[ \"$prev\" = = ] && prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
		"\tcase $prev in\n");
	for (const Option *o = list; o < list + n; o++) {
		if (!o->arg)
			continue;
		size_t skip = strspn(o->arg, "[="), len = strcspn(o->arg + skip, "]");
		bool choice = memchr(o->arg + skip, '|', len) && !strpbrk(o->arg, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		if (choice) {
			printf("\t--%s) mapfile -t COMPREPLY < <(compgen -W '", o->name);
			for (const char *s = o->arg + skip; s < o->arg + skip + len; s++)
				putchar(*s == '|' ? ' ' : *s);
			printf("' -- \"$cur\"); return ;;\n");
		}
	}
	printf("\tesac\n\tcase $cur in\n\t-*) mapfile -t COMPREPLY < <(compgen -W '-o");
	for (const Option *o = list; o < list + n; o++)
		printf(" --%s%s", o->name, o->arg && o->arg[0] != '[' ? "=" : "");
	printf("' -- \"$cur\")\n"
		"\t\tcase ${COMPREPLY[0]-} in *=) compopt -o nospace ;; esac ;;\n"
		"\t*) mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); compopt -o filenames ;;\n"
		"\tesac\n}\n"
		"complete -F _sbpcc sbpcc\n");
}

int manual_print(const Option *list, int n, const char *kind)
{
	static const struct { const char *kind; void (*print)(const Option *, int); } kinds[] = {
		{ "", print_text }, { "man", print_man }, { "bash", print_bash },
	};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(kinds[i].kind, kind)) {
			kinds[i].print(list, n);
			return 0;
		}
	return -1;
}
