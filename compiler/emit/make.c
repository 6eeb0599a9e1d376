/* Makefile, README and the files of the runtime in a tree. */
#include "emit/emit.h"

#include <string.h>

static const char *quantity(Arena *a, int64_t n, const char *what)
{
	return arena_printf(a, "%lld %s%s", (long long)n, what, n == 1 ? "" : "s");
}

void make_emit(Emit *e, const char *made)
{
	static const char *const runtime[] = {
		"form.h", "program.h", "rt.h", "bits.h", "run.h", "comm.h", "save.h", "wait.h", "api.h", "tables.h",
		"library.h", "main.c", "report.c", "log.c",
		"events.c", "plot.c", "api.c", "base.c",
		"evaluate.c", "memory.c", "actor.c", "watch.c", "checkpoint.c", "resume.c", "folder.c", "agree.c",
		"pulse.c",
		"signals.c", "dump.c", "form.c", "shards.c", "replicas.c", "route.c", "bucket.c", "lane.c", "queue.c",
		"verdict.c", "pace.c", "init.c",
		"normal.c", "infer.c",
		"npy.c", "file.c", "json.c", "safetensors.c", "weights.c", "export.c", "data.h", "data.c",
		"data_files.c",
		"data_formats.c", "data_paths.c", "data_tar.c", "data_values.c", "data_points.c", "thread.c",
		"comm_local.c", NULL,
	};
	Tree *t = &e->tree;
	Arena *a = t->arena;
	const Plan *p = e->plan;
	bool gpu = e->target == TARGET_CUDA;
	const char *name = emit_comment(a, e->g->name ? e->g->name : "");
	for (int i = 0; runtime[i]; i++)
		tree_copy(t, arena_printf(a, "rt/%s", runtime[i]), runtime[i]);
	tree_copy(t, ".clang-format", ".clang-format");
	if (!gpu) {
		static const char *const chosen[] = { "rt/comm_local.c", "rt/comm_mpi.c", "rt/mpi_moves.c" };
		tree_copy(t, "rt/slab.c", "slab.c");
		tree_copy(t, "rt/comm_mpi.c", "comm_mpi.c");
		tree_copy(t, "rt/mpi_moves.c", "mpi_moves.c");
		tree_copy(t, "rt/mpi_moves.h", "mpi_moves.h");
		for (size_t i = 0; i < sizeof chosen / sizeof chosen[0]; i++)
			tree_data(t, chosen[i])->chosen = true;
	}

	Text obj = { 0 };
	const char *last = NULL;
	for (int i = 0; i < t->nfile; i++)
		if (text_ends(t->file[i]->path, ".c") && !t->file[i]->chosen) {
			if (last)
				text_add(&obj, "\t%.*s.o \\\n", (int)strlen(last) - 2, last);
			last = t->file[i]->path;
		}
	text_add(&obj, "\t%.*s.o\n", (int)strlen(last) - 2, last);
	tree_fill(tree_file(t, "Makefile"), gpu ? "Makefile.cuda" : "Makefile", "banner",
	              arena_printf(a, "# Builds the trainer of model %s. Written by sbpcc %s.\n", name, stamp_version),
	              "prefix", arena_printf(a, "\t%s\n", opt.prefix ? opt.prefix : "sbp"), "objects", obj.s, NULL);

	Text about = { 0 };
	text_add(&about, "Model `%s` on %s, %s; %lld bytes per rank.\n", name, quantity(a, p->world->nrank, "rank"),
		quantity(a, p->nrole, "role"),
	         (long long)(p->layout.slab + p->layout.window));
	if (gpu)
		text_add(&about,
			"The kernels are CUDA: building needs nvcc, running needs a GPU per rank, and NCCL for more "
			"than one.\n"
		         "No GPU has run this program yet: it was only compiled.\n");
	else
		text_add(&about,
			"`./trainer` starts its ranks as processes of this machine, with shared memory between them. "
			"Built by\n"
		         "`make TRANSPORT=mpi`, which needs Open MPI's `mpicc`, it is started by `mpirun -n %d "
		         "./trainer`,\n"
		         "on one machine or several; both give the same bits, and each resumes what the other has "
		         "saved. A run\n"
		         "ends with status 22 when a rank is lost: killed, or its process has not run for RT_PATIENCE "
		         "seconds (50).\n", p->world->nrank);
	tree_fill(tree_file(t, "README.md"), "README.md", "title", arena_printf(a, "# Trainer of %s\n", name), "made",
		made, "about", about.s, NULL);
}
