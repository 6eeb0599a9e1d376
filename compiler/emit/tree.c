/* The files of a tree: made in memory from embedded text and templates, then written to the disk, whole or not at all.
 *
 * The tree is written into a folder beside its final path, synced, and renamed.  A folder that holds anything that
 * sbpcc did not write is left alone, unless an older tree of ours is in it: then that is replaced, and what else lies
 * there (objects, programs, the user's files) is kept.  A file whose contents did not change keeps its modification
 * time, so make compiles only what changed. The names of the files of a tree are in its file .sbpcc, by which we know
 * it. */
#include "emit/emit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

static const char marker[] = ".sbpcc";

extern const int nemit_text;
extern const char *const emit_text_name[];
extern const char *const emit_text[];

/* ---- files ---- */

static OutFile *tree_find(const Tree *t, const char *path)
{
	for (int i = 0; i < t->nfile; i++)
		if (!strcmp(t->file[i]->path, path))
			return t->file[i];
	return NULL;
}

OutFile *tree_data(Tree *t, const char *path)
{
	OutFile *f = tree_find(t, path);
	if (f)
		return f;
	f = arena_new(t->arena, OutFile);
	f->path = arena_printf(t->arena, "%s", path);
	arena_push(t->arena, t->file, t->nfile, f);
	return f;
}

Text *tree_file(Tree *t, const char *path)
{
	return &tree_data(t, path)->text;
}

static const char *embedded(const char *name)
{
	for (int i = 0; i < nemit_text; i++)
		if (!strcmp(emit_text_name[i], name))
			return emit_text[i];
	return NULL;
}

static const char *tree_embedded(const char *name)
{
	const char *s = embedded(name);
	if (!s)
		die("no embedded file %s", name);
	return s;
}

void tree_copy(Tree *t, const char *path, const char *from)
{
	const char *s = tree_embedded(from);
	OutFile *f = tree_data(t, path);
	if (!f->text.n)
		text_raw(&f->text, s, strlen(s));
	f->copied = true;
}

/* The headers that a file of kernels includes, and the files of code that belong to these. */
void tree_headers(Tree *t, const char *name)
{
	static const char key[] = "#include \"";
	for (const char *at = strstr(tree_embedded(name), key); at; at = strstr(at, key)) {
		at += sizeof key - 1;
		size_t n = strcspn(at, "\"");
		char *h = arena_printf(t->arena, "%.*s", (int)n, at), *c = arena_printf(t->arena, "%.*sc", (int)n - 1,
			at);
		if (!strcmp(h, "kernels.h") || !strcmp(h, "rt.h") || !strcmp(h, "bits.h") ||
			tree_find(t, arena_printf(t->arena, "kernels/%s", h)))
			continue;
		tree_copy(t, arena_printf(t->arena, "kernels/%s", h), h), tree_headers(t, h);
		if (embedded(c) && !text_ends(name, ".cu"))
			tree_copy(t, arena_printf(t->arena, "kernels/%s", c), c), tree_headers(t, c);
	}
}

/* Does the text define every kernel that the plain text does? */
static bool covers(const char *text, const char *plain)
{
	static const char key[] = "\nint k_";
	for (const char *at = strstr(plain, key); at; at = strstr(at + 1, key)) {
		size_t n = strcspn(at, "(") + 1;
		const char *k = text;
		while ((k = strstr(k, key)) && strncmp(k, at, n))
			k++;
		if (!k)
			return false;
	}
	return true;
}

void tree_kernel(Tree *t, const char *name)
{
	char *fast = arena_printf(t->arena, "%s_fast.c", name), *plain = arena_printf(t->arena, "%s.c", name);
	const char *text = embedded(fast), *file = text && covers(text, tree_embedded(plain)) ? fast : plain;
	tree_copy(t, arena_printf(t->arena, "kernels/%s", file), file);
	tree_headers(t, file);
}

/* ---- templates ---- */

/* How a hole is written, by the kind of file. */
static void marks(const char *name, const char **open, const char **shut, const char **end)
{
	*open = "/*{", *shut = "*/\n", *end = "/*}*/\n";
	if (!strncmp(name, "Makefile", 8))
		*open = "#{", *shut = "\n", *end = "#}\n";
	else if (text_ends(name, ".md") || text_ends(name, ".html"))
		*open = "<!--{", *shut = "-->\n", *end = "<!--}-->\n";
}

void tree_fill(Text *out, const char *name, ...)
{
	const char *s = tree_embedded(name), *open, *shut, *end;
	marks(name, &open, &shut, &end);
	for (;;) {
		const char *hole = strstr(s, open);
		if (!hole)
			break;
		text_raw(out, s, (size_t)(hole - s));
		hole += strlen(open);
		const char *stop = strstr(hole, shut), *after = stop ? strstr(stop, end) : NULL;
		if (!after)
			die("%s: a hole has no end", name);
		size_t len = (size_t)(stop - hole);
		const char *fill = NULL, *key;
		va_list ap;
		va_start(ap, name);
		while ((key = va_arg(ap, const char *)) != NULL) {
			const char *text = va_arg(ap, const char *);
			if (strlen(key) == len && !strncmp(key, hole, len))
				fill = text;
		}
		va_end(ap);
		if (!fill)
			die("%s: nothing for hole %.*s", name, (int)len, hole);
		text_raw(out, fill, strlen(fill));
		s = after + strlen(end);
	}
	text_raw(out, s, strlen(s));
}

