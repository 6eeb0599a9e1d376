/* --plot=FILE: the numbers of a run over its steps as SVG: a panel for each name, training and held-out numbers of one
 * name in the same panel.  It is rewritten at evaluations, at most once a second, and at the end.
 *
 * Steps are kept in at most BINS bins of equal width, which doubles when they are full.  A bin has minimum, maximum
 * and sum, so a plot of a million steps has as many points as one of a thousand, and shows every spike.  A resumed run
 * reads earlier steps from its log (--log): backwards, so that of steps that were repeated the last run counts. */
#include "save.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BINS = 1024, SERIES = 2 * RT_NUMBERS };
typedef struct Bin { float low, high; double sum; int64_t n; } Bin;
typedef struct Series {
	char name[RT_NAME];
	bool eval;
	int64_t step;                   /* the last */
	double last;                    /* its number */
	int64_t bad;                    /* numbers that are not finite */
	Bin bin[BINS];
} Series;
typedef struct RtPlot {
	Series *series[SERIES]; int n;
	int64_t width;                  /* steps of a bin */
	int64_t first, last;            /* steps that are known */
	double written;                 /* when */
} RtPlot;

size_t rt_plot_bytes(const RtReport *r)
{
	return r->plot ? sizeof *r->plot + (size_t)r->plot->n * sizeof(Series) + BUFSIZ : 0;
}

/* ---- numbers ---- */

static void join(Bin *to, const Bin *b)
{
	if (!b->n)
		return;
	to->low = !to->n || b->low < to->low ? b->low : to->low;
	to->high = !to->n || b->high > to->high ? b->high : to->high;
	to->sum += b->sum;
	to->n += b->n;
}

static void widen(RtPlot *p)
{
	for (int k = 0; k < p->n; k++) {
		Bin *b = p->series[k]->bin;
		for (int i = 0; i < BINS; i++) {
			Bin two = i < BINS / 2 ? b[2 * i] : (Bin){ 0 };
			if (i < BINS / 2)
				join(&two, &b[2 * i + 1]);
			b[i] = two;
		}
	}
	p->width *= 2;
}

static Series *series_of(RtPlot *p, const char *name, bool eval)
{
	for (int i = 0; i < p->n; i++)
		if (p->series[i]->eval == eval && !strcmp(p->series[i]->name, name))
			return p->series[i];
	Series *s = p->n < SERIES && strlen(name) < RT_NAME ? calloc(1, sizeof *s) : NULL;
	if (!s)
		return NULL;
	strcpy(s->name, name);
	s->eval = eval;
	return p->series[p->n++] = s;
}

static void add(RtPlot *p, const RtRecord *rec, const RtNumber *n)
{
	Series *s = rt_is_curve(n->name) ? series_of(p, n->name, rec->eval) : NULL;
	float v = (float)n->value;
	if (!s)
		return;
	if (!isfinite(v)) {
		s->bad++;
		return;
	}
	if (rec->step >= s->step) {
		s->step = rec->step;
		s->last = n->value;
	}
	join(&s->bin[rec->step / p->width], &(Bin){ v, v, n->value, 1 });
}

static void take(RtPlot *p, const RtRecord *rec)
{
	while (rec->step / p->width >= BINS)
		widen(p);
	p->first = p->first < 0 || rec->step < p->first ? rec->step : p->first;
	p->last = rec->step > p->last ? rec->step : p->last;
	for (int i = 0; i < rec->n; i++)
		add(p, rec, &rec->number[i]);
}

/* ---- the log ---- */

/* Parses a line as a record; *start: it is the start of a run.  False: it is not a record.  Names are stored in NAMES
 * bytes. */
enum { NAMES = 8192 };

