/* Where samples come from: what data.c, which orders and prefetches them, asks of the formats. */
#ifndef DATA_H
#define DATA_H

#include "run.h"

/* The bytes of one input for a run of samples: a file, or a part of the records of a file. */
typedef struct Part { const unsigned char *data; int64_t first, n; } Part;
enum { PARTS = 64 };
typedef struct Column {
	const char *path;               /* for messages */
	RtType type;
	bool big;                       /* the most significant byte first */
	int64_t stride, count;          /* bytes from sample to sample; elements of one */
	Part part[PARTS]; int npart;
	float scale, mean, dev;         /* integers that become floats: (v * scale - mean) / dev */
} Column;

typedef struct Set {
	Column *column;                 /* by input of the program; of a made set: none */
	int64_t n;                      /* samples; 0: as many as anybody wants */
	RtSafe safe;
	RtFile file[PARTS]; int nfile;
	const char *names[PARTS];
} Set;

/* data_files.c: 0, or RT_DATA after rt_error. */
int  set_open(Ctx *, Set *, const char *path);
void set_close(Set *);
uint64_t set_print(const Set *);                        /* a checksum of what the set holds */

/* Elements from..from + n - 1 of one sample, as the input has them; else what is wrong, and an exit code. */
typedef struct Wrong { int code; char text[200]; } Wrong;
bool set_fetch(const Set *, const RtInput *, int column, int64_t sample, int64_t from, int64_t n, void *to, Wrong *);

/* data_points.c */
void points_fetch(const Ctx *, const RtInput *, int64_t width, int64_t sample, int64_t from, int64_t n, void *to);

#endif
