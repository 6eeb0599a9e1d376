/* Where samples come from: what data.c, which orders and prefetches them, asks of the formats. */
#ifndef DATA_H
#define DATA_H

#include "run.h"

/* A run of samples (of a stream: of tokens) of one file, so many bytes apart. */
typedef struct Part { const unsigned char *data; int file; int64_t first, n, stride; } Part;
/* All of one input.  A stream is tokens that lie side by side, also across the ends of files: sample i is those from i * count + later on. */
typedef struct Column {
	RtType type;
	bool big;                       /* the most significant byte first */
	bool stream;
	int64_t count, later;           /* elements of a sample; tokens of a stream that are passed over */
	int64_t n;                      /* samples, or tokens */
	Part *part; int npart, room;
	float scale, mean, dev;         /* integers that become floats: (v * scale - mean) / dev */
} Column;

typedef struct Set {
	Column *column; int ncolumn;    /* by input of the program; of a made set: none */
	int64_t n;                      /* samples; 0: as many as anybody wants */
	RtFile *file; int nfile, room;
} Set;

/* data_files.c: 0, or RT_DATA after rt_error. */
int  set_open(Ctx *, Set *, const char *instead);       /* instead: of what the model names; NULL: that */
void set_close(Set *);
uint32_t set_print(const Set *, uint32_t crc, uint32_t *after);  /* a checksum of all files, going on from one; after: what it is behind each, or NULL */
size_t set_bytes(const Set *);                          /* of its tables, beyond those of FEW files */
enum { FEW = 64 };

/* What formats call: one more file, whose path the set takes over; one more run of samples; an array of samples, with its shape checked. */
int set_add_file(Ctx *, Set *, char *path, RtFile **);
int set_add_part(Ctx *, Column *, const unsigned char *data, int file, int64_t n, int64_t stride);
int set_take_array(Ctx *, Set *, int input, const char *what, RtType, bool big, int rank, const int64_t *dim, const unsigned char *data, size_t bytes, bool samples);

/* data_formats.c: appends what is in one path to the set; path is the callee's. */
int format_open(Ctx *, Set *, char *path);
int format_input(Ctx *, Set *, int input, char *path);  /* the array of one input */
int npy_take(Ctx *, Set *, int input, const char *what, const unsigned char *data, size_t bytes, bool samples);
bool format_has_arrays(RtFormat);                       /* a path is a folder of files, one or more per input */

/* data_tar.c: of the file that was added last. */
int tar_take(Ctx *, Set *, const RtFile *);

/* data_paths.c: files that a pattern names, sorted by their bytes.  A name without *, ?, [ or that exists is itself. */
typedef struct Paths { char **path; int n, room; } Paths;
int  paths_add(Paths *, const char *pattern);           /* 0, or an errno; ENOENT: no file matches */
void paths_free(Paths *);                               /* what was taken out is NULL */

/* data_values.c: elements from..from + n - 1 of one sample, as the input has them; else what is wrong, and an exit code. */
typedef struct Wrong { int code; char text[400]; } Wrong;
bool set_fetch(const Set *, const RtInput *, int column, int64_t sample, int64_t from, int64_t n, void *to, Wrong *);

/* data_points.c */
void points_fetch(const Ctx *, const RtInput *, int64_t width, int64_t sample, int64_t from, int64_t n, void *to);

#endif
