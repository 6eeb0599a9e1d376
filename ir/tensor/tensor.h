/* Element types, dimensions, types of values, constants. */
#ifndef SBPCC_TENSOR_H
#define SBPCC_TENSOR_H

#include "../base/base.h"

/* dtype.c: element types; numbers are ONNX's. */
typedef enum {
	DT_UNDEFINED, DT_FLOAT, DT_UINT8, DT_INT8, DT_UINT16, DT_INT16, DT_INT32, DT_INT64, DT_STRING, DT_BOOL,
	DT_FLOAT16, DT_DOUBLE, DT_UINT32, DT_UINT64, DT_COMPLEX64, DT_COMPLEX128, DT_BFLOAT16,
	DT_FLOAT8E4M3FN, DT_FLOAT8E4M3FNUZ, DT_FLOAT8E5M2, DT_FLOAT8E5M2FNUZ, DT_UINT4, DT_INT4, DT_FLOAT4E2M1,
	DT_FLOAT8E8M0, DT_UINT2, DT_INT2, DT_FLOAT6E2M3, DT_FLOAT6E3M2, DT_COUNT
} DType;

const char *dtype_name(DType);               /* "float", "int64", ... as in the text syntax */
DType dtype_of(const char *name, size_t len);/* DT_UNDEFINED when it is none */
bool  dtype_literal_is_byte(DType);          /* 2-bit and 4-bit types: a literal holds several elements */
int   dtype_bits(DType);                     /* 32 for float, 4 for int4; 0 for string */
bool  dtype_is_float(DType);                 /* float double float16 bfloat16 float8* float4* */
bool  dtype_is_int(DType);                   /* signed or unsigned integers, not bool */
bool  dtype_is_signed(DType);
double  dtype_decode(DType, uint32_t bits);                          /* float16, bfloat16, float8*, float4 -> double */
uint32_t dtype_encode(DType, double v, bool saturate);

/* dim.c: a dimension is a number, unknown, or a symbolic expression kept as its canonical text ("N", "2*N*T + 1").
 * Arithmetic keeps sums of products exact; what it cannot express is DIM_UNKNOWN; overflow is DIM_OVERFLOW. */
typedef int64_t Dim;
enum { NDIM_MAX = 32 };                      /* dimensions of one tensor; readers refuse more */
#define DIM_UNKNOWN  ((Dim)-1)
#define DIM_OVERFLOW ((Dim)-2)
static inline bool dim_known(Dim d) { return d >= 0; }
static inline bool dim_symbolic(Dim d) { return d <= -16; }
Dim  dim_symbol(Name text);                  /* "N", or an expression as dim_text prints it; other text: one symbol */
Name dim_text(Dim);                          /* "32", "N", "2*N", "?" */
Dim  dim_add(Dim, Dim), dim_sub(Dim, Dim), dim_mul(Dim, Dim);
Dim  dim_div(Dim, Dim);                      /* exact division; DIM_UNKNOWN when the remainder is not known to be 0 */
Dim  dim_floordiv(Dim, Dim), dim_ceildiv(Dim, Dim);
bool dim_same(Dim a, Dim b);                 /* known to be equal: equal numbers or expressions, never two unknowns */
bool dim_differ(Dim a, Dim b);               /* known to differ: two numbers that are not equal */
void dim_bind(Name symbol, int64_t value);   /* --set N=32 */
int  dim_check(void);                        /* reports each symbol that was bound but is not used; -1: there was one */
Dim  dim_bound(Dim);                         /* with all bindings put in */

/* type.c: types of values. */
/* Unknown protobuf fields of one message of an .onnx file, tags included: kept and written back. */
typedef struct Blob { const uint8_t *data; size_t bytes; uint32_t field; } Blob;
typedef struct Blobs { Blob *blob; int n; } Blobs;

