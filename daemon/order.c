// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks orders. The engine runs it on orders as if their sender were hostile, and on what recovery
 * finds in pins. Pure; the event's text is checked as text, never parsed. order-sources.c checks what an
 * event consists of. */
#include "daemon/order.h"

#include <errno.h>
#include <string.h>

#include "daemon/order-internal.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

#define FLAGS_KNOWN                                                                       \
	(PP_EVENT_FREQ | PP_EVENT_CHAINS | PP_EVENT_ALL_CPUS | PP_EVENT_GENERIC |         \
	 PP_EVENT_WAKEUP | PP_EVENT_CONFIGURED | PP_EVENT_TRIGGER | PP_EVENT_CHECKPOINT | \
	 PP_EVENT_PROGRAM | PP_EVENT_ADOPTED | PP_EVENT_BOUND | PP_EVENT_USER_STACK |     \
	 PP_EVENT_AUX | PP_EVENT_AUX_GROUP)

/* ── text ───────────────────────────────────────────────────────────────────────────────── */

bool order_is_terminated(const char *field, size_t size)
{
	return strnlen(field, size) < size;
}

static bool name_is_good(const char *field)
{
	return order_is_terminated(field, PP_NAME_SIZE) && pp_name_is_valid(field);
}

bool order_is_printable(const char *field, size_t size)
{
	if (!order_is_terminated(field, size))
		return false;
	for (; *field; field++)
		if (*field < 0x20 || *field > 0x7e)
			return false;
	return true;
}

/* The same, but text of any language is allowed. */
static bool filter_text_is_good(const char *field)
{
	if (!order_is_terminated(field, PP_FILTER_SIZE))
		return false;
	for (; *field; field++)
		if ((unsigned char)*field < 0x20 || *field == 0x7f)
			return false;
	return true;
}

/* ── specs ──────────────────────────────────────────────────────────────────────────────── */

static bool cpumask_is_empty(const struct pp_cpumask *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(m->bits); i++)
		if (m->bits[i])
			return false;
	return true;
}

static bool data_size_is_good(uint64_t size)
{
	return size >= PP_DATA_SIZE_MIN && size <= PP_DATA_SIZE_MAX && !(size & (size - 1));
}

static bool namespace_is_good(const char *ns)
{
	return name_is_good(ns) && strcmp(ns, PP_BY_ID) != 0;
}

/* chown(2) with an id of -1 would leave files to root. */
static bool rights_are_good(const struct pp_spec *spec)
{
	return spec->owner != UINT32_MAX && spec->group != UINT32_MAX && spec->mode <= 0777;
}

/* The part of a spec that belongs to the name, not to what is recorded. */
static bool identity_is_good(const struct pp_spec *spec)
{
	return namespace_is_good(spec->ns) && name_is_good(spec->name) && rights_are_good(spec) &&
	       spec->creator != UINT32_MAX && !(spec->flags & ~FLAGS_KNOWN);
}

/* Nothing of what our programs do. */
static bool aux_spec_is_good(const struct pp_spec *spec)
{
	uint32_t flags = PP_EVENT_AUX | PP_EVENT_ALL_CPUS | PP_EVENT_CONFIGURED;
	bool is_group = spec->flags & PP_EVENT_AUX_GROUP;

	if (is_group)
		flags |= PP_EVENT_AUX_GROUP | PP_EVENT_FREQ | PP_EVENT_CHAINS;
	return !(spec->flags & ~flags) && spec->data_size >= PP_AUX_SIZE_MIN &&
	       spec->data_size <= PP_AUX_SIZE_MAX && !*spec->filter && !spec->max_rate &&
	       (is_group || !spec->samples);
}

