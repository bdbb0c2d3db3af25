// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A persistent event's life. Every step of a creation happens inside a draft that nobody
 * sees; the last one, a rename, makes it an event. Deletion is the same rename backward.
 */
#include "daemon/engine/event.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "daemon/cpus.h"
#include "daemon/engine/kernel.h"
#include "daemon/engine/meta.h"
#include "daemon/engine/overflow.h"
#include "daemon/engine/perf.h"
#include "daemon/engine/pins.h"
#include "daemon/engine/reaper.h"
#include "daemon/engine/recorder.h"
#include "daemon/engine/rings.h"
#include "daemon/engine/tree.h"
#include "daemon/log.h"
#include "daemon/text.h"

/* An event in the making; everything in it is released when the attempt is over. */
struct attempt {
	const struct pp_spec *spec;
	const struct recorder *recorder;
	struct tracepoint *tp; /* &tracepoint, or NULL: a sampling event */
	struct tracepoint tracepoint;
	struct perf_event_attr attr;
	struct pp_event event;
	struct rings rings;
	struct pins_draft draft;
	int program, meta;
	uid_t broker;
	struct failure *f;
};

static void attempt_done(struct attempt *a)
{
	pins_abandon(&a->draft);
	close_fd(a->program);
	close_fd(a->meta);
	rings_done(&a->rings);
	tracepoint_done(&a->tracepoint);
}

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* ── what is pinned ─────────────────────────────────────────────────────────────────────── */

static int open_meta(const char *path)
{
	char leaf[PINS_PATH_SIZE + 8];

	snprintf(leaf, sizeof(leaf), "%s/meta", path);
	return bpf_obj_get(leaf);
}

/* Reads what is pinned at "NAMESPACE/EVENT". -EBADMSG, -EPROTONOSUPPORT, -errno. */
static int read_event(const char *path, struct pp_event *ret)
{
	_cleanup_close_ int fd = open_meta(path);

	return fd < 0 ? fd : meta_read(fd, ret);
}

/* ── what is wanted, and who records it ─────────────────────────────────────────────────── */

static int read_tracepoint(struct attempt *a)
{
	const struct pp_source *s = &a->spec->source;
	int r = tracepoint_read(s->system, s->tracepoint, &a->tracepoint);

	switch (r) {
	case 0:
		a->tp = &a->tracepoint;
		return 0;
	case -ENOENT:
		return fail(a->f, ENOENT,
			    "This kernel has no tracepoint '%s:%s'; `perf list tracepoint` shows "
			    "those it has.",
			    s->system, s->tracepoint);
	case -ENOMEDIUM:
		return fail(a->f, ENODEV,
			    "Tracefs is not mounted and cannot be mounted here, and tracepoint "
			    "'%s:%s' cannot be found without; run `mount -t tracefs tracefs "
			    "/sys/kernel/tracing`.",
			    s->system, s->tracepoint);
	default:
		return fail(a->f, -r,
			    "Cannot read the format of tracepoint '%s:%s' from tracefs: %s.",
			    s->system, s->tracepoint, strerror(-r));
	}
}

/* The best recorder that can do it. */
static int choose_recorder(struct attempt *a, struct recorder_plan *plan)
{
	static const struct recorder *const tracepoints[] = { &recorder_hot, &recorder_generic };
	static const struct recorder *const sampling[] = { &recorder_overflow };
	const struct recorder *const *list = a->tp ? tracepoints : sampling;
	size_t n = a->tp ? ARRAY_SIZE(tracepoints) : ARRAY_SIZE(sampling);
	int r = -EOPNOTSUPP;

	for (size_t i = 0; r == -EOPNOTSUPP && i < n; i++) {
		if (a->spec->flags & PP_EVENT_GENERIC && list[i] == &recorder_hot)
			continue;
		r = list[i]->plan(a->spec, a->tp, plan);
		a->recorder = list[i];
	}
	if (r < 0)
		return fail(a->f, -r, "No recorder can record '%s' on this kernel: %s.",
			    a->spec->event, strerror(-r));
	return 0;
}

