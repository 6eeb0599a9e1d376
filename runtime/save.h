/* Files with values: checkpoints, weights, exports.  A section per file. */
#ifndef SAVE_H
#define SAVE_H

#include "run.h"

/* file.c: files that are mapped and only read. */
/* path belongs to the caller; time: of the last change, in ns */
typedef struct RtFile { const unsigned char *data; size_t bytes; const char *path; int64_t time; } RtFile;
struct stat;
int64_t rt_file_time(const struct stat *);
int  rt_file_open(Ctx *, int code, const char *path, RtFile *);         /* 0, or code after rt_error */
void rt_file_close(RtFile *);
uint32_t rt_crc32c(uint32_t crc, const void *, size_t bytes);           /* begins with 0 */

/* json.c: reads JSON text from front to back.  The first mismatch sets bad, after which all functions return
 * nothing. */
typedef struct RtJson { const char *at, *end; bool bad; } RtJson;
bool rt_json_open(RtJson *, char bracket);                      /* { or [ */
bool rt_json_more(RtJson *, char bracket);                      /* another entry follows; else } or ] is consumed */
int  rt_json_string(RtJson *, char *to, size_t room);
int  rt_json_key(RtJson *, char *to, size_t room);              /* a string and its colon; its length */
int64_t rt_json_int(RtJson *);
double rt_json_number(RtJson *);                                /* NAN: null */
void rt_json_skip(RtJson *);                                    /* one value of any kind */

/* npy.c: writes the header and returns its bytes; the file name of a value: / becomes \x2F, long names are cut. */
enum { RT_NPY_HEAD = 320, RT_NPY_NAME = 212 };
size_t rt_npy_head(char head[RT_NPY_HEAD], RtType, int naxis, const int64_t *dim);
void rt_npy_name(char to[RT_NPY_NAME], const char *name);

/* safetensors.c: a header of JSON, then the bytes of tensors. */
enum { RT_NAME = 1024 };
typedef struct RtEntry { const char *name; RtType type; int naxis; int64_t dim[RT_AXES]; uint64_t from, to; } RtEntry;
typedef struct RtSafe {
	RtFile file;
	RtEntry *entry; int n, next;
	char *names;
	const unsigned char *data;
	bool ours;                      /* initial values that the compiler wrote */
} RtSafe;
bool rt_safe_fits(const RtEntry *, const RtTensor *);                   /* same type and shape */
int  rt_safe_open(Ctx *, int code, const char *path, RtSafe *);
int  rt_safe_read(Ctx *, int code, const char *path, RtFile, RtSafe *); /* of an open file; rt_safe_close closes it */
void rt_safe_close(RtSafe *);
const RtEntry *rt_safe_find(RtSafe *, const char *name);                /* NULL: not there */

/* weights.c: tensors of a file or a folder, matched with the kept values. */
enum { RT_RULES = 4096 };
typedef struct RtWeights {
	RtSafe *file; int nfile;
	struct RtItem *item; int nitem; /* by name */
	struct RtItem **row;            /* by kept value; NULL: not there */
	bool ours;
} RtWeights;
void rt_unescape(char *to, size_t room, const char *name);      /* the name in the model */
const char *rt_map_wrong(const char *rules);                    /* the error in the rules; NULL: none */
int  rt_weights_open(Ctx *, const RtFrom *, RtWeights *);       /* RT_DATA after rt_error; rank 0 reports matches */
bool rt_weights_row(const RtWeights *, int row, RtType *, const void **from);
void rt_weights_close(RtWeights *);

/* export.c: DIR/model.safetensors; all ranks call it. */
int rt_export(Ctx *, const char *dir);

/* checkpoint.c */
#define RT_CHECKPOINT_FORMAT "sbpcc checkpoint 2"
#define RT_MANIFEST_END ",\"crc\":\"%08" PRIx32 "\"}\n"                  /* of all bytes before it */
#define RT_STEP_FORMAT "step-%08" PRId64
enum { RT_PATH = 4096, RT_STEP_NAME = 32 };
typedef struct RtResume {
	char path[RT_PATH];
	int64_t step;
	uint64_t seed, data;
	uint32_t manifest;              /* its checksum */
	bool itself;                    /* the given folder is the checkpoint itself */
} RtResume;
typedef struct RtSaving {
	const char *dir;
	int64_t keep;
	uint64_t data;                  /* checksum of the data set */
	const RtResume *from;           /* the checkpoint that this run was resumed from; NULL: it is a new run */
	bool overwrite, last_good;      /* remove later checkpoints in dir; remove damaged ones */
} RtSaving;
static inline bool rt_is_saved(const RtKept *k)
{
	return k->keep != RT_CONSTANT;
}
size_t rt_snapshot_bytes(const RtProgram *);
/* of a rank, into the logical tensor at base */
int  rt_write_shard(const RtProgram *, int rank, const RtTensor *, int fd, uint64_t base, const void *from);
int  rt_saver_open(Ctx *, const RtSaving *);
void rt_saver_close(Ctx *);
int64_t rt_saved_last(const Ctx *);             /* on rank 0: step of the last checkpoint of this run; -1: none */
void rt_save_look(Ctx *);                       /* between steps: commits a save that all ranks have written */
int  rt_save(Ctx *, int64_t done, bool last);   /* all ranks, after `done` steps; last: waits until it is on disk */

/* resume.c */
int  rt_resume_find(Ctx *, const char *dir, bool last_good, RtResume *); /* the newest good one; on rank 0 */
int  rt_resume_at(Ctx *, const char *dir, bool check, RtResume *); /* at r->step, which rank 0 found; check: tensors */
int  rt_resume_load(Ctx *, const RtResume *);
int  rt_resume_other_data(Ctx *, const RtResume *);             /* RT_DATA after reporting which file has changed */

/* folder.c */
void rt_folder_remove(int parent, const char *name);            /* a checkpoint */
int64_t rt_step_of(const char *name);                           /* -1: not the name of a checkpoint */
int  rt_saved_steps(const char *dir, int64_t *step, int max);   /* of checkpoints in a folder, the newest first */
bool rt_folder_prune(const char *dir, int64_t after, int64_t keep); /* removes the oldest after a step; leaves `keep` */
int  rt_folder_open(Ctx *, const char *dir, const RtSaving *, int *lock); /* all ranks: locks it; all see the same */

#endif
