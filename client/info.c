// SPDX-License-Identifier: LGPL-2.1-or-later
/* Converts an event's description between its forms. Pure. */
#include "client/info.h"

#include <linux/perf_event.h>
#include <string.h>

#include "client/public.h"

_Static_assert((int)PERFPERSIST_RECORDER_GENERIC == (int)PP_RECORDER_GENERIC &&
		       (int)PERFPERSIST_RECORDER_TP_BTF == (int)PP_RECORDER_TP_BTF &&
		       (int)PERFPERSIST_RECORDER_OVERFLOW == (int)PP_RECORDER_OVERFLOW &&
		       (int)PERFPERSIST_RECORDER_PROBE == (int)PP_RECORDER_PROBE &&
		       (int)PERFPERSIST_RECORDER_AUX == (int)PP_RECORDER_AUX,
	       "recorders");
_Static_assert((int)PERFPERSIST_CREATING == (int)PP_EVENT_CREATING &&
		       (int)PERFPERSIST_RUNNING == (int)PP_EVENT_RUNNING &&
		       (int)PERFPERSIST_DELETING == (int)PP_EVENT_DELETING &&
		       (int)PERFPERSIST_PAUSED == (int)PP_EVENT_PAUSED &&
		       (int)PERFPERSIST_CHANGING == (int)PP_EVENT_CHANGING &&
		       (int)PERFPERSIST_FROZEN == (int)PP_EVENT_FROZEN,
	       "states");
_Static_assert(PERFPERSIST_FREQ == PP_EVENT_FREQ && PERFPERSIST_CALLCHAIN == PP_EVENT_CALLCHAIN &&
		       PERFPERSIST_ALL_CPUS == PP_EVENT_ALL_CPUS &&
		       PERFPERSIST_GENERIC == PP_EVENT_GENERIC &&
		       PERFPERSIST_WAKEUP == PP_EVENT_WAKEUP &&
		       PERFPERSIST_CONFIGURED == PP_EVENT_CONFIGURED &&
		       PERFPERSIST_SHARE == PP_EVENT_SHARE &&
		       PERFPERSIST_NO_SHARE == PP_EVENT_NO_SHARE &&
		       PERFPERSIST_BOOT == PP_EVENT_BOOT && PERFPERSIST_COPIES == PP_EVENT_COPIES &&
		       PERFPERSIST_CHECKPOINT(0xfff) == PP_EVENT_CHECKPOINT &&
		       PERFPERSIST_CHECKPOINT_MAX == PP_CHECKPOINT_MAX &&
		       PERFPERSIST_STOPPED == PP_EVENT_STOPPED && PERFPERSIST_AUX == PP_EVENT_AUX &&
		       PERFPERSIST_AUX_GROUP == PP_EVENT_AUX_GROUP &&
		       PERFPERSIST_PROGRAM == PP_EVENT_PROGRAM &&
		       PERFPERSIST_ADOPTED == PP_EVENT_ADOPTED &&
		       PERFPERSIST_BOUND == PP_EVENT_BOUND &&
		       PERFPERSIST_NO_KERNEL_CHAIN == PP_EVENT_NO_KERNEL_CHAIN &&
		       PERFPERSIST_NO_USER_CHAIN == PP_EVENT_NO_USER_CHAIN,
	       "flags");
_Static_assert((int)PERFPERSIST_TARGET_PROCESS == (int)PP_TARGET_PROCESS &&
		       (int)PERFPERSIST_TARGET_THREAD == (int)PP_TARGET_THREAD &&
		       (int)PERFPERSIST_TARGET_CGROUP == (int)PP_TARGET_CGROUP &&
		       PERFPERSIST_TARGET_NO_INHERIT == PP_TARGET_NO_INHERIT &&
		       PERFPERSIST_TARGET_DELETE == PP_TARGET_DELETE &&
		       PERFPERSIST_TARGET_OR_FILTER == PP_TARGET_OR_FILTER &&
		       PERFPERSIST_TARGET_ENDED == PP_TARGET_ENDED,
	       "targets");
_Static_assert((int)PERFPERSIST_ACTION_SNAPSHOT == (int)PP_ACTION_SNAPSHOT &&
		       (int)PERFPERSIST_ACTION_FREEZE == (int)PP_ACTION_FREEZE &&
		       (int)PERFPERSIST_ACTION_PAUSE == (int)PP_ACTION_PAUSE &&
		       (int)PERFPERSIST_ACTION_NOTIFY == (int)PP_ACTION_NOTIFY,
	       "actions");

void client_infos_done(struct client_infos *infos)
{
	free(infos->v);
	*infos = (struct client_infos){ 0 };
}

int client_infos_add(struct client_infos *infos, const struct perfpersist_info *info)
{
	if (!GROW(infos->v, infos->n))
		return client_fail(-ENOMEM, "cannot hold the list of events: out of memory");
	infos->v[infos->n++] = *info;
	return 0;
}

int client_info_check(const struct perfpersist_info *ret)
{
	if (SZ_IS_VALID(ret))
		return 0;
	return client_fail(-EINVAL,
			   "cannot fill in a struct perfpersist_info of %zu bytes: set its "
			   "sz to its size",
			   ret->sz);
}

int client_info_export(const struct perfpersist_info *info, struct perfpersist_info *ret)
{
	size_t sz = ret->sz;
	int r = client_info_check(ret);

	if (r < 0)
		return r;
	memcpy(ret, info, sizeof(*info));
	memset((char *)ret + sizeof(*info), 0, sz - sizeof(*info));
	ret->sz = sz;
	return 0;
}