static int choose_cpus(struct attempt *a)
{
	struct pp_cpumask online;
	char list[256];
	int r;

	r = pp_cpus_read("online", &online);
	if (r < 0)
		return fail(a->f, -r, "Cannot read which CPUs are online: %s.", strerror(-r));
	if (a->spec->flags & PP_EVENT_ALL_CPUS) {
		a->event.rings = online;
		return 0;
	}
	PP_CPUMASK_FOREACH(cpu, &a->spec->cpus)
	if (!pp_cpumask_test(&online, cpu)) {
		if (pp_format_cpus(&online, list, sizeof(list)) < 0)
			strcpy(list, "many others");
		return fail(a->f, ENODEV, "CPU %u is not online; choose among %s.", cpu, list);
	}
	a->event.rings = a->spec->cpus;
	return 0;
}

static int no_maps(struct attempt *a, int r)
{
	return fail(a->f, -r,
		    "This kernel does not let BPF maps be created (%s); perfpersist needs "
		    "CONFIG_BPF_SYSCALL=y and the right to use it.",
		    strerror(-r));
}

static int plan_event(struct attempt *a)
{
	struct recorder_plan plan;
	int r = 0;

	if (!kernel_has_btf())
		return fail(a->f, EOPNOTSUPP,
			    "This kernel has no BTF (/sys/kernel/btf/vmlinux is missing), which "
			    "the registry's files need; use one built with "
			    "CONFIG_DEBUG_INFO_BTF=y.");
	if (a->spec->source.kind == PP_SOURCE_TRACEPOINT)
		r = read_tracepoint(a);
	if (r >= 0)
		r = choose_recorder(a, &plan);
	if (r >= 0)
		r = choose_cpus(a);
	if (r < 0)
		return r;
	if (plan.spill_size > a->spec->data_size)
		return fail(a->f, EINVAL,
			    "A record of '%s' may take %u bytes, more than a buffer of %llu holds; "
			    "give at least -m %lluK.",
			    a->spec->event, plan.spill_size, (unsigned long long)a->spec->data_size,
			    1ULL << (64 - __builtin_clzll((plan.spill_size - 1) / 1024)));
	if (a->tp)
		perf_tracepoint_attr(a->tp, &a->attr);
	else
		overflow_attr(a->spec, &a->attr);
	a->event.spec = *a->spec;
	a->event.recorder = plan.recorder;
	a->event.missed_unknown = plan.missed_unknown;
	a->event.sample_type = plan.sample_type;
	a->event.spill_size = plan.spill_size;
	a->event.header_size = rings_header_size(a->tp ? a->tp->format_size : 0);
	a->event.created = now(CLOCK_REALTIME);
	a->event.created_mono = now(CLOCK_MONOTONIC);
	r = pins_next_id(&a->event.id);
	if (r == -ENOSYS || r == -EPERM)
		return no_maps(a, r);
	if (r < 0)
		return fail(a->f, -r, "Cannot give the event an id: %s.", strerror(-r));
	return 0;
}

/* ── making it ──────────────────────────────────────────────────────────────────────────── */

static int pin(struct attempt *a, int fd, const char *leaf)
{
	int r = pins_add(&a->draft, fd, leaf, 0, 0, 0600);

	if (r < 0)
		return fail(a->f, -r, "Cannot pin %s of '%s/%s' in the registry: %s.", leaf,
			    a->spec->ns, a->spec->name, strerror(-r));
	return 0;
}

static int make_rings(struct attempt *a)
{
	int r = rings_create(&a->event, &a->attr, a->tp, &a->rings);
	char leaf[32];

	if (r == -ENOSYS || r == -EPERM)
		return no_maps(a, r);
	if (r == -ENOMEM || r == -E2BIG)
		return fail(a->f, ENOMEM,
			    "The kernel has no memory for rings of %llu bytes per CPU (%s); give a "
			    "smaller -m.",
			    (unsigned long long)a->spec->data_size, strerror(-r));
	if (r < 0)
		return fail(a->f, -r, "Cannot make the rings of '%s/%s': %s.", a->spec->ns,
			    a->spec->name, strerror(-r));
	r = pin(a, a->rings.outer, "rings");
	for (unsigned i = 0; r >= 0 && i < a->rings.n; i++) {
		snprintf(leaf, sizeof(leaf), "cpu%u", a->rings.cpu[i]);
		r = pins_add(&a->draft, a->rings.fd[i], leaf, a->broker, 0, 0600);
		if (r < 0)
			return fail(a->f, -r, "Cannot pin the ring of CPU %u in the registry: %s.",
				    a->rings.cpu[i], strerror(-r));
	}
	return r;
}