static bool read_line(const char *at, const char *end, RtRecord *rec, bool *start, char *names)
{
	RtJson j = { at, end, false };
	char *key = names, text[16] = "";
	*rec = (RtRecord){ .step = -1 };
	rt_json_open(&j, '{');
	while (rt_json_more(&j, '{')) {
		int n = rt_json_key(&j, key, (size_t)(names + NAMES - key));
		if (!strcmp(key, "event")) {
			rt_json_string(&j, text, sizeof text);
		} else if (!strcmp(key, "step")) {
			rec->step = rt_json_int(&j);
		} else if (rec->n < RT_NUMBERS) {
			rt_record_add(rec, key, rt_json_number(&j));
			key += n + 1;
		} else {
			return false;
		}
	}
	*start = !strcmp(text, "start");
	rec->eval = !strcmp(text, "eval");
	return !j.bad && rec->step >= 0 && (!*text || *start || rec->eval);
}

/* Reads lines backwards and skips steps that a later run repeated; an evaluation after n steps belongs to the steps
 * before it. */
static void read_log(RtPlot *p, const RtFile *f, int64_t limit)
{
	char names[NAMES];
	const char *text = (const char *)f->data, *end = text + f->bytes;
	while (f->bytes && end > text) {
		const char *line = end;
		RtRecord rec;
		bool start;
		while (line > text && line[-1] != '\n')
			line--;
		if (read_line(line, end, &rec, &start, names)) {
			if (start)
				limit = rec.step < limit ? rec.step : limit;
			else if (rec.step < limit + rec.eval)
				take(p, &rec);
		}
		end = line > text ? line - 1 : text;
	}
}

static int plot_open(Ctx *c, RtReport *r)
{
	RtFile f = { 0 };
	if (!r->plot_to)
		return 0;
	struct stat st;
	if (!stat(r->plot_to, &st) && !S_ISREG(st.st_mode))
		return rt_error(c, RT_USAGE, "cannot write %s: it is not a regular file", r->plot_to);
	FILE *out = fopen(r->plot_to, "a");     /* fails before the first step */
	if (!out || fclose(out))
		return rt_error(c, RT_USAGE, "cannot write %s: %s", r->plot_to, strerror(errno));
	r->plot = calloc(1, sizeof *r->plot);
	if (!r->plot)
		return rt_error(c, RT_MEMORY, "no memory");
	*r->plot = (RtPlot){ .width = 1, .first = -1 };
	if (r->append && r->log_to && !rt_file_open(c, RT_USAGE, r->log_to, &f))
		read_log(r->plot, &f, c->step);
	rt_file_close(&f);
	if (r->append && c->step && r->plot->first < 0)
		fprintf(stderr,
			"note: %s begins with step %" PRId64 ": earlier steps are not in a log that --log names\n",
			r->plot_to, c->step);
	return 0;
}

/* ---- SVG ---- */

enum { WIDTH = 960, LEFT = 72, RIGHT = 24, ABOVE = 30, BELOW = 26, TALL = 240, LOW = 140 };
typedef struct Panel {
	FILE *f;
	const RtPlot *p;
	const Series *s[2];             /* of training, of evaluations; NULL: there is none */
	bool logarithmic;
	double lo, hi;                  /* of the axis, as logarithms if it is logarithmic */
	double top, height;
} Panel;

static double x_of(const RtPlot *p, double step)
{
	double n = (double)(p->last - p->first);
	return (double)LEFT + (double)(WIDTH - LEFT - RIGHT) * (n > 0 ? (step - (double)p->first) / n : 0.5);
}

static double y_of(const Panel *a, double v)
{
	double t = ((a->logarithmic ? log10(v) : v) - a->lo) / (a->hi - a->lo);
	return a->top + a->height * (1 - t);
}

/* The next of 1, 2, 5, 10, 20, ... */
static double nice(double v)
{
	double ten = pow(10, floor(log10(v))), m = v / ten;
	return ten * (m <= 1 + 1e-9 ? 1 : m <= 2 + 1e-9 ? 2 : m <= 5 + 1e-9 ? 5 : 10);
}

