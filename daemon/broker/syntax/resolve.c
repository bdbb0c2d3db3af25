// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * From request to spec and parsed event: names, CPUs and buffer. resolve-texts.c has texts and filters,
 * resolve-manner.c how it is recorded. Must not know peers, rights or the registry.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/syntax/resolve-internal.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

#define FLAGS_KNOWN                                                                              \
	(PP_EVENT_FREQ | PP_EVENT_CHAINS | PP_EVENT_GENERIC | PP_EVENT_WAKEUP | PP_EVENT_SHARE | \
	 PP_EVENT_NO_SHARE | PP_EVENT_BOOT | PP_EVENT_CHECKPOINT | PP_EVENT_PROGRAM)
/* The flags that remain part of the event. */
#define DESCRIBING \
	(PP_EVENT_FREQ | PP_EVENT_CHAINS | PP_EVENT_GENERIC | PP_EVENT_WAKEUP | PP_EVENT_CHECKPOINT)

int resolve_refuse(struct draft *d, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(d->sentence, d->size, fmt, ap);
	va_end(ap);
	return error;
}

static int take_names(struct draft *d)
{
	if (!pp_name_is_valid(d->request->ns))
		return refuse(d, -EINVAL,
			      "'%s' cannot be a namespace's name; take letters, digits, '_' and "
			      "'-', beginning with a letter or '_', 63 at most.",
			      d->request->ns);
	if (strcmp(d->request->ns, PP_BY_ID) == 0)
		return refuse(d, -EINVAL,
			      "No namespace can be named '" PP_BY_ID
			      "': the registry keeps its links by id there; take another name.");
	if (!pp_name_is_valid(d->request->name))
		return refuse(d, -EINVAL,
			      "'%s' cannot be an event's name; take letters, digits, '_' and '-', "
			      "beginning with a letter or '_', 63 at most.",
			      d->request->name);
	memcpy(d->spec.ns, d->request->ns, sizeof(d->spec.ns));
	memcpy(d->spec.name, d->request->name, sizeof(d->spec.name));
	return 0;
}

/* ── CPUs and buffer ────────────────────────────────────────────────────────────────────── */

/* The CPUs of a that are not in b. Returns whether there are any. */
static bool without(const struct pp_cpumask *a, const struct pp_cpumask *b, struct pp_cpumask *ret)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(ret->bits); i++) {
		ret->bits[i] = a->bits[i] & ~b->bits[i];
		any |= ret->bits[i] != 0;
	}
	return any;
}

/* Parses the list; an empty one means all CPUs. */
static int read_cpus(struct draft *d, struct pp_cpumask *ret)
{
	int r;

	if (d->request->cpus[0] == '\0') {
		d->spec.flags |= PP_EVENT_ALL_CPUS;
		return 0;
	}
	r = pp_parse_cpus(d->request->cpus, ret);
	if (r < 0)
		return refuse(d, -EINVAL, "'%.64s' is not a list of CPUs%s; write one like 0-3,8.",
			      d->request->cpus, r == -ERANGE ? " that Linux can have" : "");
	return 0;
}

static int take_cpus(struct draft *d)
{
	struct pp_cpumask cpus, bad;
	char list[128], others[128];
	int r = read_cpus(d, &cpus);

	if (r < 0 || d->spec.flags & PP_EVENT_ALL_CPUS)
		return r;
	if (without(&cpus, &d->machine->possible, &bad)) {
		pp_format_cpus(&bad, list, sizeof(list));
		pp_format_cpus(&d->machine->possible, others, sizeof(others));
		return refuse(d, -EINVAL, "This machine cannot have CPU %s; its CPUs are %s.", list,
			      others);
	}
	if (without(&cpus, &d->machine->online, &bad)) {
		pp_format_cpus(&bad, list, sizeof(list));
		pp_format_cpus(&d->machine->online, others, sizeof(others));
		return refuse(d, -ENODEV,
			      "CPU %s is offline, and cannot record; bring it online, or choose "
			      "from those that are: %s.",
			      list, others);
	}
	d->spec.cpus = cpus;
	return 0;
}

