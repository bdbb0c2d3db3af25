// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/make-events.h"

#include <ctype.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/decode/sources.h"
#include "client/perfctl/events/suggest.h"
#include "client/perfctl/print/info.h"
#include "proto/call-graph.h"

int make_events_event(struct call *call, struct make_events *m, const char *event)
{
	if (m->n == MAKE_EVENTS_MAX)
		return bad_usage(call, "-e %s: -e can be given at most %d times", event,
				 MAKE_EVENTS_MAX);
	if (!*event)
		return bad_usage(call, "-e: the event is empty");
	m->events[m->n++].event = event;
	return EXIT_OK;
}

/* As in perf, a filter applies to the -e before it. */
static int take_filter(const struct given *g)
{
	struct make_events *m = g->to;

	if (!m->n)
		return refuse(
			g,
			"the event that it is for must precede it: -e EVENT, or --on EVENT of a trigger");
	if (m->events[m->n - 1].filter)
		return refuse(g, "an -e has one filter; write (A) && (B)");
	m->events[m->n - 1].filter = g->value;
	return EXIT_OK;
}

int make_events_rate(const struct given *g, uint64_t *period, uint32_t *flags)
{
	if (*period)
		return bad_usage(g->call,
				 "-c and -F are mutually exclusive; give one of them once");
	if (parse_number(g->value, period) < 0 || !*period)
		return refuse(g, "not a number above 0");
	*flags |= g->option->bits;
	return EXIT_OK;
}

static int take_rate(const struct given *g)
{
	struct perfpersist_create_options *o = g->to;

	return make_events_rate(g, &o->period, &o->flags);
}

static int take_chains(const struct given *g)
{
	struct perfpersist_create_options *o = g->to;
	uint32_t chains;
	int r = pp_parse_call_graph(g->value, &chains, &o->stack_user);

	if (r == -ERANGE)
		return refuse(g, "a stack of more than 65528 bytes");
	if (r < 0)
		return refuse(g, "neither kernel, user, both nor dwarf[,SIZE]");
	o->flags &= ~(uint32_t)(PERFPERSIST_NO_KERNEL_CHAIN | PERFPERSIST_NO_USER_CHAIN);
	o->flags |= chains;
	return EXIT_OK;
}

static int take_max_stack(const struct given *g)
{
	uint64_t entries;

	if (parse_number(g->value, &entries) < 0 || !entries || entries > UINT32_MAX)
		return refuse(g, NULL);
	*(uint32_t *)g->to = (uint32_t)entries;
	return EXIT_OK;
}

const struct verb_option make_events_options[] = {
	{ 0, "filter", "FILTER",
	  "record only what fits, for the event before it, in the syntax of perf and ftrace: "
	  "'prev_pid != 0 && comm ~ \"nginx*\"'",
	  .take = take_filter },
	{ 'a', "all-cpus", NULL, "record on all online CPUs; the default",
	  TAKE_FLAG(struct make_events, all_cpus) },
	{ 'm', "mmap-pages", "SIZE",
	  "the buffer of each CPU, or its AUX area: a number of pages, or a size with B, K, M, G; "
	  "rounded up to a power of two; default: 512K, of a trigger's own event 64K",
	  TAKE_VALUE(struct make_events, opts.buffer, parse_buffer_size, NOT_A_BUFFER_SIZE),
	  .completes = COMPLETE_WORDS, .words = BUFFER_SIZES },
	{ 'c', "count", "PERIOD", "sampling: a record every PERIOD events", .take = take_rate,
	  .to = offsetof(struct make_events, opts) },
	{ 'F', "freq", "FREQ", "sampling: FREQ records a second; default: 4000", .take = take_rate,
	  .to = offsetof(struct make_events, opts), .bits = PERFPERSIST_FREQ,
	  .completes = COMPLETE_WORDS, .words = FREQUENCIES },
	{ 'g', NULL, NULL, "with call chains, of kernel and user space",
	  TAKE_BITS(struct make_events, opts.flags, PERFPERSIST_CALLCHAIN) },
	{ 0, "call-graph", "HALF",
	  "with call chains: of the `kernel`, of the `user` space, or `both`; or `dwarf`[,SIZE]: of "
	  "the kernel, and SIZE bytes (8192) of each user stack, which perf unwinds",
	  .take = take_chains, .to = offsetof(struct make_events, opts),
	  .completes = COMPLETE_WORDS, .words = "kernel user both dwarf" },
	{ 0, "max-stack", "N",
	  "with -g: at most N entries of a call chain, the innermost; 1 to the kernel's "
	  "perf_event_max_stack, 127 at most",
	  .take = take_max_stack, .to = MEMBER(struct make_events, opts.max_stack, uint32_t),
	  .refusal = "not a number above 0", .completes = COMPLETE_WORDS, .words = "5 16 32" },
	{},
};

/* Tracepoints and probes have a format. A breakpoint has a period, and no frequency. */
static bool is_sampled(const struct source *s, bool freq)
{
	const struct perf_event_attr *attr = s->info.attr;

	return !s->info.format && !(freq && attr->type == PERF_TYPE_BREAKPOINT);
}

