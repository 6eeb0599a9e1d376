/* A play as a picture in a page: a row for each lane of each role, its tasks by kind, idle time between them.  The
 * pointer shows a task, when it ran and what it waited for; wheel and keys zoom and pan.  The picture is drawn by a
 * script in the page (timeline.js), which needs no other file and no network.
 *
 * The page holds numbers, not shapes: 64 ranks x 256 micro-batches have 100,000 to 230,000 tasks.  A task is written
 * as what differs from the task before it, about four bytes for most of them. */
#include "lanes/lanes.h"

#include <math.h>
#include <string.h>

extern const char *const timeline_text[];       /* timeline.css, timeline.js, embedded */

static const char block_letter[] = {
	[BLOCK_BEGIN] = 'O', [BLOCK_BODY] = 'F', [BLOCK_LOAD] = 'O', [BLOCK_F] = 'F', [BLOCK_R] = 'O', [BLOCK_B] = 'B',
	[BLOCK_W] = 'W', [BLOCK_BW] = 'B', [BLOCK_REDUCE] = 'U', [BLOCK_UPDATE] = 'U',
};
static const char lane_letter[] = {
	[LANE_COMPUTE] = 'C', [LANE_LOAD] = 'C', [LANE_SAVE] = 'C', [LANE_SEND] = 'S', [LANE_RECEIVE] = 'V',
};
static const char *const lane_name[] = {
	[LANE_COMPUTE] = "compute", [LANE_LOAD] = "load", [LANE_SAVE] = "save", [LANE_SEND] = "send",
	[LANE_RECEIVE] = "receive",
};

/* A name as a string of JavaScript that HTML does not look into: whatever is not a plain character is escaped. */
static void add_string(Text *t, const char *s)
{
	text_add(t, "\"");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (c < ' ' || c == 127 || strchr("\"\\<>&'`", c))
			text_add(t, "\\u%04x", c);
		else
			text_raw(t, s, 1);
	}
	text_add(t, "\"");
}

/* A name in the text of a page. */
static void add_escaped(Text *t, const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || strchr("<>&\"", *s))
			text_add(t, "&#%d;", *s);
		else
			text_raw(t, s, 1);
}

/* A field of a token: a letter and a number in base 36. */
static void add_field(Text *t, char letter, int64_t v)
{
	char digits[16];
	int n = sizeof digits;
	bool minus = v < 0;
	for (v = minus ? -v : v; v; v /= 36)
		digits[--n] = "0123456789abcdefghijklmnopqrstuvwxyz"[v % 36];
	if (minus)
		digits[--n] = '-';
	text_raw(t, &letter, 1);
	text_raw(t, digits + n, sizeof digits - (size_t)n);
}

/* The contents of the last token of a block or channel. */
typedef struct Last { int micro, what; int64_t length; LaneWait wait; } Last;

static void add_tasks(Text *t, const Lane *l, const LaneEvent *e, double unit, Last *last)
{
	static const char cause[] = { [WAIT_NONE] = 'N', [WAIT_PIECE] = 'P', [WAIT_ROOM] = 'R', [WAIT_PEER] = 'C',
		[WAIT_MEET] = 'T' };
	int id = 0;
	int64_t now = 0;
	for (int i = 0; i < l->ntask; i++, e++) {
		const LaneTask *k = &l->task[i];
		Last *was = &last[k->id];
		int64_t start = llround(e->start / unit), end = llround(e->end / unit);
		if (k->id != id)
			add_field(t, 'B', k->id);
		if (k->micro != was->micro + 1)
			add_field(t, 'M', k->micro);
		if (start != now)
			add_field(t, 'G', start - now);
		if (end - start != was->length)
			add_field(t, 'D', end - start);
		if (start != now && (e->wait != was->wait || (e->wait && e->what != was->what))) {
			add_field(t, cause[e->wait], e->wait ? e->what : 0);
			was->wait = e->wait;
			was->what = e->what;
		}
		text_raw(t, ".", 1);
		was->micro = k->micro;
		was->length = end - start;
		id = k->id;
		now = end;
	}
}

