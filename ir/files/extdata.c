/* External data: tensors whose bytes are in another file, which the model names.  A model may come from anyone.
 *
 * The kernel resolves the name (openat2): beneath the folder of the model and through no symbolic link.  Checks of the
 * text of a name are not enough: other readers of ONNX were attacked three times in spite of such checks.  The open
 * file must be a regular file with one name only, and large enough.  No name is opened a second time, so that
 * exchanging a file meanwhile has no effect.
 *
 * With --data-root, links are followed as long as they stay beneath that folder.  A file is mapped once, and its
 * checksum is compared once if the model gives it: SHA-1 of all its bytes. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

const char *extdata_root;

typedef struct Mapped {
	Name folder, location;          /* of the model; as written */
	const uint8_t *data;
	uint64_t bytes;
	uint32_t file;
	char sha1[41];                  /* "" until it is needed */
	struct Mapped *next;
} Mapped;

static Map known;                   /* location -> list of Mapped */

static int beneath(int dir, const char *path, bool links)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (links ? 0 : RESOLVE_NO_SYMLINKS) };

	if (!links)
		how.flags |= O_NOFOLLOW;
	return (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
}

/* For kernels without openat2: opens one component after the other, refuses links, and compares the opened file with
 * the one that was checked. */
static int step_by_step(int dir, const char *path)
{
	int fd = dup(dir);

	while (fd >= 0) {
		size_t n = strcspn(path, "/");
		char part[NAME_MAX + 1];
		struct stat seen, got;

		if (n == 0 || n > NAME_MAX || (n == 2 && path[0] == '.' && path[1] == '.')) {
			close(fd);
			errno = n > NAME_MAX ? ENAMETOOLONG : EXDEV;
			return -1;
		}
		memcpy(part, path, n);
		part[n] = 0;
		bool last = !path[n + strspn(path + n, "/")];
		int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | (last ? 0 : O_DIRECTORY);
		int next = fstatat(fd, part, &seen, AT_SYMLINK_NOFOLLOW) < 0 ? -1 : openat(fd, part, flags);
		int why = errno;
		if (next >= 0 && (fstat(next, &got) < 0 || got.st_ino != seen.st_ino || got.st_dev != seen.st_dev)) {
			close(next);
			next = -1;
			why = ESTALE;
		}
		close(fd);
		fd = next;
		errno = why;
		if (last || fd < 0)
			return fd;
		path += n;
		path += strspn(path, "/");
	}
	return -1;
}

/* The location relative to extdata_root, when the folder of the model is beneath it; else NULL. */
static char *from_root(const char *folder, const char *location)
{
	char *root = realpath(extdata_root, NULL), *here = realpath(folder, NULL), *path = NULL;
	size_t n = root ? strlen(root) : 0;

	while (n > 1 && root[n - 1] == '/')
		n--;
	if (root && here && !strncmp(root, here, n) && (here[n] == '/' || !here[n] || n == 1)) {
		const char *rest = here + n + strspn(here + n, "/");

		if (asprintf(&path, "%s%s%s", rest, *rest ? "/" : "", location) < 0)
			path = NULL;
	}
	free(root);
	free(here);
	return path;
}

static int open_data(const char *folder, const char *location, bool *links)
{
	char *path = extdata_root ? from_root(folder, location) : NULL;
	int dir = open(path ? extdata_root : folder, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;

	*links = path != NULL;
	if (dir >= 0) {
		fd = location[0] == '/' ? (errno = EXDEV, -1) : beneath(dir, path ? path : location, *links);
		if (fd < 0 && (errno == ENOSYS || errno == EPERM))
			fd = step_by_step(dir, path ? path : location);
		int why = errno;
		close(dir);
		errno = why;
	}
	free(path);
	return fd;
}

static const char *reason(int why)
{
	switch (why) {
	case EXDEV: return "it leads out of the folder of the model";
	case ELOOP: return "a symbolic link is on the way (--data-root=FOLDER allows links beneath FOLDER)";
	default:    return strerror(why);
	}
}

/* NULL when the open file may be used; else the reason why not. */
static const char *unfit(int fd, const struct stat *st, bool links)
{
	enum { PROC = 0x9fa0, SYS = 0x62656572 };
	struct statfs fs;

	if (S_ISDIR(st->st_mode))
		return "it is a directory";
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_nlink != 1 && !links)
		return "it has several names (hard links; --data-root=FOLDER allows them)";
	if (!fstatfs(fd, &fs) && (fs.f_type == PROC || fs.f_type == SYS))
		return "it is no file on a disk";
	return NULL;
}

