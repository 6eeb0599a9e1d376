/* Locations in input files: line and column of a text, node and byte of an .onnx file; the calls of functions around
 * them. */
#include "base.h"

#include <string.h>

size_t loc_line(const SrcFile *f, size_t off)
{
	while (off > 0 && f->data[off - 1] != '\n')
		off--;
	return off == 0 && f->bytes >= 3 && !memcmp(f->data, "\xef\xbb\xbf", 3) ? 3 : off;
}

/* Dumps need the line of every node: the first request for a line stores the start of every 64th. */
static int line_of(SrcFile *f, size_t off)
{
	enum { STEP = 64 };
	const uint8_t *p, *end = f->data + f->bytes;
	int lo = 0, hi, line = 0;

	if (!f->mark) {
		arena_push(f->arena, f->mark, f->nmark, 0);
		for (p = f->data; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
			if (++line % STEP == 0)
				arena_push(f->arena, f->mark, f->nmark, (size_t)(p + 1 - f->data));
	}
	for (hi = f->nmark; hi - lo > 1;) {
		int mid = lo + (hi - lo) / 2;

		if (f->mark[mid] <= off)
			lo = mid;
		else
			hi = mid;
	}
	line = lo * STEP + 1;
	end = f->data + off;
	for (p = f->data + f->mark[lo]; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
		line++;
	return line;
}

void loc_linecol(Loc loc, int *line, int *col)
{
	SrcFile *f = file_of(loc.file);
	size_t off = f && loc.off < f->bytes ? loc.off : f ? f->bytes : 0;

	*line = *col = 1;
	if (!f)
		return;
	*line = line_of(f, off);
	size_t start = loc_line(f, off);
	if (start > off)
		start = 0;
	*col = (int)(off - start) + 1;
}

static Loc *calls;                      /* of functions, each with the call around it */
static int ncall;
static Map call_number;                 /* text of a location -> 1 + its number among them */

Loc loc_inside(Loc inner, Loc call)
{
	Name key = name_fmt("%u:%llu:%u", call.file, (unsigned long long)call.off, (unsigned)call.call);

	if (!call_number.arena)
		map_init(&call_number, &arena_process);
	if (!map_get(&call_number, key) && ncall < (1 << 24) - 1) {
		arena_push(&arena_process, calls, ncall, call);
		map_put(&call_number, key, (void *)(uintptr_t)ncall);
	}
	inner.call = (uint64_t)(uintptr_t)map_get(&call_number, key) & ((1 << 24) - 1);
	return inner;
}

Loc loc_call(Loc inner)
{
	return calls[inner.call - 1];
}

static const struct SrcNode *node_at(const SrcFile *f, uint64_t off)
{
	int lo = 0, hi = f->nnode;

	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (f->node[mid].off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && off < f->node[lo - 1].end ? &f->node[lo - 1] : NULL;
}

const char *loc_text(Loc loc)
{
	const SrcFile *f = file_of(loc.file);

	if (!f)
		return "sbpcc";
	const char *path = diag_escape(&arena_process, f->path, strlen(f->path));
	if (f->binary) {
		const struct SrcNode *n = node_at(f, loc.off);

		if (!n)
			return name_fmt("%s: byte %llu", path, (unsigned long long)loc.off);
		return name_fmt("%s: node %d (%s \"%s\"), byte %llu", path, n->index,
			diag_escape(&arena_process, n->op ? n->op : "", n->op ? strlen(n->op) : 0),
			diag_escape(&arena_process, n->name ? n->name : "", n->name ? strlen(n->name) : 0),
			(unsigned long long)loc.off);
	}
	int line, col;
	loc_linecol(loc, &line, &col);
	return name_fmt("%s:%d:%d", path, line, col);
}

const char *loc_brief(const char *text)
{
	/* names of nodes may follow, which may hold slashes */
	const char *end = strstr(text, ": "), *name = text;
	for (const char *s = text; *s && s != end; s++)
		if (*s == '/')
			name = s + 1;
	return name;
}
