/* A model from a file: text or binary, by content. */
#include "ir.h"

#include <string.h>
#include <strings.h>

/* Text or protobuf: by the name where it is clear, else by the first bytes, where text has no control characters. */
static bool is_binary(const SrcFile *f)
{
	const char *dot = strrchr(f->path, '.');

	if (dot && (!strcasecmp(dot, ".ir") || !strcasecmp(dot, ".txt") || !strcasecmp(dot, ".onnxtxt")))
		return false;
	for (size_t i = 0; i < f->bytes && i < 256; i++)
		if (f->data[i] < 0x20 && f->data[i] != '\t' && f->data[i] != '\n' && f->data[i] != '\r' &&
			f->data[i] != '\f')
			return true;
	return dot && !strcasecmp(dot, ".onnx") && !f->bytes;
}

Model *read_model(const char *path)
{
	language_init();

	ExitCode why;
	uint32_t file = file_open(path, &why);

	if (!file)
		return NULL;
	Model *m = is_binary(file_of(file)) ? onnx_read(file) : parse_text(file);
	if (m && (extdata_load_all(m) || verify_model(m))) {
		model_free(m);
		return NULL;
	}
	return m;
}
