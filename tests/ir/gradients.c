/* A gradient is a function: operands, results and d + results in; d + operands out, as far as the text makes them. */
#include "ir.h"

static void show(const Op *row, const char *text)
{
	Function *f = parse_grad(row, text);
	Model *m = model_new();

	if (f) {
		arena_push(&m->arena, m->function, m->nfunction, f);
		print_model(stdout, m);
	} else {
		printf("\nrefused: %s\n", text);
		diag_reset();
	}
	model_free(m);
}

int main(void)
{
	language_init();
	Op matmul = { .name = "MatMul", .sig = "a:N b:N -> c:N" };
	Op leaky = { .name = "LeakyRelu", .sig = "x:F -> y:F",
		.attrs = "alpha:float=0.01 mode:string=\"a b\" axes:ints" };
	Op clip = { .name = "Clip", .sig = "x:N lo:N? hi:N? -> y:N" };
	Op split = { .name = "Two", .sig = "x:T w:T -> y:T z:T?" };

	show(&matmul, "da = ReduceTo(MatMul(dc, Swap(b)), a); db = ReduceTo(MatMul(Swap(a), dc), b)");
	show(&leaky, "dx = Where(Greater(x, 0), dy, Mul(dy, @alpha)); unused = ReduceSum(dy, @axes)");
	show(&clip, "dx = dy @when(\"!has(lo)\") dx = Mul(dy, 2) @when(\"has(lo)\")");
	show(&split, "t = Add(dy, dz) dw = t");
	show(&clip, "dx = Mul(dy, @beta)");
	show(&clip, "y = dy");
	show(&clip, "dx = Mul(dy");
	return 0;
}
