/* Parsing types, the data of tensors, and attributes.  A literal is checked here against the type it is for, so
 * that a number that does not fit is reported at its position. */
#include "parse.h"

/* ---- Types */

static const char *const type_words[] = { "", "seq", "optional", "map", "sparse_tensor", "opaque", NULL };

static int type_word(Name s)
{
	for (int i = 1; type_words[i]; i++)
		if (is(s, type_words[i]))
			return i;
	return 0;
}

/* Whether a type begins here: an element type that is not a name itself, or "seq(" etc. */
bool parse_at_type(const Parser *p)
{
	int next = p->next.kind;

	if (p->tok.kind != TOK_ID)
		return false;
	if (type_word(p->tok.name))
		return next == '(';
	return dtype_of(p->tok.name, strlen(p->tok.name)) != DT_UNDEFINED && next != ',' && next != ')' &&
	       next != '@';
}

static bool at_element_type(const Parser *p)
{
	return p->tok.kind == TOK_ID && dtype_of(p->tok.name, strlen(p->tok.name)) != DT_UNDEFINED;
}

DType parse_element_type(Parser *p)
{
	DType t = p->tok.kind == TOK_ID ? dtype_of(p->tok.name, strlen(p->tok.name)) : DT_UNDEFINED;

	if (t == DT_UNDEFINED) {
		if (p->tok.kind == TOK_ID) {
			const char *list[DT_COUNT + 1] = { 0 };

			for (int i = 1; i < DT_COUNT; i++)
				list[i - 1] = dtype_name((DType)i);
			diag_unknown(p->tok.loc, "unknown element type", p->tok.name, list);
			jump(p);
		}
		expected(p, "an element type");
	}
	advance(p);
	return t;
}

static Dim dimension(Parser *p)
{
	Loc loc = p->tok.loc;
	int64_t v;

	if (accept(p, '?'))
		return DIM_UNKNOWN;
	if (p->tok.kind != TOK_INT)
		return dim_symbol(name(p, "a dimension"));
	v = integer(p, "");
	if (v < 0) {
		err_at(loc, "a dimension cannot be negative; an unknown one is written ?");
		return DIM_UNKNOWN;
	}
	return v;
}

/* "[" begins the dimensions, unless a key of external data follows: float [location: "w.bin"]. */
static bool at_dimensions(const Parser *p)
{
	Lex ahead = p->lex;

	if (p->tok.kind != '[')
		return false;
	return !(p->next.kind == TOK_ID || p->next.kind == TOK_STRING) || lex_next(&ahead).kind != ':';
}

Type *parse_type(Parser *p)
{
	Type *t = arena_new(p->arena, Type);
	Dim dim[NDIM_MAX];

	enter(p);
	t->kind = p->tok.kind == TOK_ID && p->next.kind == '(' ? (TypeKind)type_word(p->tok.name) : TY_TENSOR;
	if (t->kind != TY_TENSOR) {
		advance(p);
		expect(p, '(');
		if (t->kind == TY_MAP) {
			t->elem = parse_element_type(p);
			expect(p, ',');
		}
		if (t->kind == TY_OPAQUE) {
			if (p->tok.kind != ')')
				t->name = parse_dotted(p, "a name");
			if (accept(p, ',')) {
				t->domain = t->name;
				t->name = parse_dotted(p, "a name");
			}
		} else {
			t->sub = parse_type(p);
		}
		if (t->kind == TY_SPARSE) {
			Type *sub = t->sub;

			if (sub->kind != TY_TENSOR) {
				err_at(p->tok.loc, "sparse_tensor needs a tensor type");
				jump(p);
			}
			*t = *sub;
			t->kind = TY_SPARSE;
		}
		expect(p, ')');
	} else {
		t = type_tensor(p->arena, parse_element_type(p), 0, NULL);
		if (at_dimensions(p)) {
			advance(p);
			t->ndim = 0;
			while (p->tok.kind != ']') {
				if (t->ndim == NDIM_MAX) {
					fail_at(EXIT_LIMIT, p->tok.loc, "a tensor has at most %d dimensions",
						NDIM_MAX);
					give_up(p);
				}
				dim[t->ndim++] = dimension(p);
				if (!accept(p, ','))
					break;
			}
			expect(p, ']');
			t = type_tensor(p->arena, t->elem, t->ndim ? t->ndim : -1, dim);
		}
	}
	leave(p);
	return t;
}

/* ---- Tensors */