static int make_program(struct attempt *a)
{
	struct recorder_rings where = {
		.fd = a->rings.outer,
		.header_size = a->event.header_size,
		.data_size = a->event.spec.data_size,
		.spill_size = a->event.spill_size,
		.cpu = a->rings.cpu,
		.ring_fd = a->rings.fd,
		.n = a->rings.n,
	};
	int r = a->recorder->load(a->spec, a->tp, &where, &a->program);

	if (r < 0)
		return fail(a->f, -r,
			    "The kernel refuses the program that would record '%s' (%s); "
			    "PERFPERSIST_DEBUG=1 in the engine's environment shows why.",
			    a->spec->event, strerror(-r));
	return pin(a, a->program, "program");
}

static int make_files(struct attempt *a)
{
	mode_t mode = 0400 | (a->spec->mode & 040) | (a->spec->mode & 04);
	struct tree_files files;
	bool ask = a->recorder->kind != PP_RECORDER_OVERFLOW && !a->event.missed_unknown;
	int r;

	r = meta_create(&a->event, &a->meta);
	if (r < 0)
		return fail(a->f, -r, "Cannot write down what '%s/%s' is: %s.", a->spec->ns,
			    a->spec->name, strerror(-r));
	r = pin(a, a->meta, "meta");
	if (r < 0)
		return r;
	r = tree_create(a->meta, a->rings.outer, ask ? a->program : -1, a->event.missed_unknown,
			&files);
	if (r < 0)
		return fail(a->f, -r, "Cannot make the registry's files of '%s/%s': %s.",
			    a->spec->ns, a->spec->name, strerror(-r));
	r = pins_add(&a->draft, files.info, "info", a->broker, a->spec->group, mode);
	if (r >= 0)
		r = pins_add(&a->draft, files.stat, "stat", a->broker, a->spec->group, mode);
	tree_files_done(&files);
	if (r < 0)
		return fail(a->f, -r, "Cannot pin the registry's files of '%s/%s': %s.",
			    a->spec->ns, a->spec->name, strerror(-r));
	return 0;
}

static int attach_failure(struct attempt *a, int r, unsigned cpu)
{
	const char *text = a->spec->event;

	switch (-r) {
	case E2BIG:
		return fail(a->f, E2BIG,
			    "Tracepoint '%s' already runs 64 BPF programs, the most that the "
			    "kernel allows for all tools together; delete an event on it, or end "
			    "another tool that uses it.",
			    text);
	case ENODEV:
		return fail(a->f, ENODEV, "CPU %u is offline; choose CPUs that are online.", cpu);
	case ENOENT:
	case EOPNOTSUPP:
		return fail(a->f, EOPNOTSUPP,
			    "This machine cannot count or sample '%s' (%s); `perf list` shows what "
			    "it can, `cpu-clock` works everywhere.",
			    text, strerror(-r));
	case EINVAL:
		return fail(a->f, EOPNOTSUPP,
			    "The kernel does not accept '%s' with these options (%s).", text,
			    strerror(-r));
	case EACCES:
	case EPERM:
		return fail(a->f, -r,
			    "The kernel does not allow '%s' to be recorded (%s); see "
			    "kernel.perf_event_paranoid and kernel lockdown.",
			    text, strerror(-r));
	default:
		return fail(a->f, -r, "Cannot attach to '%s' on CPU %u: %s.", text, cpu,
			    strerror(-r));
	}
}

static int attach(struct attempt *a, unsigned cpu, const char *leaf)
{
	_cleanup_close_ int link = -EBADF;
	int r = a->recorder->attach(a->spec, a->tp, a->program, cpu, &link);

	if (r == -E2BIG) {
		/* What was deleted a moment ago may still hold a place. */
		reaper_kick();
		reaper_wait();
		r = a->recorder->attach(a->spec, a->tp, a->program, cpu, &link);
	}
	return r < 0 ? attach_failure(a, r, cpu) : pin(a, link, leaf);
}

/* From here on it records. */
static int make_links(struct attempt *a)
{
	char leaf[32];
	int r = 0;

	if (!a->recorder->per_cpu)
		return attach(a, a->rings.cpu[0], "link");
	for (unsigned i = 0; r >= 0 && i < a->rings.n; i++) {
		snprintf(leaf, sizeof(leaf), "link%u", a->rings.cpu[i]);
		r = attach(a, a->rings.cpu[i], leaf);
	}
	return r;
}

