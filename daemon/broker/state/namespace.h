/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A namespace: a name with an owner, a group and a mode, like a directory's, and a setting for live
 * rings. A configured namespace always exists; any other exists while it has events.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/order.h"
#include "proto/ring.h"

#define NAMESPACE_MODE 0640 /* the default */

/* The readers that get live rings; other readers get copies. Root always gets live rings. */
enum namespace_live {
	NAMESPACE_LIVE_GROUP = 0, /* owner and group; the default */
	NAMESPACE_LIVE_NOBODY,
	NAMESPACE_LIVE_OWNER,
	NAMESPACE_LIVE_READERS,
};

/* The users that may fire its triggers by hand; what these do is defined by who may write. */
enum namespace_fire {
	NAMESPACE_FIRE_WRITERS = 0, /* the default */
	NAMESPACE_FIRE_GROUP,	    /* owner and group, too */
	NAMESPACE_FIRE_READERS,
	NAMESPACE_FIRE_ALL,
};

struct namespace
{
	char name[PP_NAME_SIZE];
	uint32_t owner, group, mode;
	enum namespace_live live;
	enum namespace_fire fire;
	bool configured;
	size_t n_events;
	/* While ready.c looks at all tapes: whether an event may still get a tape of any firing, and when that fired
	 * for whose tape another one waits; UINT64_MAX: none does. */
	bool is_turning;
	uint64_t waits_for;
};

/* NULL: no memory. name is valid (pp_name_is_valid). */
struct namespace *namespace_new(const char *name, uint32_t owner, uint32_t group, uint32_t mode);
void namespace_free(struct namespace *ns);

/* Whether the engine gave what `made` is of other rights than the namespace has now. */
bool namespace_differs(const struct namespace *ns, const struct pp_spec *made);