/* One literal as the bytes of one element (or one half of a complex number, or one packed byte). */
static void element(Parser *p, DType t, size_t width)
{
	int bits = dtype_literal_is_byte(t) ? 8 : dtype_bits(t);
	Token tok = p->tok;
	int64_t v;

	if (t == DT_FLOAT || t == DT_DOUBLE || t == DT_COMPLEX64 || t == DT_COMPLEX128) {
		double wide = 0;
		float narrow = 0;

		if (!at_number(p))
			expected(p, "a number");
		lex_float(tok, width == 8 ? &wide : NULL, width == 4 ? &narrow : NULL);
		stack_push(&p->data, width == 4 ? (void *)&narrow : (void *)&wide, width);
		advance(p);
		return;
	}
	if (tok.kind != TOK_INT)
		expected(p, dtype_is_float(t) ? "an integer: the bits of the element" : "an integer");
	if (t == DT_UINT64 && p->lex.text[tok.loc.off] != '-') {
		uint64_t u = 0;

		for (uint32_t i = 0; i < tok.loc.len; i++)
			if (__builtin_mul_overflow(u, 10u, &u) ||
				__builtin_add_overflow(
					u, (uint64_t)(p->lex.text[tok.loc.off + i] - '0'), &u)) {
				err_at(tok.loc, "this integer does not fit uint64");
				break;
			}
		stack_push(&p->data, &u, 8);
		advance(p);
		return;
	}
	v = integer(p, "");
	if (bits < 64 || t == DT_UINT64) {
		bool sign = dtype_is_int(t) && dtype_is_signed(t), packed = dtype_literal_is_byte(t);
		int64_t low = sign || packed ? -((int64_t)1 << (bits - 1)) : 0;
		int64_t high = t == DT_BOOL      ? 1
		               : t == DT_UINT64  ? INT64_MAX
		               : sign && !packed ? -(low + 1)
		                                 : ((int64_t)1 << bits) - 1;

		if (v < low || v > high)
			err_at(tok.loc, "%lld does not fit %s", (long long)v, dtype_name(t));
	}
	stack_push(&p->data, &v, width);        /* little-endian: the low bytes come first */
}

static void elements(Parser *p, Tensor *t)
{
	bool complex = t->dtype == DT_COMPLEX64 || t->dtype == DT_COMPLEX128;
	size_t width = (size_t)dtype_bits(t->dtype) / (complex ? 16 : 8), n = 0;
	int64_t count = tensor_elements(t), want = count;
	int nstr = 0;
	Loc open = p->tok.loc;

	if (count < 0 || count > limits.elements) {
		fail_at(EXIT_LIMIT, t->loc, "more elements than the limit of %lld (--max-elements)",
			(long long)limits.elements);
		give_up(p);
	}
	if (dtype_literal_is_byte(t->dtype))
		want = (int64_t)tensor_bytes(t->dtype, count);
	if (dtype_bits(t->dtype) < 8 && t->dtype != DT_STRING)
		width = 1;
	if (complex)
		want *= 2;
	p->data.bytes = 0;
	expect(p, '{');
	for (; p->tok.kind != '}'; n++) {
		if (t->dtype == DT_STRING) {
			if (p->tok.kind != TOK_STRING)
				expected(p, "a string");
			arena_push(p->arena, t->str, nstr, p->tok.name);
			advance(p);
		} else {
			element(p, t->dtype, width);
		}
		if (!accept(p, ',')) {
			n++;
			break;
		}
	}
	expect(p, '}');
	if ((int64_t)n != want) {
		err_at(open, "%zu literal%s for a tensor of %lld", n, n == 1 ? "" : "s", (long long)want);
		if (want != count)
			note_at(open, complex ? "each element is two literals: real and imaginary part" :
				"literals of %s are packed bytes", dtype_name(t->dtype));
		jump(p);
	}
	if (t->dtype == DT_STRING)
		return;
	if (dtype_bits(t->dtype) == 6) {
		t->bytes = tensor_bytes(t->dtype, want);
		t->data = arena_alloc(p->arena, t->bytes + 1);
		for (int64_t i = 0; i < want && i < (int64_t)n; i++)
			tensor_pack(t, i, ((const uint8_t *)p->data.item)[i]);
		return;
	}
	t->bytes = p->data.bytes;
	t->data = t->bytes ? stack_take(p->arena, &p->data, 0) : arena_alloc(p->arena, 1);
}

static void external(Parser *p, Tensor *t)
{
	static const char *const keys[] = { "location", "offset", "length", "checksum", NULL };

	expect(p, '[');
	do {
		Pair kv = { .loc = p->tok.loc };
		const char *near;

		kv.key = name(p, "a key of external data");
		near = diag_suggest(kv.key, keys);
		if (near && !is(kv.key, near))
			warn_at(kv.loc, "unknown key %s; did you mean %s?", kv.key, near);
		expect(p, ':');
		if (p->tok.kind != TOK_STRING)
			expected(p, "a string");
		kv.value = name(p, "");
		arena_push(p->arena, t->ext, t->next, kv);
	} while (accept(p, ','));
	expect(p, ']');
}

bool parse_at_data(const Parser *p)
{
	return p->tok.kind == '{' || p->tok.kind == '[';
}

