// SPDX-License-Identifier: LGPL-2.1-or-later
/* Packs parsed events. Knows their sizes, not their meaning. */
#include "daemon/broker/lifecycle/parsed.h"

#include <assert.h>
#include <string.h>

#include "proto/macro.h"

struct packed_event {
	uint32_t n_sources, n_nodes;
	uint8_t bytes[]; /* the sources, then the nodes */
};

int parsed_pack(const struct pp_parsed *parsed, struct packed_event **ret)
{
	size_t sources = parsed->n_sources * sizeof(parsed->sources[0]);
	size_t nodes = parsed->n_nodes * sizeof(parsed->nodes[0]);
	struct packed_event *p;

	assert(parsed->n_sources <= PP_TERMS_MAX && parsed->n_nodes <= PP_FILTER_NODES_MAX);
	p = malloc(sizeof(*p) + sources + nodes);
	if (!p)
		return -ENOMEM;
	p->n_sources = parsed->n_sources;
	p->n_nodes = parsed->n_nodes;
	memcpy(p->bytes, parsed->sources, sources);
	memcpy(p->bytes + sources, parsed->nodes, nodes);
	*ret = p;
	return 0;
}

void parsed_unpack(const struct packed_event *packed, struct pp_parsed *ret)
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