static int name_is_taken(struct attempt *a)
{
	char path[PINS_PATH_SIZE];
	struct pp_event event;

	snprintf(path, sizeof(path), "%s/%s", a->spec->ns, a->spec->name);
	if (read_event(path, &event) == -EPROTONOSUPPORT)
		return fail(a->f, EEXIST,
			    "'%s' is already there, made by a newer perfpersist; delete it with "
			    "that one, or choose another name.",
			    path);
	return fail(a->f, EEXIST,
		    "'%s/%s' is already there; delete it first, or choose another name.",
		    a->spec->ns, a->spec->name);
}

static int commit(struct attempt *a)
{
	int r = pins_commit(&a->draft, a->spec, a->event.id);

	if (r == -EEXIST)
		return name_is_taken(a);
	if (r < 0)
		return fail(a->f, -r, "Cannot put '%s/%s' into the registry: %s.", a->spec->ns,
			    a->spec->name, strerror(-r));
	return 0;
}

int event_create(const struct pp_spec *spec, uid_t broker, struct pp_event *ret, struct failure *f)
{
	_cleanup_(attempt_done) struct attempt a = {
		.spec = spec,
		.rings.outer = -EBADF,
		.program = -EBADF,
		.meta = -EBADF,
		.broker = broker,
		.f = f,
	};
	static int (*const steps[])(struct attempt *) = { make_rings, make_program, make_files,
							  make_links, commit };
	int r;

	if (pins_exists(spec->ns, spec->name))
		return name_is_taken(&a);
	r = plan_event(&a);
	if (r < 0)
		return r;
	r = pins_begin(spec, &a.draft);
	if (r < 0)
		return fail(f, -r, "Cannot write to the registry: %s.", strerror(-r));
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(steps); i++)
		r = steps[i](&a);
	if (r < 0)
		return r;
	*ret = a.event;
	return 0;
}

/* ── finding and deleting it ────────────────────────────────────────────────────────────── */

struct each {
	int (*fn)(const struct pp_event *event, void *userdata);
	void *userdata;
};

static int each_event(const char *path, void *userdata)
{
	const struct each *each = userdata;
	struct pp_event event;
	int r = read_event(path, &event);

	/* For want of memory or descriptors nothing may be said to be gone. */
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE)
		return r;
	if (r == -EPROTONOSUPPORT)
		log_warning(
			"%s was made by a newer perfpersist; left alone, delete it with that one",
			path);
	else if (r < 0)
		log_warning("%s cannot be understood (%s); left alone, remove its directory from "
			    "the registry if it is of no use",
			    path, strerror(-r));
	if (r < 0)
		return 0;
	r = pins_link_id(event.id, path);
	if (r < 0)
		log_warning("%s cannot be found by its id: %s", path, strerror(-r));
	return each->fn(&event, each->userdata);
}

int event_foreach(int (*fn)(const struct pp_event *event, void *userdata), void *userdata)
{
	struct each each = { fn, userdata };

	return pins_foreach(each_event, &each);
}

static int ignore_event(const struct pp_event *event _unused_, void *userdata _unused_)
{
	return 0;
}

/* Whoever asks takes -ENOENT for "deleted", so that a lost link alone must not say it. */
static int find_event(uint64_t id, char path[PINS_PATH_SIZE])
{
	int r = pins_find(id, path);

	if (r != -ENOENT)
		return r;
	r = event_foreach(ignore_event, NULL);
	return r < 0 ? r : pins_find(id, path);
}

int event_delete(uint64_t id, struct pp_event *ret, struct failure *f)
{
	char path[PINS_PATH_SIZE];
	int r;

	r = find_event(id, path);
	if (r >= 0)
		r = read_event(path, ret);
	if (r >= 0 && ret->id != id)
		r = -ENOENT;
	if (r < 0)
		return fail(f, -r, "Cannot find the event with id %llu in the registry: %s.",
			    (unsigned long long)id, strerror(-r));
	r = pins_remove(path, id);
	if (r < 0)
		return fail(f, -r, "Cannot take '%s' out of the registry: %s.", path, strerror(-r));
	reaper_kick();
	return 0;
}

void event_bury(const char *path)
{
	_cleanup_close_ int meta = open_meta(path);

	if (meta >= 0)
		meta_mark_deleted(meta);
}
