/* File patterns: * ? [...] in any component of a path; sorted by bytes, so that a set has the same order everywhere. */
#include "data.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int keep(Paths *p, char *path)
{
	if (!path)
		return ENOMEM;
	if (p->n == p->room) {
		char **grown = realloc(p->path, (size_t)(p->room ? 2 * p->room : 16) * sizeof *grown);
		if (!grown) {
			free(path);
			return ENOMEM;
		}
		p->path = grown;
		p->room = p->room ? 2 * p->room : 16;
	}
	p->path[p->n++] = path;
	return 0;
}

/* folder/name, or name if folder is empty; len: of name. */
static char *beside(const char *folder, const char *name, size_t len)
{
	char *s = malloc(strlen(folder) + len + 2);
	size_t n = strlen(folder);
	if (!s)
		return NULL;
	memcpy(s, folder, n);
	if (n && folder[n - 1] != '/')
		s[n++] = '/';
	memcpy(s + n, name, len);
	s[n + len] = 0;
	return s;
}

/* Entries of one folder that a component of the pattern matches. */
static int match(Paths *to, const char *folder, const char *component, size_t len)
{
	char *pattern = strndup(component, len);
	DIR *d = opendir(*folder ? folder : ".");
	int bad = pattern ? 0 : ENOMEM;
	for (struct dirent *e; d && !bad && (e = readdir(d));)
		if (!fnmatch(pattern, e->d_name, FNM_PERIOD))
			bad = keep(to, beside(folder, e->d_name, strlen(e->d_name)));
	if (d)
		closedir(d);
	free(pattern);
	return bad;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Component after component: `now` are the paths that match so far. */
static int expand(Paths *now, const char *pattern)
{
	int bad = keep(now, strdup(*pattern == '/' ? "/" : ""));
	for (const char *at = pattern + strspn(pattern, "/"); *at && !bad;) {
		size_t len = strcspn(at, "/");
		Paths next = { 0 };
		for (int i = 0; i < now->n && !bad; i++) {
			char *plain = beside(now->path[i], at, len);
			if (!plain)
				bad = ENOMEM;
			else if (!access(plain, F_OK))
				bad = keep(&next, plain);
			else {
				free(plain);
				bad = match(&next, now->path[i], at, len);
			}
		}
		paths_free(now);
		*now = next;
		at += len;
		at += strspn(at, "/");
	}
	return bad;
}

int paths_add(Paths *p, const char *pattern)
{
	Paths found = { 0 };
	if (!strpbrk(pattern, "*?[") || !access(pattern, F_OK))
		return keep(p, strdup(pattern));
	int bad = expand(&found, pattern);
	if (!bad && !found.n)
		bad = ENOENT;
	if (found.n)
		qsort(found.path, (size_t)found.n, sizeof *found.path, by_bytes);
	for (int i = 0; i < found.n && !bad; i++) {
		bad = keep(p, found.path[i]);
		found.path[i] = NULL;
	}
	paths_free(&found);
	return bad;
}

void paths_free(Paths *p)
{
	for (int i = 0; i < p->n; i++)
		free(p->path[i]);
	free(p->path);
	*p = (Paths){ 0 };
}