int pp_spec_check(const struct pp_spec *spec)
{
	bool all_cpus = spec->flags & PP_EVENT_ALL_CPUS;

	if (!identity_is_good(spec) || !data_size_is_good(spec->data_size))
		return -EBADMSG;
	if (!*spec->event || !order_is_printable(spec->event, PP_EVENT_TEXT_SIZE) ||
	    !filter_text_is_good(spec->filter))
		return -EBADMSG;
	/* The kernel keeps the period's top bit for itself. */
	if (pp_event_checkpoint(spec->flags) > PP_CHECKPOINT_MAX || spec->period > INT64_MAX ||
	    (!spec->period && spec->flags & PP_EVENT_FREQ) ||
	    !pp_event_chains_are_good(spec->flags))
		return -EBADMSG;
	if (spec->flags & (PP_EVENT_AUX | PP_EVENT_AUX_GROUP) && !aux_spec_is_good(spec))
		return -EBADMSG;
	if (spec->max_stack &&
	    (!(spec->flags & PP_EVENT_CALLCHAIN) || spec->max_stack > PP_MAX_STACK))
		return -EBADMSG;
	if (!pp_event_stack_is_good(spec->flags, spec->stack_user) ||
	    !(spec->flags & PP_EVENT_USER_STACK) != !spec->stack_user)
		return -EBADMSG;
	return cpumask_is_empty(&spec->cpus) == all_cpus ? 0 : -EBADMSG;
}

static bool task_is_good(const struct pp_msg_target *t)
{
	return t->pid > 0 && t->pid <= INT32_MAX && !*t->cgroup;
}

/* A cgroup's tasks inherit nothing: what they create is in the cgroup. */
static bool cgroup_is_good(const struct pp_msg_target *t)
{
	return !t->pid && *t->cgroup && order_is_printable(t->cgroup, sizeof(t->cgroup)) &&
	       !(t->flags & PP_TARGET_NO_INHERIT);
}

int pp_target_check(const struct pp_msg_target *target, const struct pp_spec *spec)
{
	static const struct pp_msg_target none;
	bool good;

	if (!(spec->flags & PP_EVENT_BOUND))
		return memcmp(target, &none, sizeof(none)) == 0 ? 0 : -EBADMSG;
	switch (target->kind) {
	case PP_TARGET_PROCESS:
	case PP_TARGET_THREAD:
		good = task_is_good(target);
		break;
	case PP_TARGET_CGROUP:
		good = cgroup_is_good(target);
		break;
	default:
		good = false;
	}
	return good && !target->reserved &&
			       !(target->flags & ~(PP_TARGET_NO_INHERIT | PP_TARGET_DELETE))
		       ? 0
		       : -EBADMSG;
}

int pp_event_check(const struct pp_event *event)
{
	/* Source ids have 52 bits for the event's id. */
	if (!event->id || event->id >> 52 || !event->origin || event->origin >> 52 ||
	    event->shares == event->id)
		return -EBADMSG;
	if (event->recorder < PP_RECORDER_GENERIC || event->recorder > PP_RECORDER_AUX)
		return -EBADMSG;
	if (event->header_size < PP_RING_PAGE || event->header_size > PP_DATA_SIZE_MAX ||
	    event->spill_size > PP_SPILL_SIZE_MAX)
		return -EBADMSG;
	if (event->n_sources == 0 || event->n_sources > PP_SOURCES_MAX || event->set == 0 ||
	    event->paused > 1)
		return -EBADMSG;
	if ((event->recorder == PP_RECORDER_AUX) != !!(event->spec.flags & PP_EVENT_AUX))
		return -EBADMSG;
	return pp_spec_check(&event->spec);
}

/* ── orders ─────────────────────────────────────────────────────────────────────────────── */

size_t pp_order_size(uint32_t type)
{
	return type == PP_ORDER_CREATE || type == PP_ORDER_ADOPT || type == PP_ORDER_CHANGE
		       ? sizeof(struct pp_order)
		       : offsetof(struct pp_order, parsed);
}

static bool has_kind(const struct pp_parsed *parsed, enum pp_source_kind kind)
{
	for (uint32_t i = 0; i < parsed->n_sources; i++)
		if (parsed->sources[i].kind == kind)
			return true;
	return false;
}

static bool is_key(const char key[PP_KEY_FIELD_SIZE])
{
	return *key && order_is_printable(key, PP_KEY_FIELD_SIZE);
}

