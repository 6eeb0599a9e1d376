/* .npy files that programs write: the header, and the file name of a value. */
#include "save.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* bfloat16 has no type code: its bits as integers. */
static const char *const letters[RT_TYPES] = {
	[RT_F32] = "<f4", [RT_F64] = "<f8", [RT_F16] = "<f2", [RT_BF16] = "<u2",
	[RT_I64] = "<i8", [RT_I32] = "<i4", [RT_I16] = "<i2", [RT_I8] = "|i1",
	[RT_U64] = "<u8", [RT_U32] = "<u4", [RT_U16] = "<u2", [RT_U8] = "|u1", [RT_BOOL] = "|b1",
};

size_t rt_npy_head(char head[RT_NPY_HEAD], RtType type, int naxis, const int64_t *dim)
{
	int n = 10 + snprintf(head + 10, RT_NPY_HEAD - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (",
		letters[type]);
	for (int a = 0; a < naxis; a++)
		n += snprintf(head + n, (size_t)(RT_NPY_HEAD - n), "%s%" PRId64 ",", a ? " " : "", dim[a]);
	n += snprintf(head + n, (size_t)(RT_NPY_HEAD - n), "), }");
	for (; n < 127 || n % 64 != 63; n++)
		head[n] = ' ';
	head[n++] = '\n';
	memcpy(head, "\x93NUMPY\x01\x00", 8);
	head[8] = (char)((n - 10) & 255);
	head[9] = (char)((n - 10) >> 8);
	return (size_t)n;
}

void rt_npy_name(char to[RT_NPY_NAME], const char *name)
{
	enum { LONGEST = RT_NPY_NAME - 32 };    /* longer names end in a hash */
	uint64_t h = 0;
	char *o = to;
	for (const char *s = name; *s; s++) {
		h = rt_hash(h, (unsigned char)*s);
		if (o - to < LONGEST)
			o += sprintf(o, *s == '/' ? "\\x2F" : "%c", *s);
	}
	if (strlen(name) > LONGEST)
		o += sprintf(o, "-%016" PRIx64, h);
	*o = 0;
}
