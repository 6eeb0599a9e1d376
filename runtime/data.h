/* Data sets: the interface between data.c, which orders and prefetches samples, and the file formats.  A section per
 * file. */
#ifndef DATA_H
#define DATA_H

#include "save.h"

/* A run of samples (of a stream: of tokens) in one file, stride bytes apart. */
typedef struct Run { const unsigned char *data; int file; int64_t first, n, stride; } Run;
/* All samples of one input.  A stream is consecutive tokens, even across files: sample i begins at token i * count +
 * later. */
typedef struct Column {
	RtType type;
	bool big;                       /* big-endian */
	bool stream;
	int64_t count, later;           /* elements of a sample; tokens of a stream that are skipped */
	int64_t n;                      /* samples, or tokens */
	Run *run; int nrun, room;
	float scale, mean, dev;         /* numbers become (v * scale - mean) / dev */
} Column;

typedef struct Set {
	Column *column; int ncolumn;    /* by input of the program; of a generated set: none */
	int64_t n;                      /* samples, or tokens */
	RtFile *file; int nfile, room;
} Set;

/* data_files.c: 0, or RT_DATA after rt_error.  Formats call the first three: one more file, whose path the set takes
 * over; one more run of samples; an array of samples, with its shape checked. */
enum { FEW = 64 };
int  set_add_file(Ctx *, Set *, char *path, RtFile **);
int  set_add_run(Ctx *, Column *, const unsigned char *data, int file, int64_t n, int64_t stride);
int  set_take_array(Ctx *, Set *, int input, const char *what, RtType, bool big, int naxis, const int64_t *dim,
	const unsigned char *data, size_t bytes, bool samples);
int  set_open(Ctx *, Set *, const char *instead);               /* instead: replaces the model's path; NULL: none */
void set_close(Set *);
size_t set_bytes(const Set *);                                  /* of its tables, beyond those of FEW files */
uint32_t set_print(const Set *, uint32_t crc, uint32_t *after); /* a checksum of all files, continued from crc; after:
                                                                 * its value after each, or NULL */

/* data_formats.c: appends the contents of one path to the set; the callee takes over path. */
bool format_has_arrays(RtFormat);                       /* a path is a folder of files, one or more per input */
int npy_take(Ctx *, Set *, int input, const char *what, const unsigned char *data, size_t bytes, bool samples);
int format_input(Ctx *, Set *, int input, char *path);  /* the array of one input */
int format_open(Ctx *, Set *, char *path);

/* data_paths.c: files that match a pattern, sorted by their bytes.  A name without *, ?, [ or that exists matches
 * itself. */
typedef struct Paths { char **path; int n, room; } Paths;
int  paths_add(Paths *, const char *pattern);           /* 0, or an errno; ENOENT: no file matches */
void paths_free(Paths *);                               /* entries that were taken out are NULL */

/* data_points.c */
void points_fetch(const Ctx *, const RtInput *, int64_t width, int64_t sample, int64_t from, int64_t n, void *to);

/* data_tar.c: of the file that was added last. */
int tar_take(Ctx *, Set *, const RtFile *);

/* data_values.c: elements from .. from + n - 1 of one sample, as the input has them; else an exit status and a
 * message. */
typedef struct Wrong { int code; char text[400]; } Wrong;
bool set_fetch(const Set *, const RtInput *, int column, int64_t sample, int64_t from, int64_t n, void *to, Wrong *);

#endif