static int take_buffer(struct draft *d, uint64_t wanted, uint64_t max_buffer)
{
	uint64_t size = PP_DATA_SIZE_MIN;

	if (wanted == 0)
		wanted = RESOLVE_DATA_SIZE;
	if (wanted > PP_DATA_SIZE_MAX)
		return refuse(d, -EINVAL,
			      "A buffer of %" PRIu64 " bytes per CPU is more than the %llu that a "
			      "ring can have; ask for less.",
			      wanted, PP_DATA_SIZE_MAX);
	while (size < wanted)
		size *= 2;
	if (size > max_buffer)
		return refuse(d, -EDQUOT,
			      "A buffer of %" PRIu64
			      " bytes per CPU is over this daemon's limit of "
			      "%" PRIu64 "; ask for less, or have MaxBuffer= raised.",
			      size, max_buffer);
	d->spec.data_size = size;
	return 0;
}

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

static int refuse_checkpoint(struct draft *d, uint32_t flags)
{
	return refuse(d, -EINVAL, "Checkpoints every %u s are too rare; give %d s or less.",
		      pp_event_checkpoint(flags), PP_CHECKPOINT_MAX);
}

static int check_flags(struct draft *d)
{
	uint32_t flags = d->request->flags;

	if (flags & ~FLAGS_KNOWN)
		return refuse(d, -EINVAL,
			      "The request has flags (%#x) that this version does not know; use a "
			      "client of the same version.",
			      flags);
	if (pp_event_checkpoint(flags) > PP_CHECKPOINT_MAX)
		return refuse_checkpoint(d, flags);
	if (flags & PP_EVENT_SHARE && flags & PP_EVENT_NO_SHARE)
		return refuse(d, -EINVAL,
			      "The request both asks for sharing and forbids it: choose one.");
	return 0;
}

int resolve_names(const struct pp_msg_create_request *request, struct pp_spec *ret, char *sentence,
		  size_t size)
{
	struct draft d = { .request = request, .sentence = sentence, .size = size };
	int r = take_names(&d);

	if (r < 0)
		return r;
	memcpy(ret->ns, d.spec.ns, sizeof(ret->ns));
	memcpy(ret->name, d.spec.name, sizeof(ret->name));
	return 0;
}

/* A process that its events cannot be bound to becomes a part of their filters. */
static int take_selections(struct draft *d, struct pp_msg_create_request *filtered)
{
	int r = resolve_check_target(d);

	if (r >= 0)
		r = resolve_take_selections(d);
	if (r >= 0)
		r = resolve_bind(d, filtered);
	if (r <= 0)
		return r;
	memset(d->spec.event, 0, sizeof(d->spec.event));
	memset(d->spec.filter, 0, sizeof(d->spec.filter));
	return resolve_take_selections(d);
}

int resolve(const struct pp_msg_create_request *request, const struct machine *machine,
	    uint64_t max_buffer, struct pp_spec *ret, struct pp_parsed *ret_parsed, char *sentence,
	    size_t size)
{
	_cleanup_free_ struct pp_msg_create_request *filtered = malloc(sizeof(*filtered));
	struct draft d = {
		.request = request,
		.machine = machine,
		.parsed = ret_parsed,
		.sentence = sentence,
		.size = size,
	};
	int r = filtered ? check_flags(&d)
			 : refuse(&d, -ENOMEM, "The daemon has no memory for the request.");

	if (r >= 0)
		r = take_names(&d);
	if (r >= 0)
		r = take_cpus(&d);
	if (r >= 0)
		r = take_buffer(&d, request->data_size, max_buffer);
	if (r >= 0)
		r = take_selections(&d, filtered);
	if (r >= 0)
		r = resolve_take_manner(&d);
	if (r < 0)
		return r;
	/* The engine accepts nothing else, and would close the link. */
	if (pp_spec_check(&d.spec) < 0 || pp_parsed_check(ret_parsed, true) < 0)
		return refuse(&d, -EINVAL,
			      "%s/%s has something in its texts or numbers that no event can have; "
			      "write it more simply.",
			      request->ns, request->name);
	*ret = d.spec;
	return 0;
}