/* DATA for a tensor of type ty. */
Tensor *parse_tensor(Parser *p, const Type *ty, Name name, Loc loc)
{
	Tensor *t = arena_new(p->arena, Tensor);

	t->name = name;
	t->loc = loc;
	if (ty->kind != TY_TENSOR || ty->ndim < 0) {
		err_at(loc, "constant data needs a tensor type with a known number of axes, not %s", type_text(ty));
		jump(p);
	}
	t->dtype = ty->elem;
	t->ndim = ty->ndim;
	t->dim = arena_array(p->arena, int64_t, ty->ndim ? ty->ndim : 1);
	for (int i = 0; i < ty->ndim; i++) {
		if (!dim_known(ty->dim[i])) {
			err_at(loc, "constant data needs numbers as dimensions, not %s", type_text(ty));
			jump(p);
		}
		t->dim[i] = ty->dim[i];
	}
	if (p->tok.kind == '[')
		external(p, t);
	else
		elements(p, t);
	return t;
}

/* ---- Attributes */

static AttrType attr_type(Parser *p)
{
	AttrType t;

	if (p->tok.kind != TOK_ID)
		expected(p, "the type of an attribute");
	t = type_attr_of(p->tok.name, strlen(p->tok.name));
	if (t == AT_UNDEFINED) {
		diag_unknown(p->tok.loc, "unknown type of attributes", p->tok.name, type_attr_names());
		jump(p);
	}
	advance(p);
	return t;
}

static Attr *function_attr(const Function *f, Name name)
{
	for (int i = 0; f && i < f->nattr; i++)
		if (f->attr[i].name == name)
			return &f->attr[i];
	return NULL;
}

/* "@outer" at '@' in a function body. */
Attr *parse_attr_ref(Parser *p)
{
	Attr *a;
	Loc loc;

	expect(p, '@');
	loc = p->tok.loc;
	if (!p->f) {
		err_at(loc, "only a function has attributes to refer to");
		jump(p);
	}
	a = function_attr(p->f, name(p, "the name of an attribute"));
	if (!a) {
		err_at(loc, "%s has no such attribute", p->f->name);
		jump(p);
	}
	return a;
}

static float narrow(Parser *p)
{
	float f = 0;

	if (!at_number(p))
		expected(p, "a number");
	lex_float(p->tok, NULL, &f);
	advance(p);
	return f;
}

static void attr_typed(Parser *p, Attr *a)
{
	Loc loc = p->tok.loc;
	Type *ty = parse_type(p);
	Name name = NULL;

	if (at_name(p) && (p->next.kind == '=' || p->next.kind == '{' || p->next.kind == '[')) {
		name = p->tok.name;
		advance(p);
	}
	if (accept(p, '=') || parse_at_data(p)) {
		a->type = AT_TENSOR;
		a->u.t = parse_tensor(p, ty, name, loc);
	} else {
		a->type = AT_TYPE;
		a->u.tp = ty;
	}
}

/* The items of a list of tensors, graphs or types, which all are of the kind of the first. */
static void attr_items(Parser *p, Attr *a)
{
	while (p->tok.kind != ']') {
		Attr one = { .name = a->name };
		Loc loc = p->tok.loc;
		AttrType list;

		enter(p);
		if (parse_at_type(p) || at_element_type(p)) {
			attr_typed(p, &one);
		} else if (at_name(p) && p->next.kind == '(') {
			one.type = AT_GRAPH;
			one.u.g = parse_graph(p);
		} else {
			expected(p, "a tensor, a graph or a type");
		}
		leave(p);
		list = one.type == AT_TENSOR ? AT_TENSORS : one.type == AT_GRAPH ? AT_GRAPHS : AT_TYPES;
		if (a->type != AT_UNDEFINED && a->type != list) {
			err_at(loc, "%s is a list of %s, and this is a %s", a->name, type_attr_name(a->type),
				type_attr_name(one.type));
			jump(p);
		}
		a->type = list;
		if (list == AT_TENSORS)
			arena_push(p->arena, a->u.ts, a->n, one.u.t);
		else if (list == AT_GRAPHS)
			arena_push(p->arena, a->u.gs, a->n, one.u.g);
		else
			arena_push(p->arena, a->u.tps, a->n, one.u.tp);
		if (!accept(p, ','))
			break;
	}
	expect(p, ']');
}

/* "[...]" of anything but integers, numbers and strings. */
static bool at_items(const Parser *p, AttrType declared)
{
	Lex ahead = p->lex;
	Token t = p->next;

	if (declared == AT_TENSORS || declared == AT_GRAPHS || declared == AT_TYPES || declared == AT_SPARSES)
		return true;
	if (declared != AT_UNDEFINED || (t.kind != TOK_ID && t.kind != TOK_STRING))
		return false;
	if (t.kind == TOK_ID && (dtype_of(t.name, strlen(t.name)) != DT_UNDEFINED))
		return true;
	return lex_next(&ahead).kind == '(';
}