static bool condition_is_good(const struct pp_condition *c)
{
	switch (c->kind) {
	case PP_CONDITION_NONE:
		return true;
	case PP_CONDITION_PAIR:
		return c->n_on > 0 && c->n_on < PP_TERMS_MAX && c->until_at > 0 &&
		       c->until_at < PP_EVENT_TEXT_SIZE && c->longer_than > 0 &&
		       c->longer_than <= INT64_MAX && is_key(c->key[0]) && is_key(c->key[1]);
	case PP_CONDITION_RATE:
		return c->rate < UINT32_MAX && c->seconds > 0 && c->seconds <= PP_RATE_SECONDS_MAX;
	default:
		return false;
	}
}

/* Within its hold-off a trigger does not fire, so the next window begins after the last. */
static bool window_is_good(const struct pp_trigger_spec *trigger)
{
	if (!trigger->after)
		return !trigger->after_records;
	return trigger->after <= MIN(trigger->hold_off, (uint64_t)PP_AFTER_MAX) &&
	       trigger->after_records <= PP_AFTER_RECORDS_MAX;
}

/* Notifying freezes nothing, and pausing stops at once. */
static bool action_is_good(const struct pp_trigger_spec *trigger)
{
	if (trigger->action >= PP_ACTIONS ||
	    !*trigger->targets != (trigger->action == PP_ACTION_NOTIFY))
		return false;
	return trigger->action < PP_ACTION_PAUSE || !trigger->after;
}

int pp_trigger_check(const struct pp_trigger_spec *trigger)
{
	if (!order_is_printable(trigger->targets, sizeof(trigger->targets)) ||
	    !action_is_good(trigger) || !condition_is_good(&trigger->condition))
		return -EBADMSG;
	if (trigger->hold_off < PP_HOLD_OFF_MIN || trigger->hold_off > INT64_MAX)
		return -EBADMSG;
	return window_is_good(trigger) ? 0 : -EBADMSG;
}

/* Only sampling events have periods and call chains; only tracepoints have a choice of recorder. */
static int check_create(const struct pp_spec *spec, const struct pp_parsed *parsed,
			const struct pp_trigger_spec *trigger, uint32_t program)
{
	if (!(spec->flags & PP_EVENT_PROGRAM) != !program)
		return -EBADMSG;
	if (spec->flags & PP_EVENT_TRIGGER && pp_trigger_check(trigger) < 0)
		return -EBADMSG;
	if (pp_spec_check(spec) < 0 || pp_parsed_check(parsed, true) < 0)
		return -EBADMSG;
	if (spec->flags & PP_EVENT_TRIGGER && trigger->condition.kind == PP_CONDITION_PAIR &&
	    trigger->condition.n_on >= parsed->n_sources)
		return -EBADMSG;
	if ((has_kind(parsed, PP_SOURCE_SAMPLING) || spec->flags & PP_EVENT_AUX) !=
	    (spec->period > 0))
		return -EBADMSG;
	if (!order_group_is_good(parsed, spec->flags))
		return -EBADMSG;
	if (spec->flags & PP_EVENT_GENERIC && !has_kind(parsed, PP_SOURCE_TRACEPOINT))
		return -EBADMSG;
	if (program && parsed->n_sources != 1)
		return -EBADMSG;
	return 0;
}

/* Programs on other events run for all tasks. */
static bool binding_is_good(const struct pp_order *o)
{
	if (pp_target_check(&o->target, &o->spec) < 0 ||
	    (o->spec.flags & PP_EVENT_BOUND && o->spec.flags & PP_EVENT_TRIGGER))
		return false;
	for (uint32_t i = 0; o->spec.flags & PP_EVENT_BOUND && i < o->parsed.n_sources; i++)
		if (o->parsed.sources[i].kind != PP_SOURCE_SAMPLING)
			return false;
	return true;
}

/* Its creator's perf events are of one kind; probes are not handed over. */
static int check_adopt(const struct pp_order *o)
{
	uint32_t kind = o->parsed.sources[0].kind;

	if (!(o->spec.flags & PP_EVENT_ADOPTED) || o->parsed.n_sources != 1 || o->what ||
	    o->spec.flags & (PP_EVENT_TRIGGER | PP_EVENT_PROGRAM | PP_EVENT_BOUND) ||
	    (kind != PP_SOURCE_TRACEPOINT && kind != PP_SOURCE_SAMPLING))
		return -EBADMSG;
	return check_create(&o->spec, &o->parsed, &o->trigger, 0);
}

