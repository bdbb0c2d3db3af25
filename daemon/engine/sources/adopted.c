// SPDX-License-Identifier: LGPL-2.1-or-later
/* Takes over links. See adopted.h. */
#include "daemon/engine/sources/adopted.h"

#include <bpf/bpf.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/cpus.h"
#include "daemon/engine/kernel/perf.h"
#include "daemon/engine/registry/link-facts.h"
#include "proto/macro.h"

/* Linux 6.6's, which older headers lack; older kernels leave it 0. */
#define LINK_INFO_TRACEPOINT 5
#define LINK_INFO_EVENT 6

struct link_info {
	uint32_t type, id, prog_id, unused;
	uint32_t kind; /* LINK_INFO_*; 0: this kernel does not tell */
	uint32_t unused_too;
	union {
		struct {
			uint64_t name;
			uint32_t name_size;
		} tracepoint;
		struct {
			uint64_t config;
			uint32_t type;
		} event;
		uint64_t room[8];
	};
};

static unsigned max_links(void)
{
	int possible = pp_cpus_possible();

	return possible < 0 ? PP_ADOPTED_MAX : MAX((unsigned)possible, PP_ADOPTED_MAX);
}

int adopted_check_source(const struct sources *s, struct failure *f)
{
	const struct source *source = &s->v[0];

	if (s->n != 1)
		return fail(f, EINVAL,
			    "'%.100s' stands for %zu events, and perf events of one kind are "
			    "adopted; name one.",
			    source->spec->event, s->n);
	if (source->is_carried)
		return fail(
			f, EOPNOTSUPP,
			"On this kernel system calls are recorded at raw_syscalls:sys_enter and "
			"sys_exit; adopt perf events of these instead of '%.100s'.",
			source->spec->event);
	return 0;
}

/* ── one link ───────────────────────────────────────────────────────────────────────────── */

static int no_link(uint64_t id, int r, struct failure *f)
{
	if (r == -ENOENT)
		return fail(f, ENOENT,
			    "There is no BPF link with id %" PRIu64
			    ": it must be held until the event is adopted.",
			    id);
	return fail(f, -r, "Cannot open the BPF link with id %" PRIu64 ": %s.", id, strerror(-r));
}

static int program_id(int fd, uint32_t *ret)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	*ret = info.id;
	return 0;
}

static int link_info(int fd, struct link_info *ret, char *name, uint32_t name_size)
{
	uint32_t size = sizeof(*ret);

	*ret = (struct link_info){};
	if (bpf_obj_get_info_by_fd(fd, ret, &size) < 0)
		return -errno;
	if (ret->kind != LINK_INFO_TRACEPOINT)
		return 0;
	size = sizeof(*ret);
	ret->tracepoint.name = (uint64_t)(uintptr_t)name;
	ret->tracepoint.name_size = name_size;
	return bpf_obj_get_info_by_fd(fd, ret, &size) < 0 ? -errno : 0;
}

/* What the kernel tells of a perf event like this one, which is never enabled. */
static int look_at(struct perf_event_attr *attr, const struct perf_place *at, int entry,
		   struct link_info *ret)
{
	_cleanup_close_ int event = perf_open_at(attr, at), link = -EBADF;

	if (event < 0)
		return event;
	link = bpf_link_create(entry, event, BPF_PERF_EVENT, NULL);
	return link < 0 ? link : link_info(link, ret, NULL, 0);
}

/* The numbers that the kernel has for the source: it puts those of a PMU in the place of some that were
 * asked for. -errno: no such perf event can be opened now. */
static int find_numbers(const struct source *source, int entry, struct link_info *ret)
{
	/* Some are counted within a task only. */
	struct perf_place at = { .cpu = -1, .tid = 0, .cgroup = -EBADF };
	struct perf_event_attr attr = source->attr;
	struct pp_cpumask online;
	int r;

	*ret = (struct link_info){};
	/* Never those of a breakpoint, for which there may be no register left. */
	if (attr.type == PERF_TYPE_BREAKPOINT) {
		ret->kind = LINK_INFO_EVENT;
		ret->event.type = attr.type;
		ret->event.config = attr.config;
		return 0;
	}
	r = pp_cpus_read("online", &online);
	if (r < 0)
		return r;
	attr.disabled = 1;
	/* A precise perf event with half a chain takes no program that asks for chains. */
	attr.exclude_callchain_kernel = attr.exclude_callchain_user = 0;
	r = look_at(&attr, &at, entry, ret);
	at.tid = -1;
	/* Others on CPUs only; and not each of a hybrid machine's CPUs has it. */
	PP_CPUMASK_FOREACH(cpu, &online)
	{
		at.cpu = (int)cpu;
		r = r < 0 ? look_at(&attr, &at, entry, ret) : r;
	}
	return r;
}

/* What all of an adoption's links are compared with. */
struct taking {
	const struct source *source;
	int entry;
	struct link_info wanted;
	int no_wanted; /* -errno: why there is none */
	struct link_fact
		*facts; /* empty: this kernel does not let us look, and nobody is taken for dead */
	size_t n_facts;
	struct pins_draft *draft;
	struct failure *f;
};