/* "[...]". */
void parse_attr_list(Parser *p, Attr *a)
{
	Loc open = p->tok.loc;
	Lex ahead = p->lex;
	AttrType want = a->type;
	Token t = p->next;

	if (at_items(p, want)) {
		advance(p);
		attr_items(p, a);
		return;
	}
	if (want == AT_UNDEFINED)               /* one float makes all floats: look ahead over the numbers */
		for (want = AT_INTS;
			t.kind == TOK_INT || t.kind == TOK_FLOAT || t.kind == ',' || t.kind == TOK_ID;
			t = lex_next(&ahead))
			if (t.kind == TOK_FLOAT || t.kind == TOK_ID)
				want = AT_FLOATS;
	if (p->next.kind == TOK_STRING && a->type == AT_UNDEFINED)
		want = AT_STRINGS;
	expect(p, '[');
	if (p->tok.kind == ']' && a->type == AT_UNDEFINED) {
		err_at(open, "an empty list needs its type: %s: ints = []", a->name);
		jump(p);
	}
	if (want != AT_INTS && want != AT_FLOATS && want != AT_STRINGS) {
		err_at(open, "a list is no %s", type_attr_name(want));
		jump(p);
	}
	a->type = want;
	while (p->tok.kind != ']') {
		if (p->tok.kind == '[') {
			while (p->tok.kind == '[') {
				enter(p);
				advance(p);
			}
			err_at(open, "lists of lists cannot be written");
			jump(p);
		}
		if (want == AT_INTS) {
			int64_t v = integer(p, a->n ? "an integer or ']'" : "integers, numbers or strings");
			arena_push(p->arena, a->u.is, a->n, v);
		} else if (want == AT_FLOATS) {
			float f = narrow(p);
			arena_push(p->arena, a->u.fs, a->n, f);
		} else {
			if (p->tok.kind != TOK_STRING)
				expected(p, "a string");
			arena_push(p->arena, a->u.ss, a->n, p->tok.name);
			advance(p);
		}
		if (!accept(p, ','))
			break;
	}
	expect(p, ']');
}

static void attr_value(Parser *p, Attr *a)
{
	Loc loc = p->tok.loc;
	AttrType declared = a->type;

	enter(p);
	if (p->tok.kind == '@') {
		Attr *outer = parse_attr_ref(p);

		a->ref = outer->name;
		if (a->type == AT_UNDEFINED)
			a->type = outer->type;
		declared = a->type;
	} else if (p->tok.kind == '[') {
		parse_attr_list(p, a);
	} else if (p->tok.kind == TOK_STRING && p->next.kind != '(') {
		a->type = AT_STRING;
		a->u.s = name(p, "");
	} else if (p->tok.kind == TOK_INT && declared != AT_FLOAT) {
		a->type = AT_INT;
		a->u.i = integer(p, "");
	} else if (at_number(p)) {
		a->type = AT_FLOAT;
		a->u.f = narrow(p);
	} else if (parse_at_type(p) || at_element_type(p)) {
		attr_typed(p, a);
	} else if (at_name(p)) {
		if (p->next.kind == '[' || p->next.kind == '{')
			parse_element_type(p);        /* explains that it is none */
		if (p->next.kind != '(')
			expected(p, "a value (words are types, inf, nan or the name of a graph)");
		a->type = AT_GRAPH;
		a->u.g = parse_graph(p);
	} else {
		expected(p, "the value of an attribute");
	}
	if (declared != AT_UNDEFINED && declared != a->type)
		err_at(loc, "%s is declared as %s, but its value is %s", a->name, type_attr_name(declared),
			type_attr_name(a->type));
	leave(p);
}

static Attr attribute(Parser *p, bool declaration)
{
	Attr a = { .loc = p->tok.loc };
	bool typed;

	a.name = name(p, "the name of an attribute");
	typed = accept(p, ':');
	if (typed)
		a.type = attr_type(p);
	if (declaration && p->tok.kind != '=') {
		a.absent = true;
		return a;
	}
	expect(p, '=');
	attr_value(p, &a);
	parse_attr_annots(p, &a);
	return a;
}

void parse_attributes(Parser *p, bool declaration, Attr **list, int *n)
{
	expect(p, '<');
	while (p->tok.kind != '>') {
		Attr a = attribute(p, declaration);

		for (int i = *n > NEAR ? *n - NEAR : 0; i < *n; i++)
			if ((*list)[i].name == a.name)
				err_at(a.loc, "attribute %s is given twice", a.name);
		arena_push(p->arena, *list, *n, a);
		if (!accept(p, ','))
			break;
	}
	expect(p, '>');
}
