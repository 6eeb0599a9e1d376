/* Maps from interned names, or any pointers, to pointers: open addressing in an arena. */
#include "base.h"

void map_init(Map *m, Arena *a)
{
	*m = (Map){ .arena = a };
}

static size_t mix(const void *key)
{
	uint64_t x = (uint64_t)(uintptr_t)key;

	x = (x ^ x >> 32) * 0x9e3779b97f4a7c15u;
	return (size_t)(x ^ x >> 29);
}

void *map_get(const Map *m, const void *key)
{
	if (!m->cap)
		return NULL;
	for (size_t i = mix(key) & (size_t)(m->cap - 1); m->slot[i].key; i = (i + 1) & (size_t)(m->cap - 1))
		if (m->slot[i].key == key)
			return m->slot[i].val;
	return NULL;
}

void map_put(Map *m, const void *key, void *val)
{
	if (m->n * 2 >= m->cap) {
		Map old = *m;

		m->cap = old.cap ? old.cap * 2 : 16;
		m->slot = arena_array(m->arena, struct MapSlot, m->cap);
		m->n = 0;
		for (int i = 0; i < old.cap; i++)
			if (old.slot[i].key)
				map_put(m, old.slot[i].key, old.slot[i].val);
		arena_release(m->arena, old.slot, sizeof *old.slot * (size_t)old.cap);
	}
	size_t i = mix(key) & (size_t)(m->cap - 1);
	while (m->slot[i].key && m->slot[i].key != key)
		i = (i + 1) & (size_t)(m->cap - 1);
	m->n += !m->slot[i].key;
	m->slot[i] = (struct MapSlot){ key, val };
}