static const char *number_text(char to[32], double v)
{
	static const struct {
		double from, unit;
		const char *word;
	} units[] = { { 1e9, 1e9, "G" }, { 1e6, 1e6, "M" }, { 1e4, 1e3, "k" }, { 0, 1, "" } };
	int k = 0;
	while (fabs(v) < units[k].from * (1 - 1e-9))
		k++;
	snprintf(to, 32, "%.5g%s", fabs(v) < 1e-12 ? 0 : v / units[k].unit, units[k].word);
	return to;
}

static void text_of(FILE *f, const char *s)
{
	for (; *s; s++)
		if (strchr("&<>\"", *s))
			fprintf(f, "&#%d;", *s);
		else
			fputc(*s, f);
}

static void horizontal(const Panel *a, double v)
{
	char text[32];
	double y = y_of(a, v);
	fprintf(a->f,
		"<path class=\"g\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
		LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4, number_text(text, v));
}

/* Lines at round numbers; of a logarithmic axis at 1, 2, 5 of every power of ten, or at powers of ten if there are
 * many. */
static void vertical_axis(const Panel *a)
{
	if (!a->logarithmic) {
		double by = nice((a->hi - a->lo) / (a->height > (double)LOW ? 6 : 4));
		for (double v = ceil(a->lo / by - 1e-9); v * by <= a->hi + 1e-9 * by; v++)
			horizontal(a, v * by);
		return;
	}
	double decades = a->hi - a->lo, every = decades > 6 ? ceil(decades / 6) : 1;
	for (double e = floor(a->lo); e <= a->hi; e++)
		for (int m = 1; m < 10; m++)
			if ((m == 1 && fmod(e, every) == 0) || (decades < 3 && (m == 2 || m == 5)) || decades < 0.6)
				if (e + log10(m) >= a->lo && e + log10(m) <= a->hi)
					horizontal(a, m * pow(10, e));
}

static void steps_axis(const Panel *a)
{
	char text[32];
	double n = (double)(a->p->last - a->p->first), by = n > 0 ? nice(n / 8) : 1, bottom = a->top + a->height;
	by = by < 1 ? 1 : by;
	for (double v = ceil((double)a->p->first / by); v * by <= (double)a->p->last; v++)
		fprintf(a->f,
			"<path class=\"g\" d=\"M%.1f %.1fV%.1f\"/>"
			"<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
			x_of(a->p, v * by), a->top, bottom, x_of(a->p, v * by), bottom + 17,
			number_text(text, v * by));
	fprintf(a->f, "<path class=\"a\" d=\"M%d %.1fV%.1fH%d\"/>\n", LEFT, a->top, bottom, WIDTH - RIGHT);
}

/* The range of each bin as a stroke; the means as a line, which is interrupted at empty bins of training. */
static void curve(const Panel *a, const Series *s)
{
	double half = (double)(a->p->width - 1) / 2,
	       by = x_of(a->p, (double)(a->p->first + a->p->width)) - x_of(a->p, (double)a->p->first);
	int points = 0;
	bool on = false;
	if (a->p->width > 1)
		fprintf(a->f, "<path class=\"s %s\" stroke-width=\"%.2f\" d=\"", s->eval ? "e" : "t", by > 1 ? by : 1);
	for (int i = 0; i < BINS && a->p->width > 1; i++)
		if (s->bin[i].n > 1)
			fprintf(a->f, "M%.1f %.1fV%.1f", x_of(a->p, (double)(i * a->p->width) + half),
				y_of(a, (double)s->bin[i].low) + 0.5, y_of(a, (double)s->bin[i].high) - 0.5);
	fprintf(a->f, "%s<path class=\"m %s\" d=\"", a->p->width > 1 ? "\"/>\n" : "", s->eval ? "e" : "t");
	for (int i = 0; i < BINS; i++) {
		if (s->bin[i].n)
			fprintf(a->f, "%c%.1f %.1f", on ? 'L' : 'M', x_of(a->p, (double)(i * a->p->width) + half),
				y_of(a, s->bin[i].sum / (double)s->bin[i].n));
		on = s->bin[i].n || (on && s->eval);
		points += s->bin[i].n != 0;
	}
	fprintf(a->f, "\"/>\n");
	for (int i = 0; i < BINS && (points == 1 || (s->eval && points <= 64)); i++)
		if (s->bin[i].n)
			fprintf(a->f, "<circle class=\"%s\" r=\"3\" cx=\"%.1f\" cy=\"%.1f\"/>\n", s->eval ? "e" : "t",
				x_of(a->p, (double)(i * a->p->width) + half),
				y_of(a, s->bin[i].sum / (double)s->bin[i].n));
}

