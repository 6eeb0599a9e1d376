/* The memory of a rank on a GPU, and kernel launches.  The host program is plain C; the device code is one fatbin,
 * which the assembler embeds in the program and which is loaded at the start. */
#include "slab_cuda.h"

#include <stdlib.h>
#include <string.h>

extern const unsigned char rt_fatbin[];         /* kernels/fatbin.S */

int rt_cuda(const Ctx *c, cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return 0;
	return rt_error(c, e == cudaErrorMemoryAllocation ? RT_MEMORY : RT_PLAN, "%s: %s", what, cudaGetErrorString(e));
}

static int grab(Ctx *c, void **p, size_t bytes, const char *what)
{
	*p = NULL;
	return bytes ? rt_cuda(c, cudaMalloc(p, bytes), what) : 0;
}

int rt_device_open(Ctx *c, unsigned char *window)
{
	(void)window;           /* it is shared host memory; on a GPU the window is device memory, which NCCL reads */
	RtCuda *d = calloc(1, sizeof *d);
	if (!d)
		return rt_error(c, RT_MEMORY, "no memory");
	c->device = d;
	int n = 0, code = rt_cuda(c, cudaGetDeviceCount(&n), "looking for a GPU");
	if (code)
		return code;
	if (n == 0)
		return rt_error(c, RT_PLAN, "this program needs a GPU, and there is none");
	void *slab, *device_window;
	if ((code = rt_cuda(c, cudaSetDevice(c->rank % n), "choosing the GPU")) ||
	    (code = rt_cuda(c, cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking), "creating a stream")) ||
	    (code = rt_cuda(c, cudaLibraryLoadData(&d->library, rt_fatbin, NULL, NULL, 0, NULL, NULL, 0),
	                    "loading the kernels")) ||
	    (code = grab(c, &slab, rt_slab_bytes(c), "allocating the slab")) ||
	    (code = grab(c, &device_window, c->program->window_bytes, "allocating the window")))
		return code;
	c->slab = slab;
	c->window = device_window;
	return c->nrank > 1 ? rt_nccl_open(c) : 0;
}

/* Device memory is resident when it is allocated. */
int rt_device_touch(Ctx *c)
{
	(void)c;
	return 0;
}

void rt_device_close(Ctx *c)
{
	RtCuda *d = c->device;
	if (!d)
		return;
	rt_nccl_close(c);
	cudaFree(c->slab);
	cudaFree(c->window);
	cudaFreeHost(d->staging);
	if (d->stream)
		cudaStreamDestroy(d->stream);
	free(d);
	c->device = NULL;
}

/* The staging area grows to the largest value that the host fills or reads. */
void *rt_host(Ctx *c, void *value, size_t bytes)
{
	RtCuda *d = c->device;
	(void)value;
	rt_sync(c);
	if (bytes > d->staging_bytes) {
		void *p = NULL;
		cudaFreeHost(d->staging);
		if (rt_cuda(c, cudaMallocHost(&p, bytes), "allocating the staging area"))
			exit(RT_MEMORY);
		d->staging = p;
		d->staging_bytes = bytes;
	}
	return d->staging;
}

int rt_put(Ctx *c, void *value, size_t bytes)
{
	RtCuda *d = c->device;
	return rt_cuda(c, cudaMemcpyAsync(value, d->staging, bytes, cudaMemcpyHostToDevice, d->stream),
		"copying to the GPU");
}

int rt_get(Ctx *c, void *host, const void *value, size_t bytes)
{
	RtCuda *d = c->device;
	int code = rt_cuda(c, cudaMemcpyAsync(host, value, bytes, cudaMemcpyDeviceToHost, d->stream),
		"copying from the GPU");
	return code ? code : rt_sync(c);
}

int rt_view(Ctx *c, const void *value, size_t bytes, const void **host)
{
	void *to = rt_host(c, NULL, bytes);
	*host = to;
	return rt_get(c, to, value, bytes);
}

int rt_sync(Ctx *c)
{
	RtCuda *d = c->device;
	return rt_cuda(c, cudaStreamSynchronize(d->stream), "waiting for the GPU");
}

static int find(Ctx *c, RtCuda *d, const char *name, cudaKernel_t *k)
{
	int i = 0, n = (int)(sizeof d->cache / sizeof d->cache[0]);
	for (; i < n && d->cache[i].name; i++)
		if (!strcmp(d->cache[i].name, name)) {
			*k = d->cache[i].kernel;
			return 0;
		}
	int code = rt_cuda(c, cudaLibraryGetKernel(k, d->library, name), name);
	if (!code && i < n) {
		d->cache[i].name = name;
		d->cache[i].kernel = *k;
	}
	return code;
}

int rt_launch(Ctx *c, const char *name, int64_t grid, int64_t gridy, void **args)
{
	RtCuda *d = c->device;
	cudaKernel_t k;
	int code = find(c, d, name, &k);
	if (code || grid == 0 || gridy == 0)
		return code;
	dim3 g = { (unsigned)grid, (unsigned)gridy, 1 }, b = { 256, 1, 1 };
	return rt_cuda(c, cudaLaunchKernel((const void *)k, g, b, args, 0, d->stream), name);
}