static Mapped *map_file(Loc loc, Name folder, Name location)
{
	struct stat st;
	bool links;
	int fd = open_data(folder, location, &links);
	const char *why = fd < 0 || fstat(fd, &st) < 0 ? reason(errno) : unfit(fd, &st, links);
	void *map = NULL;

	if (!why && st.st_size) {
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (map == MAP_FAILED)
			why = strerror(errno);
	}
	if (fd >= 0)
		close(fd);
	if (why) {
		err_at(loc, "external data %s cannot be used: %s", location, why);
		return NULL;
	}
	Mapped *m = arena_new(&arena_process, Mapped);
	*m = (Mapped){ .folder = folder, .location = location,
		.data = map ? map : (const void *)"", .bytes = (uint64_t)st.st_size };
	m->file = file_memory(name_fmt("%s/%s", folder, location), m->data, (size_t)m->bytes);
	file_of(m->file)->binary = true;
	return m;
}

static Mapped *find(Loc loc, Name location)
{
	const SrcFile *model = file_of(loc.file);
	const char *slash = model ? strrchr(model->path, '/') : NULL;
	Name folder = !slash                 ? name_of(".")
	              : slash == model->path ? name_of("/")
	                                     : name_n(model->path, (size_t)(slash - model->path));

	if (!known.arena)
		map_init(&known, &arena_process);
	Mapped *first = map_get(&known, location), *m = first;
	while (m && m->folder != folder)
		m = m->next;
	if (!m && (m = map_file(loc, folder, location)) != NULL) {
		m->next = first;
		map_put(&known, location, m);
	}
	return m;
}

uint32_t extdata_file(Loc loc, Name location)
{
	Mapped *m = find(loc, location);

	return m ? m->file : 0;
}

/* A decimal number of at most 63 bits. */
static int number(const Tensor *t, const Pair *p, uint64_t *v)
{
	const char *s = p->value;

	*v = 0;
	for (; *s >= '0' && *s <= '9'; s++)
		if (__builtin_mul_overflow(*v, 10u, v) || __builtin_add_overflow(*v, (uint64_t)(*s - '0'), v) ||
			*v > INT64_MAX)
			break;
	if (!*s && s != p->value)
		return 0;
	err_at(p->loc.file ? p->loc : t->loc, "the %s of external data is no number of bytes: %s", p->key, p->value);
	return -1;
}

/* -1 when there are too many to count. */
static int64_t elements(const Tensor *t)
{
	int64_t n = 1;

	for (int i = 0; i < t->ndim; i++)
		if (t->dim[i] < 0 || __builtin_mul_overflow(n, t->dim[i], &n))
			return -1;
	return n;
}

/* The checksum of the model is that of the complete file. */
static int verify_checksum(const Tensor *t, Mapped *m, const Pair *sum)
{
	Loc loc = sum->loc.file ? sum->loc : t->loc;
	const char *name = t->name && *t->name ? t->name : "a tensor";

	if (strlen(sum->value) != 40 || strspn(sum->value, "0123456789abcdefABCDEF") != 40) {
		err_at(loc, "the checksum of %s, external data of %s, is no SHA-1 (40 hexadecimal digits): %s",
			m->location, name, sum->value);
		return -1;
	}
	if (m->bytes > (uint64_t)limits.checksum_bytes) {
		if (limits.checksum_bytes && !m->sha1[0])
			warn_at(loc,
				"%s has %llu bytes, more than --max-checksum-bytes=%lld: its checksum is not compared",
				m->location, (unsigned long long)m->bytes, (long long)limits.checksum_bytes);
		m->sha1[0] = '?';
		return 0;
	}
	if (!m->sha1[0])
		sha1_text(m->data, m->bytes, m->sha1);
	if (!strcasecmp(m->sha1, sum->value))
		return 0;
	err_at(loc, "%s, external data of %s, is not the file that the model was made with: its SHA-1 is %s, not %s",
		m->location, name, m->sha1, sum->value);
	return -1;
}