typedef enum { TY_TENSOR, TY_SEQ, TY_OPTIONAL, TY_MAP, TY_SPARSE, TY_OPAQUE } TypeKind;
typedef struct Type {
	TypeKind kind;
	DType elem;                     /* tensor, sparse: element; map: key */
	int ndim;                       /* -1: unknown */
	Dim *dim;
	Name *denote;                   /* per dimension, NULL when none */
	struct Type *sub;               /* seq, optional: element; map: value */
	Name domain, name;              /* opaque */
	Name denotation;
	struct TypeBlobs { Blobs type, kind, shape, *dim; } *unknown;   /* of TypeProto and the messages inside; NULL */
} Type;

Type *type_tensor(Arena *, DType, int ndim, const Dim *dim);         /* copies dim; ndim -1 is unknown */
bool  type_equal(const Type *, const Type *);
const char *type_text(const Type *);         /* "float[32, N]": valid until the eighth call after it */
int64_t type_elements(const Type *);         /* number of elements; -1 when not all known, -2 on overflow */

typedef enum {
	AT_UNDEFINED, AT_FLOAT, AT_INT, AT_STRING, AT_TENSOR, AT_GRAPH,
	AT_FLOATS, AT_INTS, AT_STRINGS, AT_TENSORS, AT_GRAPHS, AT_SPARSE, AT_SPARSES, AT_TYPE, AT_TYPES
} AttrType;

const char *type_attr_name(AttrType);        /* "ints", "type_proto", ... */
AttrType type_attr_of(const char *name, size_t len);         /* AT_UNDEFINED when it is none */
const char *const *type_attr_names(void);    /* all, for "did you mean" */

/* tensor.c: constants.  data is little-endian, dense, row-major; sub-byte types packed as ONNX's raw_data. */

typedef struct Pair { Name key, value; Loc loc; Blobs unknown; bool plain; /* not of ours, whatever its key */ } Pair;

typedef struct Tensor {
	Name name;
	DType dtype;
	int ndim;
	int64_t *dim;
	const void *data;               /* in the mapped file where possible; of any alignment: memcpy */
	size_t bytes;
	Name *str;                      /* DT_STRING only */
	Pair *ext; int next;            /* external data: location, offset, length, checksum; mapped by extdata_load */
	Pair *meta; int nmeta;
	Name doc;
	Blobs unknown;
	struct Sparse { struct Tensor *values, *indices; Blobs unknown; } *sparse;      /* as in the file, or NULL */
	Loc loc;
	uint32_t file;                  /* data is in this file, and the printer refers to it; 0: memory of ours */
	uint64_t file_off;
} Tensor;

Tensor *tensor_new(Arena *, DType, int ndim, const int64_t *dim);    /* zeroed data of ours */
int64_t tensor_elements(const Tensor *);
/* Moves idx to the next element of a shape in row-major order; returns its offset by the strides, given the offset `at`
 * of the element before. */
static inline int64_t tensor_next(int ndim, const int64_t *dim, const int64_t *stride, int64_t *idx, int64_t at)
{
	for (int a = ndim; a-- > 0;) {
		at += stride[a];
		if (++idx[a] < dim[a])
			break;
		at -= stride[a] * dim[a];
		idx[a] = 0;
	}
	return at;
}
size_t  tensor_bytes(DType, int64_t elements);                       /* packed size; SIZE_MAX on overflow */
uint32_t tensor_packed(const Tensor *, int64_t i);                   /* bits of an element narrower than a byte */
void    tensor_pack(Tensor *, int64_t i, uint32_t bits);
double  tensor_get(const Tensor *, int64_t i);                       /* element as double */
int64_t tensor_int(const Tensor *, int64_t i);                       /* element as integer (floats are truncated) */
void    tensor_set(Tensor *, int64_t i, double v);                   /* rounds to nearest even; 8-bit floats saturate */
void    tensor_set_int(Tensor *, int64_t i, int64_t v);
Tensor *tensor_ints(Arena *, const int64_t *v, int n);               /* int64[n] */
Tensor *tensor_scalar(Arena *, DType, double v);
bool    tensor_equal(const Tensor *, const Tensor *);

#endif