int resolve_outline(const struct pp_msg_create_request *request, uint64_t max_buffer,
		    struct pp_spec *ret, char *sentence, size_t size)
{
	struct draft d = { .request = request, .sentence = sentence, .size = size };
	int r = check_flags(&d);

	if (r >= 0)
		r = take_names(&d);
	if (r >= 0)
		r = read_cpus(&d, &d.spec.cpus);
	if (r >= 0)
		r = take_buffer(&d, request->data_size, max_buffer);
	if (r >= 0)
		r = resolve_join_texts(&d);
	if (r < 0)
		return r;
	d.spec.flags |= request->flags & DESCRIBING;
	if (request->target.kind)
		d.spec.flags |= PP_EVENT_BOUND;
	if (request->stack_user)
		d.spec.flags |= PP_EVENT_USER_STACK;
	d.spec.period = request->period;
	d.spec.max_rate = resolve_rate_limit(request->max_rate);
	d.spec.max_stack = (uint16_t)MIN(request->max_stack, (uint32_t)UINT16_MAX);
	d.spec.stack_user = (uint16_t)MIN(request->stack_user, (uint32_t)UINT16_MAX);
	*ret = d.spec;
	return 0;
}

static int check_change(struct draft *d, const struct pp_msg_change_request *request)
{
	uint32_t flags = PP_EVENT_CHECKPOINT;

	if (request->what & PP_CHANGE_PERIOD)
		flags |= PP_EVENT_FREQ;
	if (request->what & ~PP_CHANGES || request->flags & ~flags)
		return refuse(d, -EINVAL,
			      "The request is for changes (%#x) that this version does not know; "
			      "use a client of the same version.",
			      request->what);
	if (pp_event_checkpoint(request->flags) > PP_CHECKPOINT_MAX)
		return refuse_checkpoint(d, request->flags);
	if (!request->what)
		return refuse(
			d, -EINVAL,
			"Nothing is to be changed; name a filter, a buffer, a rate, a period or "
			"the time of checkpoints.");
	return 0;
}

int resolve_change(const struct pp_msg_change_request *request, const struct pp_spec *is,
		   const struct machine *machine, uint64_t max_buffer, struct pp_spec *ret,
		   struct pp_parsed *ret_parsed, char *sentence, size_t size)
{
	struct draft d = {
		.machine = machine,
		.parsed = ret_parsed,
		.sentence = sentence,
		.size = size,
	};
	uint32_t n;
	int r = check_change(&d, request);

	memset(ret_parsed, 0, sizeof(*ret_parsed));
	if (r >= 0 && request->what & PP_CHANGE_PERIOD) {
		r = resolve_change_period(&d, request, is);
		memset(ret_parsed, 0, sizeof(*ret_parsed));
	}
	if (r < 0)
		return r;
	if (request->what & PP_CHANGE_FILTER && request->filter[0])
		r = resolve_take_filter(&d, request->filter, &n);
	if (r >= 0 && request->what & PP_CHANGE_BUFFER)
		r = take_buffer(&d, request->data_size, max_buffer);
	if (r < 0)
		return r;
	if (request->what & PP_CHANGE_FILTER)
		memcpy(d.spec.filter, request->filter, sizeof(d.spec.filter));
	d.spec.max_rate = resolve_rate_limit(request->max_rate);
	d.spec.flags |= request->flags & PP_EVENT_CHECKPOINT;
	*ret = d.spec;
	return 0;
}
