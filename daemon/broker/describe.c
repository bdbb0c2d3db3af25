// SPDX-License-Identifier: LGPL-2.1-or-later
/* Puts together what the registry and the tree know of an event. Decides nothing. */
#include "daemon/broker/describe.h"

#include <string.h>

#include "daemon/broker/namespace.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"

void event_count(const char *registry, const struct event *e, struct tree_stat *ret)
{
	const struct pp_spec *spec = &e->truth.spec;
	int err;

	*ret = (struct tree_stat){ 0 };
	err = tree_stat_read(registry, spec->ns, spec->name, ret);
	/* Without the file nothing is known, which is not the same as nothing missed. */
	if (err < 0)
		ret->missed_unknown = true;
	if (err < 0 && e->state == PP_EVENT_RUNNING)
		log_debug("Cannot read the counts of %s/%s: %s.", spec->ns, spec->name,
			  strerror(-err));
	ret->missed_unknown |= e->truth.missed_unknown != 0;
}

void event_describe(const struct event *e, const struct tree_stat *stat, struct pp_msg_event *ret)
{
	const struct pp_event *t = &e->truth;

	*ret = (struct pp_msg_event){
		.id = t->id,
		.recorder = t->recorder,
		.state = e->state,
		.data_size = t->spec.data_size,
		.sample_type = t->sample_type,
		.period = t->spec.period,
		.flags = t->spec.flags,
		.owner = e->ns->owner,
		.group = e->ns->group,
		.mode = e->ns->mode,
		.created = t->created,
		.records = stat->records,
		.bytes = stat->bytes,
		.missed = stat->missed,
		.missed_unknown = stat->missed_unknown,
	};
	memcpy(ret->ns, t->spec.ns, sizeof(ret->ns));
	memcpy(ret->name, t->spec.name, sizeof(ret->name));
	memcpy(ret->event, t->spec.event, sizeof(ret->event));
	/* A list too long for its field is cut; OPEN names every CPU. */
	if (pp_format_cpus(&t->rings, ret->cpus, sizeof(ret->cpus)) < 0)
		log_debug("The CPUs of %s/%s do not fit into one list.", t->spec.ns, t->spec.name);
}
