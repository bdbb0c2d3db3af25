// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The target of a draft: a task or cgroup, whether its events can be bound to it, and the filter that a process becomes
 * if they cannot. Whether there is such a task or cgroup the engine finds out.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/syntax/resolve-internal.h"

#define FLAGS_KNOWN (PP_TARGET_NO_INHERIT | PP_TARGET_DELETE | PP_TARGET_OR_FILTER)

static const struct pp_msg_target none;

static int check_boot(struct draft *d)
{
	const struct pp_msg_target *t = &d->request->target;

	if (!(d->request->flags & PP_EVENT_BOOT))
		return 0;
	if (t->kind != PP_TARGET_CGROUP)
		return refuse(
			d, -EINVAL,
			"Task %u is not there after a reboot, so an event of it cannot be; leave "
			"out --boot, or record a cgroup (-G).",
			t->pid);
	if (t->flags & PP_TARGET_DELETE)
		return refuse(d, -EINVAL,
			      "An event that is deleted with its cgroup does not return after a "
			      "reboot; leave out --boot, or --on-exit delete.");
	return 0;
}

static int check_kind(struct draft *d)
{
	const struct pp_msg_target *t = &d->request->target;

	if (t->kind == PP_TARGET_CGROUP) {
		if (t->pid || t->start || t->flags & PP_TARGET_OR_FILTER || !*t->cgroup)
			return -EBADMSG;
		for (const char *c = t->cgroup; *c; c++)
			if (*c < 0x20 || *c > 0x7e)
				return refuse(d, -EINVAL,
					      "The cgroup's path has a character in it that is no "
					      "printable ASCII; events cannot be bound to it.");
		if (t->flags & PP_TARGET_NO_INHERIT)
			return refuse(d, -EINVAL,
				      "What the tasks of a cgroup create is in the cgroup, so "
				      "--no-inherit is for -p and -t.");
		return 0;
	}
	if ((t->kind != PP_TARGET_PROCESS && t->kind != PP_TARGET_THREAD) || !t->pid ||
	    t->pid > INT32_MAX || *t->cgroup)
		return -EBADMSG;
	return 0;
}

int resolve_check_target(struct draft *d)
{
	const struct pp_msg_target *t = &d->request->target;
	int r;

	if (memcmp(t, &none, sizeof(none)) == 0)
		return 0;
	r = t->reserved || t->flags & ~FLAGS_KNOWN ? -EBADMSG : check_kind(d);
	if (r == -EBADMSG)
		return refuse(
			d, -EINVAL,
			"The request is about a task or cgroup in a way that this version does "
			"not know; use a client of the same version.");
	return r < 0 ? r : check_boot(d);
}

/* ── events that cannot be bound ────────────────────────────────────────────────────────── */

/* Programs on these run for all tasks, whatever their perf event is for. NULL: all can be bound. */
static const struct pp_source *find_other(const struct pp_parsed *parsed)
{
	for (uint32_t i = 0; i < parsed->n_sources; i++)
		if (parsed->sources[i].kind != PP_SOURCE_SAMPLING)
			return &parsed->sources[i];
	return NULL;
}

static int refuse_other(struct draft *d, const struct pp_source *other)
{
	const struct pp_msg_target *t = &d->request->target;
	char filter[PP_CGROUP_SIZE + 32];

	if (t->kind == PP_TARGET_CGROUP)
		snprintf(filter, sizeof(filter), "CGROUP == \"%s\"", t->cgroup);
	else
		snprintf(filter, sizeof(filter), "%s == %u",
			 t->kind == PP_TARGET_PROCESS ? "PID" : "TID", t->pid);
	if (other->kind == PP_SOURCE_AUX)
		return refuse(
			d, -EOPNOTSUPP,
			"'%.100s' traces into an AUX area of each CPU, whatever runs there; leave out "
			"the task or cgroup, and select when you read it.",
			other->text);
	return refuse(d, -EOPNOTSUPP,
		      "'%.100s' does not count: the kernel runs a program there for all tasks, so "
		      "binding it to one would make it no cheaper, and nothing is inherited; use "
		      "--filter '%s'.",
		      other->text, filter);
}

/* "PID == 12 && (FILTER)" */
static int filter_one(struct draft *d, struct pp_msg_selection *s)
{
	char text[PP_FILTER_SIZE];
	int n = snprintf(text, sizeof(text), s->filter[0] ? "PID == %u && (%s)" : "PID == %u",
			 d->request->target.pid, s->filter);

	if (n < 0 || (size_t)n >= sizeof(text))
		return refuse(d, -E2BIG,
			      "The filter's text is too long: with the process it can have %d "
			      "bytes.",
			      PP_FILTER_SIZE - 1);
	memcpy(s->filter, text, sizeof(s->filter));
	return 0;
}

int resolve_bind(struct draft *d, struct pp_msg_create_request *filtered)
{
	const struct pp_msg_target *t = &d->request->target;
	const struct pp_source *other;
	int r = 0;

	if (!t->kind)
		return 0;
	other = find_other(d->parsed);
	if (!other) {
		d->spec.flags |= PP_EVENT_BOUND;
		return 0;
	}
	if (t->flags != PP_TARGET_OR_FILTER || t->kind != PP_TARGET_PROCESS)
		return refuse_other(d, other);
	*filtered = *d->request;
	for (uint32_t i = 0; r >= 0 && i < filtered->count; i++)
		r = filter_one(d, &filtered->selections[i]);
	d->request = filtered;
	return r < 0 ? r : 1;
}

void resolve_target(const struct pp_msg_create_request *request, const struct pp_spec *spec,
		    struct pp_msg_target *ret)
{
	*ret = none;
	if (!(spec->flags & PP_EVENT_BOUND))
		return;
	*ret = request->target;
	ret->flags &= ~PP_TARGET_OR_FILTER;
}

bool resolve_is_same_target(const struct pp_msg_create_request *request,
			    const struct pp_msg_target *is)
{
	const struct pp_msg_target *t = &request->target;
	const char *last = strrchr(is->cgroup, '/');

	if (t->kind != is->kind || (t->flags ^ is->flags) & PP_TARGET_DELETE || t->pid != is->pid)
		return false;
	if (t->kind != PP_TARGET_CGROUP || strcmp(t->cgroup, is->cgroup) == 0)
		return true;
	return !strchr(t->cgroup, '/') && last && strcmp(t->cgroup, last + 1) == 0;
}