/* ---- on the disk ---- */

typedef struct Dir { const char *path; int fd; } Dir;

static int trouble(const char *what, const char *path)
{
	fail_at(EXIT_ENV, (Loc){ 0 }, "%s %s: %s", what, path, strerror(errno));
	return -1;
}

static int refuse(const char *path, const char *why)
{
	fail_at(EXIT_ENV, (Loc){ 0 }, "%s %s; nothing was written", path, why);
	return -1;
}

static int write_all(int fd, const void *data, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = write(fd, (const char *)data + at, n - at);
		if (k < 0 && errno != EINTR)
			return -1;
		at += k < 0 ? 0 : (size_t)k;
	}
	return 0;
}

static bool says(int fd, const void *data, size_t bytes)
{
	char room[1 << 16];
	for (const char *at = data; bytes;) {
		ssize_t got = read(fd, room, bytes < sizeof room ? bytes : sizeof room);
		if (got <= 0 || memcmp(at, room, (size_t)got))
			return false;
		at += got, bytes -= (size_t)got;
	}
	return true;
}

/* The modification time of the file in the older tree, if its contents are the same. */
static bool same_time(int older, const char *path, const OutFile *f, struct timespec *when)
{
	int fd = older < 0 ? -1 : openat(older, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	struct stat st;
	char more;
	bool same = !fstat(fd, &st) && S_ISREG(st.st_mode) && says(fd, f->text.s, f->text.n);
	for (int i = 0; i < f->npiece && same; i++)
		same = says(fd, f->piece[i].data, f->piece[i].bytes);
	same = same && read(fd, &more, 1) == 0;
	close(fd);
	if (same)
		*when = st.st_mtim;
	return same;
}

static int write_file(int dir, int older, const char *path, const OutFile *f)
{
	int fd = openat(dir, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return -1;
	int bad = write_all(fd, f->text.s, f->text.n);
	for (int i = 0; i < f->npiece && !bad; i++)
		bad = write_all(fd, f->piece[i].data, f->piece[i].bytes);
	struct timespec when[2] = { { .tv_nsec = UTIME_NOW } };
	if (!bad && same_time(older, path, f, &when[1]))
		futimens(fd, when);     /* where it cannot be set, make compiles more than it must */
	if (bad || fsync(fd)) {
		int why = errno;
		close(fd);
		errno = why;
		return -1;
	}
	return close(fd);
}

/* Folders above a path of the tree, which has one level at most. */
static int make_folder(int dir, const char *path, Arena *a)
{
	const char *slash = strchr(path, '/');
	if (!slash)
		return 0;
	const char *name = arena_printf(a, "%.*s", (int)(slash - path), path);
	return mkdirat(dir, name, 0777) && errno != EEXIST ? -1 : 0;
}

/* Removes the entries of a folder of ours: files, and folders of files. */
static void clear(int fd, int depth)
{
	DIR *d = fdopendir(dup(fd));
	if (!d)
		return;
	rewinddir(d);
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (unlinkat(fd, e->d_name, 0) == 0 || depth == 0)
			continue;
		int sub = openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub >= 0) {
			clear(sub, depth - 1);
			close(sub);
			unlinkat(fd, e->d_name, AT_REMOVEDIR);
		}
	}
	closedir(d);
}

static bool is_empty(int fd)
{
	DIR *d = fdopendir(dup(fd));
	bool empty = d != NULL;
	for (struct dirent *e; d && (e = readdir(d)) != NULL;)
		empty &= !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return empty;
}

/* What is at the path of the tree: -1 refused, 0 nothing or an empty folder, 1 a tree of ours. */
static int look(const char *path)
{
	struct stat st;
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : trouble("cannot look at", path);
	if (S_ISLNK(st.st_mode))
		return refuse(path, "is a symbolic link");
	if (!S_ISDIR(st.st_mode))
		return refuse(path, "is not a folder");
	if (access(path, W_OK))
		return refuse(path, "may not be written");
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return trouble("cannot open", path);
	bool ours = !fstatat(fd, marker, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode), empty = is_empty(fd);
	close(fd);
	if (!ours && !empty)
		return refuse(path, "is not empty, and sbpcc did not write it");
	return ours;
}

/* The folder beside the final path, locked, so that of two runs one goes on.  A folder that a killed run left is taken
 * over. */
