/* The files of a CUDA tree beside the schedules: one file of device code, which includes the kernels of the library
 * that the model uses; the launchers; and fatbin.S, which embeds the fatbin in the program. */
#include "emit/emit.h"

void cuda_emit(Emit *e, const char *includes, const char *functions, const char *launchers)
{
	Tree *t = &e->tree;
	tree_fill(tree_file(t, "kernels/kernels.cu"), "kernels.cu", "banner",
		emit_banner(e, "The device code of this model."), "includes", includes,
	              "functions", functions, NULL);
	tree_fill(tree_file(t, "kernels/launch_pointwise.c"), "launch_pointwise.c", "banner",
	              emit_banner(e, "Launchers of the pointwise operators of this model."), "functions", launchers,
	              NULL);
	tree_copy(t, "kernels/dialect.h", "dialect.h");
	tree_copy(t, "kernels/launch.c", "launch.c");
	tree_copy(t, "kernels/fatbin.S", "fatbin.S");
	tree_copy(t, "rt/slab_cuda.h", "slab_cuda.h");
	tree_copy(t, "rt/slab_cuda.c", "slab_cuda.c");
	tree_copy(t, "rt/comm_nccl.c", "comm_nccl.c");
}
