// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A persistent treap (a search tree by address, a heap by random weights): nodes are reference
 * counted, and copied before a change if they are shared. The weights are unpredictable, so that no
 * file can make the tree deep.
 */
#include "client/perfctl/trace/process-maps.h"

#include <errno.h>
#include <stdlib.h>

#include "client/perfctl/trace/process-table.h"

struct map_node {
	struct map map;
	struct map_node *left, *right;
	uint32_t refs;
	uint32_t weight;
};

struct map_node *maps_ref(struct map_node *n)
{
	if (n)
		n->refs++;
	return n;
}

void maps_unref(struct map_node *n)
{
	while (n && --n->refs == 0) {
		struct map_node *right = n->right;

		maps_unref(n->left);
		free(n);
		n = right;
	}
}

static struct map_node *node_new(const struct map *map)
{
	static _Thread_local uint64_t state;
	struct map_node *n = malloc(sizeof(*n));

	if (!n)
		return NULL;
	if (!state)
		state = keytable_seed() | 1;
	state = keytable_mix(state) | 1;
	*n = (struct map_node){ .map = *map, .refs = 1, .weight = (uint32_t)(state >> 32) };
	return n;
}

/* An unshared copy of n, or n itself. Takes the reference; NULL: no memory. */
static struct map_node *own(struct map_node *n)
{
	struct map_node *copy;

	if (n->refs == 1)
		return n;
	copy = malloc(sizeof(*copy));
	if (copy) {
		*copy = *n;
		copy->refs = 1;
		maps_ref(copy->left);
		maps_ref(copy->right);
	}
	maps_unref(n);
	return copy;
}

/* All of a is below all of b. Takes both references, also on failure. */
static int join(struct map_node *a, struct map_node *b, struct map_node **ret)
{
	struct map_node *top, *below, **side;
	int r;

	if (!a || !b) {
		*ret = a ? a : b;
		return 0;
	}
	top = a->weight > b->weight ? a : b;
	below = top == a ? b : a;
	top = own(top);
	if (!top) {
		maps_unref(below);
		return -ENOMEM;
	}
	side = below == b ? &top->right : &top->left;
	a = below == b ? *side : below;
	b = below == b ? below : *side;
	*side = NULL;
	r = join(a, b, side);
	if (r < 0) {
		maps_unref(top);
		return r;
	}
	*ret = top;
	return 0;
}

/* Cuts a map that extends beyond `at`; the upper part goes to the front of *right. */
static int cut(struct map_node *n, uint64_t at, struct map_node **right)
{
	struct map behind = n->map;
	struct map_node *piece;

	if (n->map.end <= at)
		return 0;
	behind.start = at;
	behind.offset += at - n->map.start;
	n->map.end = at;
	piece = node_new(&behind);
	if (!piece) {
		maps_unref(*right);
		return -ENOMEM;
	}
	return join(piece, *right, right);
}

/* Splits into maps below an address and the others. Takes the reference, also on failure. */
static int split(struct map_node *n, uint64_t at, struct map_node **ret_left,
		 struct map_node **ret_right)
{
	struct map_node *sub, *left, *right;
	int r;

	if (!n) {
		*ret_left = *ret_right = NULL;
		return 0;
	}
	n = own(n);
	if (!n)
		return -ENOMEM;
	if (n->map.start < at) {
		sub = n->right;
		n->right = NULL;
		r = split(sub, at, &n->right, &right);
		if (r == 0)
			r = cut(n, at, &right);
		left = n;
	} else {
		sub = n->left;
		n->left = NULL;
		r = split(sub, at, &left, &n->left);
		right = n;
	}
	if (r < 0) {
		maps_unref(n);
		return r;
	}
	*ret_left = left;
	*ret_right = right;
	return 0;
}

/* Splits into the maps below and above a range, and drops those inside. */
static int part(struct map_node **maps, uint64_t start, uint64_t end, struct map_node **ret_left,
		struct map_node **ret_right)
{
	struct map_node *left, *rest, *over, *right, *n = *maps;
	int r;

	*maps = NULL;
	r = split(n, start, &left, &rest);
	if (r < 0)
		return r;
	r = split(rest, end, &over, &right);
	if (r < 0) {
		maps_unref(left);
		return r;
	}
	maps_unref(over);
	*ret_left = left;
	*ret_right = right;
	return 0;
}

int maps_remove(struct map_node **maps, uint64_t start, uint64_t end)
{
	struct map_node *left, *right;
	int r = part(maps, start, end, &left, &right);

	return r < 0 ? r : join(left, right, maps);
}

int maps_insert(struct map_node **maps, const struct map *map)
{
	struct map_node *left, *right, *n;
	int r = part(maps, map->start, map->end, &left, &right);

	if (r < 0)
		return r;
	n = node_new(map);
	if (!n) {
		maps_unref(left);
		maps_unref(right);
		return -ENOMEM;
	}
	r = join(left, n, &left);
	if (r < 0) {
		maps_unref(right);
		return r;
	}
	return join(left, right, maps);
}

const struct map *maps_find(const struct map_node *n, uint64_t address)
{
	while (n) {
		if (address < n->map.start)
			n = n->left;
		else if (address >= n->map.end)
			n = n->right;
		else
			return &n->map;
	}
	return NULL;
}