/* k: which perf event it is about, as its creator counts them. */
static int check_event(const struct taking *t, const struct link_info *info, const char *name,
		       unsigned k)
{
	const struct source *source = t->source;
	const struct link_info *wanted = &t->wanted;
	struct failure *f = t->f;
	const char *text = source->parsed->text;

	if (info->kind == LINK_INFO_TRACEPOINT && source->tp && !strcmp(name, source->tp->name))
		return 0;
	if (info->kind == LINK_INFO_TRACEPOINT)
		return fail(f, EINVAL, "Perf event %u is of tracepoint %s, and not of '%s'.", k,
			    name, text);
	if (info->kind != LINK_INFO_EVENT)
		return 0;
	if (t->no_wanted < 0)
		return fail(
			f, EOPNOTSUPP,
			"Whether perf event %u counts '%s' cannot be checked: no such perf event "
			"can be opened to compare the two (%s).",
			k, text, strerror(-t->no_wanted));
	if (info->event.type == wanted->event.type && info->event.config == wanted->event.config)
		return 0;
	return fail(f, EINVAL,
		    "Perf event %u counts type %u, config %#" PRIx64
		    ", and '%s' is type %u, config %#" PRIx64 " for the kernel.",
		    k, info->event.type, (uint64_t)info->event.config, text, wanted->event.type,
		    (uint64_t)wanted->event.config);
}

static int check_link(const struct taking *t, int link, uint64_t id, unsigned k)
{
	struct link_info info;
	char name[PP_TP_NAME_SIZE] = "";
	uint32_t mine = 0;
	int r = program_id(t->entry, &mine);

	if (r >= 0)
		r = link_info(link, &info, name, sizeof(name));
	if (r < 0)
		return no_link(id, r, t->f);
	if (info.type != BPF_LINK_TYPE_PERF_EVENT || info.prog_id != mine)
		return fail(t->f, EACCES,
			    "The BPF link with id %" PRIu64
			    " is not between a perf event and the program of this adoption.",
			    id);
	return check_event(t, &info, name, k);
}

/* A dead perf event belongs to a task that has ended, or to a CPU that went offline. Of a checked link: who has
 * sent the id must not learn of others'. */
static int check_life(const struct link_fact *facts, size_t n, uint64_t id, unsigned k,
		      struct failure *f)
{
	const struct link_fact *fact = link_facts_find(facts, n, (uint32_t)id);

	if (fact && fact->inherited)
		return fail(
			f, EBUSY,
			"Perf event %u has been inherited by a thread or child of its task already, and "
			"would record that instead, whenever the kernel swaps the two; open it anew "
			"and have it adopted before the task forks, or record the task with -p.",
			k);
	if (!fact || fact->alive)
		return 0;
	return fail(f, ESRCH,
		    "Perf event %u is dead: its task has ended, or its CPU has gone offline since "
		    "it was opened.",
		    k);
}

static void taking_done(struct taking *t)
{
	free(t->facts);
}

static void taking_begin(struct taking *t, uid_t broker)
{
	if (!t->source->tp)
		t->no_wanted = find_numbers(t->source, t->entry, &t->wanted);
	if (!t->source->tp && link_facts_read(broker, &t->facts, &t->n_facts) < 0)
		t->n_facts = 0;
}

static int take_link(const struct taking *t, uint64_t id, unsigned k)
{
	_cleanup_close_ int link = -EBADF;
	char leaf[32] = "link0";
	int r;

	link = id > UINT32_MAX ? -ENOENT : bpf_link_get_fd_by_id((uint32_t)id);
	if (link < 0)
		return no_link(id, link, t->f);
	r = check_link(t, link, id, k);
	if (r >= 0)
		r = check_life(t->facts, t->n_facts, id, k, t->f);
	if (r < 0)
		return r;
	if (!t->source->tp)
		snprintf(leaf, sizeof(leaf), "link0+%u", k);
	r = pins_add(t->draft, link, leaf, 0, 0, 0600);
	return r < 0 ? fail(t->f, -r, "Cannot pin %s in the registry: %s.", leaf, strerror(-r)) : 0;
}

int adopted_take_links(const struct sources *s, int entry, const uint64_t *ids, unsigned n,
		       unsigned before, uid_t broker, struct pins_draft *draft, struct failure *f)
{
	_cleanup_(taking_done) struct taking t = {
		.source = &s->v[0],
		.entry = entry,
		.draft = draft,
		.f = f,
	};
	int r = 0;

	if (t.source->tp && before + n > 1)
		return fail(f, EINVAL,
			    "One perf event of tracepoint '%s' is adopted: the kernel runs its "
			    "program for all CPUs and tasks.",
			    t.source->parsed->text);
	if (before + n > max_links())
		return fail(f, E2BIG, "%u perf events are the most that one event can adopt here.",
			    max_links());
	taking_begin(&t, broker);
	for (unsigned i = 0; r >= 0 && i < n; i++)
		r = take_link(&t, ids[i], before + i);
	return r;
}
