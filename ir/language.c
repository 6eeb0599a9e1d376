/* Fills the operator table: the rows of ops/ *.c, the definitions of ops/ *.ir.  Gradients that rows give as text are
 * parsed when first needed. */
#include "ir.h"
#include "ops/ops.h"

#include <string.h>

extern const char *const ops_text[], *const ops_text_name[];   /* ops/ *.ir, embedded */
extern const int nops_text;

static const Op *const sources[] = {
	ops_pointwise, ops_movement, ops_tile, ops_cut, ops_index, ops_reduce, ops_shape,
	ops_matmul, ops_conv, ops_pool, ops_norm, ops_loss, ops_attention, ops_recurrent, ops_steps,
	ops_resize, ops_sample, ops_spectral, ops_random, ops_quant, ops_einsum, ops_state, ops_detect, ops_misc,
	ops_optimizer, ops_boxing,
};

static void add_definitions(void)
{
	static Model *library;          /* lives as long as the table */

	library = model_new();
	for (int i = 0; i < nops_text; i++)
		if (parse_library(file_memory(ops_text_name[i], ops_text[i], strlen(ops_text[i])), library) < 0)
			die("the definitions in %s do not parse", ops_text_name[i]);
	for (int i = 0; i < library->nfunction; i++)
		op_define(library->function[i]);
}

/* Our own texts are read without the caps of the user; returns those caps. */
static Limits own_caps(void)
{
	Limits caps = limits;

	limits.name_bytes = limits.file_bytes = limits.nodes = limits.depth = limits.elements = INT32_MAX;
	return caps;
}

static Function *gradient(const Op *row, const char *text)
{
	Limits caps = own_caps();
	Function *f = parse_grad(row, text);

	limits = caps;
	return f;
}

void language_init(void)
{
	if (op_count())
		return;
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
		for (const Op *row = sources[i]; row->name; row++)
			op_add(row);
	Limits caps = own_caps();
	add_definitions();
	limits = caps;
	op_gradients_by(gradient);
}