/* The name above the panel; at the right, each curve with its last number. */
static void legend(const Panel *a)
{
	static const char *const word[] = { "training", "held out" };
	enum { SLOT = 190, BAD = 110 };
	char text[32];
	double y = a->top - 9;
	int x = WIDTH - RIGHT;
	fprintf(a->f, "<text class=\"h\" x=\"%d\" y=\"%.1f\">", LEFT, y);
	text_of(a->f, (a->s[0] ? a->s[0] : a->s[1])->name);
	fprintf(a->f, "%s</text>\n", a->logarithmic ? " (logarithmic)" : "");
	for (int i = 1; i >= 0; i--) {
		if (!a->s[i])
			continue;
		x -= SLOT + (a->s[i]->bad ? BAD : 0);
		fprintf(a->f, "<path class=\"m %s\" d=\"M%d %.1fh18\"/><text x=\"%d\" y=\"%.1f\">%s, last %s",
			i ? "e" : "t", x + 20, y - 4, x + 46, y, word[i], number_text(text, a->s[i]->last));
		if (a->s[i]->bad)
			fprintf(a->f, "; %" PRId64 " not finite", a->s[i]->bad);
		fprintf(a->f, "</text>\n");
	}
}

/* The axis covers all numbers.  It is logarithmic for a loss or a norm that changes by a factor of ten. */
static void scale(Panel *a)
{
	const char *name = (a->s[0] ? a->s[0] : a->s[1])->name;
	Bin all = { 0 };
	for (int k = 0; k < 2; k++)
		for (int i = 0; i < BINS && a->s[k]; i++)
			join(&all, &a->s[k]->bin[i]);
	a->logarithmic = (strstr(name, "loss") || strstr(name, "perplexity") || !strcmp(name, "norm")) &&
	                 all.low > 0 && all.high > 10 * all.low;
	a->lo = a->logarithmic ? log10((double)all.low) : (double)all.low;
	a->hi = a->logarithmic ? log10((double)all.high) : (double)all.high;
	double span = a->hi - a->lo, room = span > 1e-6 * fabs(a->hi) ? 0.05 * span
	                                    : fabs(a->hi) > 0         ? 0.1 * fabs(a->hi)
	                                                              : 1;
	bool zero = a->lo >= 0 && a->lo < 0.3 * a->hi && !a->logarithmic;        /* begins at zero */
	a->lo = zero ? 0 : a->lo - room;
	a->hi += room;
}

static void print_panels(FILE *f, const RtPlot *p, double top)
{
	for (int i = 0; i < p->n; i++) {
		const Series *s = p->series[i], *other = NULL;
		bool earlier = false;
		for (int k = 0; k < p->n; k++)
			if (k != i && !strcmp(p->series[k]->name, s->name)) {
				other = p->series[k];
				earlier |= k < i;
			}
		if (earlier)
			continue;
		Panel a = { .f = f,
			.p = p,
			.s = { s->eval ? other : s, s->eval ? s : other },
			.top = top + (double)ABOVE,
			.height = (double)(i ? LOW : TALL) };
		scale(&a);
		vertical_axis(&a);
		steps_axis(&a);
		for (int k = 0; k < 2; k++)
			if (a.s[k])
				curve(&a, a.s[k]);
		legend(&a);
		top += a.height + (double)(ABOVE + BELOW);
	}
}