/* Both fields have the same size, and the codec has checked the NUL. */
#define COPY_FIELD(to, from)                                                      \
	do {                                                                      \
		_Static_assert(sizeof(to) == sizeof(from), "fields of one size"); \
		memcpy(to, from, sizeof(to));                                     \
	} while (0)

void client_info_from_message(const struct pp_msg_event *m, struct perfpersist_info *ret)
{
	*ret = (struct perfpersist_info){
		.sz = sizeof(*ret),
		.id = m->id,
		.shares = m->shares,
		.recorder = m->recorder,
		.state = m->state,
		.sources = m->sources,
		.set = m->set,
		.buffer = m->data_size,
		.memory = m->memory,
		.sample_type = m->sample_type,
		.period = m->period,
		.max_rate = m->max_rate,
		.max_stack = m->max_stack,
		.stack_user = m->stack_user,
		.flags = m->flags,
		.owner = m->owner,
		.group = m->group,
		.mode = m->mode,
		.creator = m->creator,
		.created = m->created,
		.records = m->records,
		.bytes = m->bytes,
		.missed = m->missed,
		.limited = m->limited,
		/* a newer daemon's other values are unknown to us */
		.missed_unknown = m->missed_unknown && m->missed_unknown != PP_MISSED_AT_LEAST,
		.missed_at_least = m->missed_unknown == PP_MISSED_AT_LEAST,
		.lacking_error = m->lacking_error > 0 ? -m->lacking_error : 0,
		.target = m->target.kind,
		.target_flags = m->target.flags,
		.target_pid = m->target.pid,
	};
	COPY_FIELD(ret->target_cgroup, m->target.cgroup);
	COPY_FIELD(ret->ns, m->ns);
	COPY_FIELD(ret->name, m->name);
	COPY_FIELD(ret->event, m->event);
	COPY_FIELD(ret->filter, m->filter);
	COPY_FIELD(ret->cpus, m->cpus);
	COPY_FIELD(ret->away, m->away);
	COPY_FIELD(ret->lacking, m->lacking);
}

void client_info_to_message(const struct perfpersist_info *info, struct pp_msg_event *ret)
{
	*ret = (struct pp_msg_event){
		.id = info->id,
		.shares = info->shares,
		.recorder = info->recorder,
		.state = info->state,
		.sources = info->sources,
		.set = info->set,
		.data_size = info->buffer,
		.memory = info->memory,
		.sample_type = info->sample_type,
		.period = info->period,
		.max_rate = info->max_rate,
		.max_stack = info->max_stack,
		.stack_user = info->stack_user,
		.flags = info->flags,
		.owner = info->owner,
		.group = info->group,
		.mode = info->mode,
		.creator = info->creator,
		.created = info->created,
		.target.kind = info->target,
		.target.flags = info->target_flags,
		.target.pid = info->target_pid,
	};
	COPY_FIELD(ret->target.cgroup, info->target_cgroup);
	COPY_FIELD(ret->ns, info->ns);
	COPY_FIELD(ret->name, info->name);
	COPY_FIELD(ret->event, info->event);
	COPY_FIELD(ret->filter, info->filter);
	COPY_FIELD(ret->cpus, info->cpus);
}

void client_info_from_header(const struct pp_ring_header *h, struct perfpersist_info *ret)
{
	struct perf_event_attr attr = { 0 };

	memcpy(&attr, h->attr, MIN(h->attr_size, sizeof(attr)));
	*ret = (struct perfpersist_info){
		.sz = sizeof(*ret),
		.id = h->event_id,
		.recorder = h->recorder,
		.sources = MAX(h->n_sources, 1U),
		.set = MAX(h->set, 1U),
		.buffer = h->data_size,
		.sample_type = h->sample_type,
		.owner = UINT32_MAX,
		.group = UINT32_MAX,
		.creator = UINT32_MAX,
		.created = h->created,
		.missed_unknown = h->recorder != PP_RECORDER_OVERFLOW || h->n_sources > 1,
	};
	if (h->recorder == PP_RECORDER_OVERFLOW) {
		ret->period = attr.sample_period;
		ret->flags = attr.freq ? PERFPERSIST_FREQ : 0;
	}
	if (h->sample_type & PERF_SAMPLE_CALLCHAIN)
		ret->flags |= PERFPERSIST_CALLCHAIN |
			      (attr.exclude_callchain_kernel ? PERFPERSIST_NO_KERNEL_CHAIN : 0) |
			      (attr.exclude_callchain_user ? PERFPERSIST_NO_USER_CHAIN : 0);
	ret->max_stack = attr.sample_max_stack;
	ret->stack_user = attr.sample_stack_user;
	COPY_FIELD(ret->ns, h->ns);
	COPY_FIELD(ret->name, h->name);
	COPY_FIELD(ret->event, h->event);
}

bool client_name_is_valid(const char *name)
{
	static const char rest[] =
		"_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
	size_t n = strnlen(name, PP_NAME_SIZE);

	return n > 0 && n < PP_NAME_SIZE && strspn(name, rest) == n && name[0] != '-' &&
	       !(name[0] >= '0' && name[0] <= '9');
}

void client_format_cpus(const uint32_t *cpus, size_t n, char *buf, size_t size)
{
	size_t used = 0;

	buf[0] = 0;
	for (size_t i = 0, last; i < n; i = last + 1) {
		char range[32];
		int len;

		for (last = i; last + 1 < n && cpus[last + 1] == cpus[last] + 1;)
			last++;
		len = last == i ? snprintf(range, sizeof(range), "%s%u", used ? "," : "", cpus[i])
				: snprintf(range, sizeof(range), "%s%u-%u", used ? "," : "",
					   cpus[i], cpus[last]);
		if (used + (size_t)len >= size)
			return;
		memcpy(buf + used, range, (size_t)len + 1);
		used += (size_t)len;
	}
}
