/* Tensors in files other than the model's. */
#ifndef SBPCC_FILES_H
#define SBPCC_FILES_H

#include "../graph/graph.h"

/* extdata.c: data outside of the model's file is mapped, never through a link or outside the folder of the model. */
int extdata_load(Tensor *);                                  /* 0, or -1 after explaining */
uint32_t extdata_file(Loc, Name location);                   /* maps a file beside the model of Loc; 0 after err_at */
int extdata_load_all(Model *);                               /* extdata_load for every tensor; read_model calls it */
int extdata_copy(const Model *, const char *path);           /* into the folder of the model at path; -1 after err_at */
extern const char *extdata_root;                             /* --data-root: a folder in which links may be followed */

/* npy.c */
Tensor *npy_read(const char *path, Arena *);
Tensor *npy_decode(uint32_t file, Arena *);                  /* of a file that is mapped */
int     npy_write(const char *path, const Tensor *);

/* safetensors.c */
Tensor *safetensors_read(uint32_t file, const char *name, Arena *); /* NULL after explaining */

#endif