void make_events_print_sampled(struct perfpersist *p, const struct perfpersist_info *info)
{
	_cleanup_(cleanup_event) struct perfpersist_event *e = NULL;
	_cleanup_(sources_done) struct sources sources = {};
	bool freq = info->flags & PERFPERSIST_FREQ;
	size_t n = 0, told = 0;

	if (perfpersist_open(p, info->ns, info->name, &e) < 0 || sources_open(e, &sources) < 0)
		return;
	for (size_t i = 0; i < sources.n; i++)
		n += is_sampled(&sources.all[i], freq);
	if (n == sources.n)
		return;
	printf("; -%c is for ", freq ? 'F' : 'c');
	for (size_t i = 0; i < sources.n; i++)
		if (is_sampled(&sources.all[i], freq))
			printf("%s%s", told++ ? ", " : "", sources.all[i].name);
	printf("%s, and every occurrence of %s is recorded", n ? "" : "sampling events",
	       sources.n - n > 1 ? "the others" : "the other");
}

/*
 * sched:sched_switch is "sched_switch", cpu/event=0x3c/ is "cpu_event_0x3c": takes the name of a
 * tracepoint, else the whole text, with _ for characters that a name cannot have.
 */
static void name_after(const char *event, char *name, size_t size)
{
	const char *colon = strchr(event, ':');
	const char *text =
		colon && strlen(colon + 1) > 3 && !strpbrk(event, "/@=") ? colon + 1 : event;
	size_t n = 0;

	if (!isalpha((unsigned char)*text))
		name[n++] = '_';
	for (; *text && n < size - 4; text++) {
		if (isalnum((unsigned char)*text) || *text == '-' || *text == '_')
			name[n++] = *text;
		else if (n && name[n - 1] != '_')
			name[n++] = '_';
	}
	while (n > 1 && name[n - 1] == '_')
		n--;
	name[n] = '\0';
}

/* Appends a number to a name that is taken, so that a second call adds its events. */
static int make_one(struct perfpersist *p, const struct make_events *m, size_t i,
		    struct perfpersist_info *ret)
{
	struct perfpersist_create_options o = m->opts;
	char base[64], name[64];
	int r = -EEXIST;

	o.selections = &m->events[i];
	o.n_selections = 1;
	name_after(m->events[i].event, base, sizeof(base));
	strcpy(name, base);
	for (int n = 2; r == -EEXIST && n < 100; n++) {
		r = perfpersist_create(p, m->ns, name, &o, ret);
		snprintf(name, sizeof(name), "%.58s-%d", base, n);
	}
	return r;
}

void make_events_note_readers(const struct perfpersist_info *info)
{
	if (info->stack_user && (info->owner || info->mode & 044))
		complain("user stacks hold passwords and keys of all programs: who may read the "
			 "namespace %s (owner %u, group %u, mode %04o) reads them, too",
			 info->ns, info->owner, info->group, info->mode & 07777);
}

static void tell(const struct call *call, struct json *j, const struct perfpersist_info *info)
{
	if (call->json)
		return info_json(j, NULL, info);
	printf("%s/%s (id %" PRIu64 ") records ", info->ns, info->name, info->id);
	print_text(stdout, info->event, strlen(info->event));
	printf(" on CPUs %s, %s each\n", info->cpus, format_size(info->buffer).s);
}

int make_events_name(struct call *call, const struct make_events *m, const char *operand,
		     struct event_name *ret)
{
	if (m->all_cpus && m->opts.cpus)
		return bad_usage(call, "-a and -C are mutually exclusive");
	if (m->ns && strchr(operand, '/'))
		return bad_usage(call, "-n %s and %s both name a namespace; give one namespace",
				 m->ns, operand);
	if (parse_event_name(operand, m->ns, ret) < 0)
		return bad_usage(call,
				 "%s: not a valid name (letters, digits, _ and -, at most 63)",
				 operand);
	return EXIT_OK;
}

int make_events(struct call *call, struct perfpersist *p, const struct make_events *m)
{
	_cleanup_free_ struct perfpersist_info *made = calloc(m->n, sizeof(*made));
	struct json j = { .f = stdout };
	size_t n = 0;
	int code;

	if (!made)
		return EXIT_FAILED;
	for (; n < m->n; n++) {
		int r;

		made[n].sz = sizeof(made[n]);
		r = make_one(p, m, n, &made[n]);
		if (r >= 0)
			continue;
		code = suggest_recordable(p, r, &m->events[n], 1);
		while (n > 0)
			perfpersist_delete_by_id(p, made[--n].id, NULL);
		return code;
	}
	if (call->json)
		json_begin(&j, NULL, '[');
	for (size_t i = 0; i < n; i++)
		tell(call, &j, &made[i]);
	if (call->json) {
		json_end(&j, ']');
		putchar('\n');
	}
	fflush(stdout);
	make_events_note_readers(&made[0]);
	return EXIT_OK;
}