static void add_role(Text *t, const LaneNet *n, int r, LaneEvent *const *event, double unit)
{
	const LaneRole *role = &n->role[r];
	int most = (role->nblock > n->nchannel ? role->nblock : n->nchannel) + 1;
	Arena a = { 0 };
	Last *last = arena_array(&a, Last, most);
	text_add(t, "{name:");
	add_string(t, role->name);
	text_add(t, ",regs:[");
	for (int i = 0; i < role->nreg; i++) {
		text_add(t, i ? "," : "");
		add_string(t, role->reg[i].name);
	}
	text_add(t, "],blocks:[");
	for (int i = 0; i < role->nblock; i++) {
		text_add(t, i ? ",[" : "[");
		add_string(t, role->block[i].name);
		text_add(t, ",\"%c\"]", block_letter[role->block[i].kind]);
	}
	text_add(t, "],lanes:[");
	for (int l = 0; l < role->nlane; l++) {
		const Lane *lane = &role->lane[l];
		bool end = lane->ntask && (lane->kind == LANE_SEND || lane->kind == LANE_RECEIVE);
		for (int i = 0; i < most; i++)
			last[i] = (Last){ .micro = -1 };
		text_add(t, "%s\n{kind:\"%c\",name:", l ? "," : "", lane_letter[lane->kind]);
		add_string(t, end ? arena_printf(&a, "%s %s", lane_name[lane->kind],
			n->channel[lane->task[0].id].name) : lane_name[lane->kind]);
		text_add(t, ",tasks:\"");
		add_tasks(t, lane, event[l], unit, last);
		text_add(t, "\"}");
	}
	text_add(t, "]}");
	arena_free(&a);
}

void timeline_html(Text *t, const LaneNet *n, const LanePlay *y)
{
	static const struct { char letter; const char *name; } legend[] = {
		{ 'F', "F" }, { 'B', "B" }, { 'W', "W" }, { 'U', "update" }, { 'O', "other" }, { 'S', "send" },
		{ 'V', "receive" },
	};
	double end = y->makespan, unit = 1e-9;
	for (int r = 0, k = 0; r < n->nrole; r++)
		for (int l = 0; l < n->role[r].nlane; l++, k++)
			for (int i = 0; i < n->role[r].lane[l].ntask; i++)
				end = y->event[k][i].end > end ? y->event[k][i].end : end;
	while (end / unit > 1e8)
		unit *= 10;
	text_add(t, "<style>\n%s</style>\n<div class=timeline>\n<p>", timeline_text[0]);
	for (size_t i = 0; i < sizeof legend / sizeof *legend; i++)
		text_add(t, "<span><i style=\"background:var(--%c)\"></i>%s</span>\n", legend[i].letter,
			legend[i].name);
	text_add(t, "<span><i style=\"background:var(--idle);outline:1px solid var(--line)\"></i>idle</span>\n"
		"<label><input type=checkbox>transfers</label>\n"
		"<span>wheel or + and -: zoom; shift and wheel, arrows or drag: pan; 0: whole</span></p>\n"
		"<canvas tabindex=0 role=img aria-label=\"timeline of every lane\"></canvas>\n<output></output>\n"
		"<noscript>the timeline is drawn by a script</noscript>\n</div>\n");
	text_add(t, "<script>\n{\nconst play = {unit:%g,end:%lld,channels:[", unit,
		(long long)llround(end / unit) + 1);
	for (int i = 0; i < n->nchannel; i++) {
		text_add(t, i ? "," : "");
		add_string(t, n->channel[i].name);
	}
	text_add(t, "],meets:[");
	for (int i = 0; i < n->nmeet; i++) {
		text_add(t, i ? "," : "");
		add_string(t, n->meet[i].name);
	}
	text_add(t, "],roles:[");
	for (int r = 0, k = 0; r < n->nrole; k += n->role[r++].nlane) {
		text_add(t, r ? ",\n" : "\n");
		add_role(t, n, r, &y->event[k], unit);
	}
	text_add(t, "]}\n%s}\n</script>\n", timeline_text[1]);
}

void timeline_page(FILE *f, const char *title, const LaneNet *n, const LanePlay *y)
{
	Text t = { 0 };
	text_add(&t, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width\">\n<title>Timeline of ");
	add_escaped(&t, title);
	text_add(&t, "</title>\n<style>\n:root { color-scheme: light dark }\n"
		"body { font: 14px/1.45 sans-serif; margin: 1em; background: Canvas; color: CanvasText }\n</style>\n"
		"<h1>");
	add_escaped(&t, title);
	text_add(&t, "</h1>\n<p>span %.3f ms, makespan %.3f ms</p>\n", y->span * 1e3, y->makespan * 1e3);
	timeline_html(&t, n, y);
	text_add(&t, "</html>\n");
	fwrite(t.s, 1, t.n, f);
}
