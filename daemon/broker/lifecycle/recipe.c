// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packs recipes. Must not know what is in them. */
#include "daemon/broker/lifecycle/recipe.h"

#include <assert.h>
#include <string.h>

#include "proto/macro.h"

struct packed_recipe {
	uint32_t n_sources, n_nodes;
	uint8_t bytes[]; /* the sources, then the nodes */
};

int recipe_pack(const struct pp_recipe *recipe, struct packed_recipe **ret)
{
	size_t sources = recipe->n_sources * sizeof(recipe->sources[0]);
	size_t nodes = recipe->n_nodes * sizeof(recipe->nodes[0]);
	struct packed_recipe *p;

	assert(recipe->n_sources <= PP_TERMS_MAX && recipe->n_nodes <= PP_FILTER_NODES_MAX);
	p = malloc(sizeof(*p) + sources + nodes);
	if (!p)
		return -ENOMEM;
	p->n_sources = recipe->n_sources;
	p->n_nodes = recipe->n_nodes;
	memcpy(p->bytes, recipe->sources, sources);
	memcpy(p->bytes + sources, recipe->nodes, nodes);
	*ret = p;
	return 0;
}

void recipe_unpack(const struct packed_recipe *packed, struct pp_recipe *ret)
{
	size_t sources;

	memset(ret, 0, sizeof(*ret));
	if (!packed)
		return;
	sources = packed->n_sources * sizeof(ret->sources[0]);
	ret->n_sources = packed->n_sources;
	ret->n_nodes = packed->n_nodes;
	memcpy(ret->sources, packed->bytes, sources);
	memcpy(ret->nodes, packed->bytes + sources, packed->n_nodes * sizeof(ret->nodes[0]));
}