int extdata_load(Tensor *t)
{
	const Pair *sum = NULL;
	Name location = NULL;
	uint64_t offset = 0, length;
	Loc loc = t->loc;
	int64_t n;

	if (t->data || !t->next)
		return 0;
	if ((n = elements(t)) < 0 || (t->bytes = tensor_bytes(t->dtype, n)) == SIZE_MAX) {
		err_at(loc, "the dimensions of %s multiply to too many bytes", t->name ? t->name : "a tensor");
		return -1;
	}
	length = t->bytes;
	for (int i = 0; i < t->next; i++) {
		const Pair *p = &t->ext[i];

		if (!strcmp(p->key, "location"))
			location = p->value;
		else if (!strcmp(p->key, "offset")) {
			if (number(t, p, &offset))
				return -1;
		} else if (!strcmp(p->key, "length")) {
			if (number(t, p, &length))
				return -1;
		} else if (!strcmp(p->key, "checksum"))
			sum = p;
		else
			warn_at(p->loc.file ? p->loc : loc, "external data has a key that is not known: %s", p->key);
	}
	if (t->dtype == DT_STRING || !location || !*location) {
		err_at(loc,
			t->dtype == DT_STRING ? "strings cannot be external data" : "external data has no location");
		return -1;
	}
	if (length != t->bytes) {
		err_at(loc, "external data has a length of %llu bytes, but dimensions and type of %s ask for %zu",
			(unsigned long long)length, t->name ? t->name : "the tensor", t->bytes);
		return -1;
	}
	Mapped *m = find(loc, location);
	if (!m)
		return -1;
	if (offset > m->bytes || length > m->bytes - offset) {
		err_at(loc, "external data %s has %llu bytes; %llu bytes from %llu on are not in it", location,
			(unsigned long long)m->bytes, (unsigned long long)length, (unsigned long long)offset);
		return -1;
	}
	if (sum && verify_checksum(t, m, sum))
		return -1;
	t->data = m->data + offset;
	t->file = m->file;
	t->file_off = offset;
	return 0;
}

/* ---- All tensors of a model */

typedef struct Each { int (*f)(Tensor *, void *); void *ctx; } Each;

static int each_attr(const Each *, const Attr *a, int n);

static int each_graph(const Each *e, const Graph *g)
{
	int bad = 0;

	for (int i = 0; i < g->ninit; i++)
		if (g->init[i]->data)
			bad |= e->f(g->init[i]->data, e->ctx);
	for (int i = 0; i < g->nnode; i++)
		bad |= each_attr(e, g->node[i]->attr, g->node[i]->nattr);
	return bad;
}

/* The readers limit the nesting of graphs in attributes to limits.depth. */
static int each_attr(const Each *e, const Attr *list, int n)
{
	int bad = 0;

	for (const Attr *a = list; a < list + n; a++) {
		if (a->ref || a->absent)
			continue;
		if (a->type == AT_TENSOR && a->u.t)
			bad |= e->f(a->u.t, e->ctx);
		if (a->type == AT_GRAPH && a->u.g)
			bad |= each_graph(e, a->u.g);
		for (int i = 0; a->type == AT_TENSORS && i < a->n; i++)
			bad |= e->f(a->u.ts[i], e->ctx);
		for (int i = 0; a->type == AT_GRAPHS && i < a->n; i++)
			bad |= each_graph(e, a->u.gs[i]);
	}
	return bad;
}

static int each_tensor(const Model *m, int (*f)(Tensor *, void *), void *ctx)
{
	Each e = { f, ctx };
	int bad = m->graph ? each_graph(&e, m->graph) : 0;

	for (int i = 0; i < m->nfunction; i++) {
		bad |= each_attr(&e, m->function[i]->attr, m->function[i]->nattr);
		bad |= each_graph(&e, m->function[i]->body);
	}
	return bad ? -1 : 0;
}