static int check_change(const struct pp_order *o)
{
	if (!o->id || !o->what || o->what & ~PP_CHANGES)
		return -EBADMSG;
	if (o->what & PP_CHANGE_BUFFER && !data_size_is_good(o->spec.data_size))
		return -EBADMSG;
	if (o->what & PP_CHANGE_PERIOD && (!o->spec.period || o->spec.period > INT64_MAX))
		return -EBADMSG;
	if (!filter_text_is_good(o->spec.filter))
		return -EBADMSG;
	return pp_parsed_check(&o->parsed, false);
}

/* CPUs, or the iterators, or both; all other fields are unused. */
static bool sideband_is_good(const struct pp_order *o)
{
	static const struct pp_spec none;
	unsigned n = pp_cpumask_count(&o->spec.cpus);

	return !o->id && !(o->what & ~PP_SIDEBAND_TASKS) && n <= PP_SIDEBAND_CPUS &&
	       (n > 0 || o->what) && !memcmp(&o->spec, &none, offsetof(struct pp_spec, cpus));
}

int pp_order_check(const struct pp_order *order)
{
	bool good;

	if (order->abi != PP_ORDER_ABI)
		return -EBADMSG;
	switch (order->type) {
	case PP_ORDER_ENUMERATE:
		return 0;
	case PP_ORDER_CREATE:
		if (check_create(&order->spec, &order->parsed, &order->trigger, order->what) < 0)
			return -EBADMSG;
		good = !(order->spec.flags & PP_EVENT_ADOPTED) && binding_is_good(order);
		break;
	case PP_ORDER_ADOPT:
		return check_adopt(order);
	case PP_ORDER_ATTACH:
		good = order->id && (order->what & ~PP_ATTACH_MORE) > 0 &&
		       (order->what & ~PP_ATTACH_MORE) <= PP_TARGETS_MAX;
		break;
	case PP_ORDER_CHANGE:
		return check_change(order);
	case PP_ORDER_DISARM:
	case PP_ORDER_RELEASE:
	case PP_ORDER_HANDOUT:
	case PP_ORDER_DESCRIBE:
		return order->id ? 0 : -EBADMSG;
	case PP_ORDER_DELETE:
		good = order->id && !(order->what & ~PP_DELETE_CLAIMED);
		break;
	case PP_ORDER_AIM:
		good = order->id && order->what <= PP_TARGETS_MAX;
		break;
	case PP_ORDER_PAUSE:
	case PP_ORDER_FIRE:
		good = order->id && order->what <= 1;
		break;
	case PP_ORDER_TURN:
		good = order->id && !(order->what & ~(PP_TURN_AGAIN | PP_TURN_STOPPED));
		break;
	case PP_ORDER_ARM:
		good = order->id && !(order->what & ~(PP_ARM_SWAP | PP_ARM_WINDOWS | PP_ARM_STOPS));
		break;
	case PP_ORDER_ALIAS:
		/* What fires are the rings' programs, not a second name for them. */
		good = order->id && identity_is_good(&order->spec) &&
		       !(order->spec.flags & (PP_EVENT_TRIGGER | PP_EVENT_BOUND));
		break;
	case PP_ORDER_CPUS:
		good = order->id && !cpumask_is_empty(&order->spec.cpus);
		break;
	case PP_ORDER_RIGHTS:
		good = namespace_is_good(order->spec.ns) && rights_are_good(&order->spec);
		break;
	case PP_ORDER_SIDEBAND:
		good = sideband_is_good(order);
		break;
	case PP_ORDER_AUX:
		good = order->id && !cpumask_is_empty(&order->spec.cpus) && order->what >= 1 &&
		       order->what <= PP_TERMS_MAX &&
		       pp_cpumask_count(&order->spec.cpus) * order->what <= PP_SIDEBAND_CPUS;
		break;
	default:
		good = false;
	}
	return good ? 0 : -EBADMSG;
}
