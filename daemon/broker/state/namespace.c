// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns a single namespace's memory. policy.c decides on rights. */
#include "daemon/broker/state/namespace.h"

#include <assert.h>
#include <stdlib.h>

#include "daemon/text.h"

struct namespace *namespace_new(const char *name, uint32_t owner, uint32_t group, uint32_t mode)
{
	struct namespace *ns = calloc(1, sizeof(*ns));

	if (!ns)
		return NULL;
	if (pp_copy_text(ns->name, sizeof(ns->name), name) < 0)
		assert(!"a namespace's name was not checked");
	ns->owner = owner;
	ns->group = group;
	ns->mode = mode;
	return ns;
}

void namespace_free(struct namespace *ns)
{
	if (!ns)
		return;
	assert(ns->n_events == 0);
	free(ns);
}

bool namespace_differs(const struct namespace *ns, const struct pp_spec *made)
{
	return made->owner != ns->owner || made->group != ns->group || made->mode != ns->mode;
}