static int load(Tensor *t, void *ctx)
{
	(void)ctx;
	return extdata_load(t);
}

int extdata_load_all(Model *m)
{
	return each_tensor(m, load, NULL);
}

/* ---- Copies for a model that is written */

typedef struct Copy {
	const char *path;               /* of the model */
	int dir;                        /* its folder */
	Map done;                       /* by the text of a file's path */
} Copy;

/* Opens the file for writing and makes the folders on the way; -1 and errno. */
static int create(int dir, const char *location)
{
	int at = dup(dir);

	for (const char *p = location; at >= 0;) {
		size_t n = strcspn(p, "/");
		char part[NAME_MAX + 1];
		bool last = !p[n];

		if (!n || n > NAME_MAX || !strncmp(p, "..", n < 2 ? 2 : n)) {
			close(at);
			errno = n > NAME_MAX ? ENAMETOOLONG : EINVAL;
			return -1;
		}
		memcpy(part, p, n);
		part[n] = 0;
		if (!last)
			mkdirat(at, part, 0777);
		int next = openat(at, part,
			last ? O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
			     : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			0666);
		int why = errno;
		close(at);
		errno = why;
		at = next;
		if (last)
			return at;
		p += n + 1;
	}
	return -1;
}

static int write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno != EINTR)
			return -1;
		if (k > 0)
			p += k, n -= (size_t)k;
	}
	return 0;
}

/* An existing file may stay when it is the same. */
static bool same_file(int dir, const char *location, const SrcFile *data)
{
	int fd = beneath(dir, location, false);
	struct stat st;
	bool same = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && (size_t)st.st_size == data->bytes;

	if (same && data->bytes) {
		void *map = mmap(NULL, data->bytes, PROT_READ, MAP_PRIVATE, fd, 0);

		same = map != MAP_FAILED && !memcmp(map, data->data, data->bytes);
		if (map != MAP_FAILED)
			munmap(map, data->bytes);
	}
	if (fd >= 0)
		close(fd);
	return same;
}

static bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int copy(Tensor *t, void *ctx)
{
	Copy *c = ctx;
	const SrcFile *data = t->next && t->file ? file_of(t->file) : NULL;
	const char *location = NULL, *why = NULL;
	struct stat there, here, model;

	for (int i = 0; data && i < t->next; i++)
		location = !strcmp(t->ext[i].key, "location") ? t->ext[i].value : location;
	if (!location || map_get(&c->done, name_of(data->path)))
		return 0;
	map_put(&c->done, name_of(data->path), c);
	bool beside = !stat(data->path, &here) && !fstatat(c->dir, location, &there, 0) && same_inode(&here, &there);
	int fd = beside ? -1 : create(c->dir, location);
	if (fd < 0 && !beside && errno == EEXIST)
		why = same_file(c->dir, location, data) ? NULL : "a file of that name is there, and it is another one";
	else if (!beside && (fd < 0 || write_all(fd, data->data, data->bytes)))
		why = strerror(errno);
	if (!why && !fstatat(c->dir, location, &there, 0) && !stat(c->path, &model) && same_inode(&there, &model))
		why = "both would be the same file";
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && why)
		unlinkat(c->dir, location, 0);
	if (why)
		fail_at(EXIT_ENV, (Loc){ 0 }, "the external data %s cannot stand beside %s: %s", location, c->path,
			why);
	return why ? -1 : 0;
}

int extdata_copy(const Model *m, const char *path)
{
	const char *slash = strrchr(path, '/');
	Name folder = !slash ? name_of(".") : slash == path ? name_of("/") : name_n(path, (size_t)(slash - path));
	Copy c = { .path = path, .dir = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC) };
	Arena tmp = { 0 };

	if (c.dir < 0)
		return -1;
	map_init(&c.done, &tmp);
	int bad = each_tensor(m, copy, &c);
	arena_free(&tmp);
	close(c.dir);
	return bad;
}