static double height_of(const RtPlot *p)
{
	int panels = 0;
	for (int i = 0; i < p->n; i++) {
		bool earlier = false;
		for (int k = 0; k < i; k++)
			earlier |= !strcmp(p->series[k]->name, p->series[i]->name);
		panels += !earlier;
	}
	return (ABOVE + BELOW) * panels + (panels ? TALL + LOW * (panels - 1) : 0);
}

static void print_plot(FILE *f, const Ctx *c, const RtReport *r)
{
	static const char style[] =
		"svg{font:12px system-ui,sans-serif;color-scheme:light dark}text{fill:#444}"
		".h{font-weight:600;font-size:13px;fill:#111}.b{fill:#fff}"
		".g{stroke:#8884;fill:none}.a{stroke:#888;fill:none}"
		".t{stroke:#1f6fd0}.e{stroke:#d9640f}.m{fill:none;stroke-width:1.6;stroke-linejoin:round}"
		".s{fill:none;opacity:.6}circle.t{fill:#1f6fd0}circle.e{fill:#d9640f}"
		"@media(prefers-color-scheme:dark){.b{fill:#16181c}text{fill:#b8bcc4}.h{fill:#f0f0f0}"
		".t{stroke:#69a9ff}.e{stroke:#ffa14f}circle.t{fill:#69a9ff}circle.e{fill:#ffa14f}}";
	double height = height_of(r->plot) + 44;
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\">\n"
		"<style>%s</style>\n<rect class=\"b\" width=\"100%%\" height=\"100%%\"/>\n",
		WIDTH, height, WIDTH, height, style);
	fprintf(f, "<text x=\"%d\" y=\"24\">%" PRId64 " of %" PRId64 " steps of %" PRId64 " samples</text>\n", LEFT,
		c->step, r->steps, c->program->batch);
	if (r->plot->width > 1)
		fprintf(f,
			"<text x=\"%d\" y=\"24\" text-anchor=\"end\">lines: means of %" PRId64
			" steps; strokes: from the lowest to the highest of them</text>\n",
			WIDTH - RIGHT, r->plot->width);
	print_panels(f, r->plot, 30);
	fprintf(f, "<text x=\"%d\" y=\"%.0f\" text-anchor=\"end\">step</text>\n</svg>\n", LEFT - 8, height - 23);
}

/* The file is always complete: it is replaced by renaming. */
static void write_plot(const Ctx *c, RtReport *r)
{
	char path[RT_PATH];
	r->plot->written = rt_seconds();
	FILE *f = snprintf(path, sizeof path, "%s.new", r->plot_to) < (int)sizeof path ? fopen(path, "w") : NULL;
	if (f)
		print_plot(f, c, r);
	bool bad = !f || ferror(f);
	if (f && (fclose(f) || bad || rename(path, r->plot_to)))
		bad = true;
	if (bad && !r->plot_lost)
		fprintf(stderr, "warning: cannot write %s: %s; training continues without it\n", r->plot_to,
			strerror(errno));
	r->plot_lost |= bad;
}

static void plot_take(const Ctx *c, RtReport *r, const RtRecord *rec)
{
	if (!r->plot)
		return;
	take(r->plot, rec);
	if (rec->eval && rt_seconds() - r->plot->written > 1)
		write_plot(c, r);
}

static void plot_close(const Ctx *c, RtReport *r, int code)
{
	(void)code;
	if (!r->plot)
		return;
	if (r->plot->n)
		write_plot(c, r);
	for (int i = 0; i < r->plot->n; i++)
		free(r->plot->series[i]);
	free(r->plot);
	r->plot = NULL;
}

const RtSink rt_sink_plot = { plot_open, plot_take, plot_close };
