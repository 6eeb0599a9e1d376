/* The lowest layer, without models: memory by lifetime, interned names, input files and locations in them, messages. */
#ifndef SBPCC_BASE_H
#define SBPCC_BASE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* arena.c: memory by lifetime.  Zeroed, 16-byte aligned.  Sanitizer builds give each object its own malloc. */
typedef struct Arena {
	struct ArenaBlock *head;
	size_t bytes;                   /* all that was allocated, against the cap */
} Arena;

void *arena_alloc(Arena *, size_t bytes);
char *arena_printf(Arena *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void  arena_release(Arena *, void *, size_t bytes);    /* one object, early; nothing may refer to it */
void  arena_free(Arena *);
void *arena_grow(Arena *, void *list, int n, size_t itembytes);

#define arena_new(a, T)      ((T *)arena_alloc((a), sizeof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))
/* Append to a list that lives in an arena: capacity is the next power of two, so only list and count are stored. */
#define arena_push(a, list, n, item) \
	((list) = arena_grow((a), (list), (n), sizeof *(list)), (list)[(n)++] = (item))

/* While a model is read, memory is bounded: arena_charge counts it and ends the program above the bound. */
void arena_bound(int64_t bytes);    /* from now on; 0: no bound any more */
void arena_input(int64_t bytes);    /* a file of this size is read: raises the bound */
void arena_charge(int64_t bytes);   /* allocated; negative: released */

extern Arena arena_process;         /* lives as long as the program: names, files, the operator table */

/* name.c: interned strings.  Equal text is equal pointer; NULL is "no name". */
typedef const char *Name;

Name   name_of(const char *text);
Name   name_n(const char *text, size_t len);
void   name_ahead(const char *text, size_t len);         /* prefetches: name_n of it follows soon */
Name   name_fmt(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int    name_distance(const char *a, const char *b, bool anycase);    /* edits between two words, for "did you mean" */
bool   name_match(const char *pattern, const char *s);   /* shell pattern: * ? and [..] */

/* map.c: from interned names (or any pointers) to pointers, in an arena. */
typedef struct Map { Arena *arena; struct MapSlot { const void *key; void *val; } *slot; int n, cap; } Map;

void  map_init(Map *, Arena *);
void *map_get(const Map *, const void *key);
void  map_put(Map *, const void *key, void *val);

/* limits.c: caps on what an input may need; all are options (--max-...). */
typedef struct Limits {
	int64_t file_bytes;             /* text input, 256 MiB */
	int64_t onnx_bytes;             /* .onnx input without external data, 2 GiB - 1 */
	int64_t name_bytes;             /* one name or string, 64 KiB */
	int64_t nodes;                  /* 4 M, after inlining */
	int64_t depth;                  /* nesting of brackets, messages, functions: 100 */
	int64_t elements;               /* of one constant or evaluated tensor: 2^31 */
	int64_t const_bytes;            /* a constant that folding makes: 64 KiB */
	int64_t table;                  /* numbers in a constant that an operator's definition makes: 4 M */
	int64_t checksum_bytes;         /* larger files of external data are not compared with their checksum: 4 GiB */
	int64_t compared;               /* names compared with patterns that begin and end with a wildcard: 20 M */
	int64_t memory;                 /* allocated while a model is read; 0: 64 MiB and eight times the input */
	int64_t unroll;                 /* nodes that one recurrent operator or Loop may become: 100,000 */
	int64_t errors;                 /* shown in one run, 20; more are counted */
} Limits;
extern Limits limits;

/* file.c: the table of input files. */
typedef enum {
	EXIT_OK = 0, EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_NOPLAN = 3, EXIT_ENV = 4, EXIT_LIMIT = 5, EXIT_BUG = 70
} ExitCode;

typedef struct SrcFile {
	const char *path;               /* as given by the user */
	const uint8_t *data;            /* the mapped bytes */
	size_t bytes;
	bool binary;                    /* .onnx: messages give byte, node, operator and name, not line and caret */
	struct SrcNode { uint64_t off, end; int index; Name op, name; } *node; /* binary: each node, ascending */
	int nnode;
	size_t *mark; int nmark;        /* text: where some lines begin, for loc_linecol */
	Arena *arena;
} SrcFile;

uint32_t file_open(const char *path, ExitCode *why);     /* maps a file; 0 after explaining (EXIT_ENV, EXIT_LIMIT) */
uint32_t file_memory(const char *path, const void *data, size_t bytes);  /* text in memory: --train, definitions */
SrcFile *file_of(uint32_t file);

/* loc.c: locations in input files. */
typedef struct Loc {
	uint32_t file;                  /* index into the table of files; 0 is "nowhere" */
	uint32_t len;                   /* bytes to underline, at least 1 */
	uint64_t off : 40;              /* byte offset */
	uint64_t call : 24;             /* of a copy from a function: 1 + the number of the call (loc_inside); else 0 */
} Loc;

size_t   loc_line(const SrcFile *, size_t off);          /* where its line begins, after a BOM */
void     loc_linecol(Loc, int *line, int *col);          /* 1-based; columns count bytes after a BOM */
const char *loc_text(Loc);                               /* "mlp.ir:14:20", "m.onnx: node 3 (Add \"x\"), byte 8" */
const char *loc_brief(const char *text);                /* such a text without the folder */
Loc      loc_call(Loc inner);                            /* the call of the function around a location with a call */
Loc      loc_inside(Loc inner, Loc call);                /* a location in a called function: messages name both */

/* diag.c: messages with source line and caret. */
/* One message each; its text is escaped, so %s may be a name of any bytes.  The first error decides
 * the exit code; errors beyond --max-errors are only counted.  A note belongs to the message before it. */
void err_at(Loc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));                  /* EXIT_INPUT */
void fail_at(ExitCode, Loc, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void warn_at(Loc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void note_at(Loc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));         /* our mistake: EXIT_BUG */
int  diag_errors(void);             /* how many so far */
ExitCode diag_exit(void);           /* EXIT_OK, or the code of the first error */
void diag_hush(bool on);            /* while on, warnings are not shown: they are shown elsewhere */
void diag_whole(bool on);           /* while on, --max-errors does not apply: for reports that must be complete */
void diag_finish(void);             /* reports how many errors were only counted */
void diag_reset(void);              /* forget all: fuzzers, tests */
extern FILE *diag_out;              /* stderr; NULL is silent */
extern const char *diag_pass;       /* the running pass, for die() */
char *diag_escape(Arena *, const char *text, size_t n);  /* all but printable ASCII and valid UTF-8 becomes \xNN */
int   diag_printable(const uint8_t *s, size_t n);        /* bytes of the character at s; 0: malformed or a control */
/* "did you mean X?" from a NULL-terminated list: NULL when nothing is near. */
const char *diag_suggest(const char *word, const char *const *list);
void diag_unknown(Loc, const char *what, const char *word, const char *const *list);  /* "what word; did you mean X?" */

/* sha1.c */
void sha1_text(const void *data, size_t bytes, char text[41]);       /* 40 hexadecimal digits */

#endif