static int open_beside(const char *path, int *fd)
{
	if (mkdir(path, 0777) && errno != EEXIST)
		return trouble("cannot create", path);
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return errno == ENOENT ? refuse(path, "is used by another sbpcc") : trouble("cannot open", path);
	struct stat mine, there;
	if (flock(*fd, LOCK_EX | LOCK_NB) || fstat(*fd, &mine) || lstat(path, &there) || mine.st_ino != there.st_ino ||
		mine.st_dev != there.st_dev) {
		close(*fd);
		return refuse(path, "is used by another sbpcc");
	}
	clear(*fd, 1);
	return 0;
}

static int fill(const Tree *t, int fd, int older)
{
	OutFile names = { 0 };
	Text *list = &names.text;
	for (int i = 0; i < t->nfile; i++)
		if (make_folder(fd, t->file[i]->path, t->arena) || write_file(fd, older, t->file[i]->path, t->file[i]))
			return -1;
	for (int i = 0; i < t->nfile; i++) {
		text_add(list, "%s\n", t->file[i]->path);
		const char *slash = strchr(t->file[i]->path, '/');
		if (slash) {
			int sub = openat(fd, arena_printf(t->arena, "%.*s", (int)(slash - t->file[i]->path),
				t->file[i]->path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			if (sub < 0 || fsync(sub))
				return -1;
			close(sub);
		}
	}
	return write_file(fd, older, marker, &names) || fsync(fd) ? -1 : 0;
}

/* After the exchange `old` holds the older tree: what it lists goes; the rest moves into the new one. */
static void keep_rest(const char *old, const char *now, Arena *a)
{
	FILE *f = fopen(arena_printf(a, "%s/%s", old, marker), "r");
	char line[4096];
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = 0;
		if (*line && *line != '/' && !strstr(line, ".."))
			unlink(arena_printf(a, "%s/%s", old, line));
	}
	if (f)
		fclose(f);
	unlink(arena_printf(a, "%s/%s", old, marker));
	DIR *d = opendir(old);
	for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		const char *from = arena_printf(a, "%s/%s", old, e->d_name), *to = arena_printf(a, "%s/%s", now,
			e->d_name);
		if (!rmdir(from))
			continue;
		struct stat st;
		DIR *sub = !lstat(from, &st) && S_ISDIR(st.st_mode) && !access(to, F_OK) ? opendir(from) : NULL;
		if (!sub) {
			if (access(to, F_OK))
				rename(from, to);
			continue;
		}
		for (struct dirent *x; (x = readdir(sub)) != NULL;) {
			const char *xf = arena_printf(a, "%s/%s", from, x->d_name), *xt = arena_printf(a, "%s/%s", to,
				x->d_name);
			if (strcmp(x->d_name, ".") && strcmp(x->d_name, "..") && access(xt, F_OK))
				rename(xf, xt);
		}
		closedir(sub);
		rmdir(from);
	}
	if (d)
		closedir(d);
	if (rmdir(old))
		warn_at((Loc){ 0 }, "what the older tree held besides its files is left in %s", old);
}

static int install(const char *tmp, const char *path, bool ours, Arena *a)
{
	if (!ours)
		return rename(tmp, path) ? trouble("cannot rename to", path) : 0;
	if (renameat2(AT_FDCWD, tmp, AT_FDCWD, path, RENAME_EXCHANGE))
		return trouble("cannot replace", path);
	keep_rest(tmp, path, a);
	return 0;
}

int tree_write(const Tree *t, const char *dir)
{
	Arena *a = t->arena;
	size_t n = strlen(dir);
	while (n > 1 && dir[n - 1] == '/')
		n--;
	const char *path = arena_printf(a, "%.*s", (int)n, dir), *slash = strrchr(path, '/'),
		*base = slash ? slash + 1 : path;
	if (!strcmp(path, "/"))
		return refuse(path, "is the root of all files");
	if (!*base || !strcmp(base, ".") || !strcmp(base, ".."))
		return refuse(path, "is no name for a new folder");
	int ours = look(path), fd;
	if (ours < 0)
		return -1;
	const char *tmp = arena_printf(a, "%.*s.%s.sbpcc-tmp", (int)(base - path), path, base);
	if (open_beside(tmp, &fd))
		return -1;
	int older = ours ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1,
		unwritten = fill(t, fd, older), why = errno;
	if (older >= 0)
		close(older);
	if (unwritten) {
		clear(fd, 1);
		close(fd);
		rmdir(tmp);
		errno = why;
		return trouble("cannot write", path);
	}
	ours = look(path);              /* again: another run may have finished meanwhile */
	int bad = ours < 0 ? -1 : install(tmp, path, ours, a);
	if (bad) {
		clear(fd, 1);
		rmdir(tmp);
	} else {
		int parent = open(slash ? arena_printf(a, "%.*s", slash == path ? 1 : (int)(slash - path), path) : ".",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (parent >= 0) {
			fsync(parent);
			close(parent);
		}
	}
	close(fd);
	return bad;
}
