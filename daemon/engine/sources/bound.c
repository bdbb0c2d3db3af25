// SPDX-License-Identifier: LGPL-2.1-or-later
/* Attaches to threads. See bound.h. */
#include "daemon/engine/sources/bound.h"

#include <bpf/bpf.h>
#include <string.h>

#include "daemon/engine/kernel/target.h"
#include "daemon/engine/registry/link-facts.h"
#include "daemon/engine/sources/attach.h"
#include "proto/macro.h"

#define LEAF_SIZE 48

struct threads {
	pid_t *v;
	size_t n;
};

static void threads_done(struct threads *t)
{
	free(t->v);
}

/* Links of this try, by the kernel's ids. */
struct made {
	uint32_t *ids;
	size_t n;
};

static void made_done(struct made *m)
{
	free(m->ids);
}

static bool has(const struct threads *t, pid_t tid)
{
	return target_has_thread(t->v, t->n, tid);
}

/* "process 12" */
static const char *name_of(const struct pp_msg_target *t, char buf[32])
{
	snprintf(buf, 32, "%s %u", t->kind == PP_TARGET_THREAD ? "thread" : "process", t->pid);
	return buf;
}

static int has_ended(const struct pp_msg_target *t, struct failure *f)
{
	char name[32];

	return fail(f, ESRCH, "The %s has ended.", name_of(t, name));
}

static int list_threads(const struct pp_msg_target *t, struct threads *ret, struct failure *f)
{
	int r = target_threads(t, &ret->v, &ret->n);
	char name[32];

	if (r == -ESRCH)
		return has_ended(t, f);
	return r < 0 ? fail(f, -r, "Cannot list the threads of the %s: %s.", name_of(t, name),
			    strerror(-r))
		     : 0;
}

/* Before the first perf event is opened. */
static int check_number(const struct sources *s, size_t n_threads, struct failure *f)
{
	const struct binding *b = s->binding;
	char name[32];

	if (n_threads <= b->max / s->n)
		return 0;
	return fail(
		f, E2BIG,
		"The %s has %zu threads, and needs %zu perf events, %zu for each; "
		"there is room for %u, by what the limits of its creator leave (%u KiB each) and "
		"the %u that one event can have. Record its cgroup (-G), one thread (-t), or "
		"fewer events.",
		name_of(&b->target, name), n_threads, n_threads * s->n, s->n, b->max,
		PP_PERF_EVENT_MEMORY / 1024, PP_BOUND_MAX);
}

static void leaf_of(size_t source, size_t k, char buf[LEAF_SIZE])
{
	snprintf(buf, LEAF_SIZE, "link%zu+%zu", source, k);
}

static int note(struct made *made, int link)
{
	struct bpf_link_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(link, &info, &size) < 0)
		return -errno;
	made->ids[made->n++] = info.id;
	return 0;
}

/* 1: attached; 0: the thread has ended. */
static int link_one(const struct sources *s, size_t i, int entry, const struct perf_place *at,
		    size_t k, struct pins_draft *draft, struct made *made, struct failure *f)
{
	_cleanup_close_ int link = -EBADF;
	int r = attach_source(&s->v[i], entry, at, &link);
	char leaf[LEAF_SIZE];

	if (r == -ESRCH)
		return 0;
	if (r < 0)
		return attach_failure(&s->v[i], r, at, f);
	leaf_of(i, k, leaf);
	r = note(made, link);
	if (r >= 0)
		r = pins_add(draft, link, leaf, 0, 0, 0600);
	return r < 0 ? fail(f, -r, "Cannot pin %s in the registry: %s.", leaf, strerror(-r)) : 1;
}

static int link_all(const struct sources *s, const int *entries, const struct threads *threads,
		    struct pins_draft *draft, struct made *made, struct failure *f)
{
	struct binding *b = s->binding;
	int r = 0;

	made->ids = calloc(threads->n * s->n, sizeof(*made->ids));
	if (!made->ids)
		return fail(f, ENOMEM, "No memory for %zu perf events.", threads->n * s->n);
	b->n = 0;
	for (size_t k = 0; r >= 0 && k < threads->n; k++) {
		const struct perf_place at = {
			.cpu = -1,
			.tid = threads->v[k],
			.cgroup = -EBADF,
			.inherit = !(b->target.flags & PP_TARGET_NO_INHERIT),
		};

		for (size_t i = 0; r >= 0 && i < s->n; i++) {
			r = link_one(s, i, entries[i], &at, k, draft, made, f);
			b->n += r > 0;
			b->tried++;
		}
	}
	return r;
}

/* A number that is no thread of the process any more may have become another's by the time it was opened. */
static void drop_strangers(const struct sources *s, const struct threads *before,
			   const struct threads *now, struct pins_draft *draft)
{
	char leaf[LEAF_SIZE];

	for (size_t k = 0; k < before->n; k++)
		for (size_t i = 0; !has(now, before->v[k]) && i < s->n; i++) {
			leaf_of(i, k, leaf);
			if (!pins_has(draft->path, leaf))
				continue;
			pins_drop(draft->path, leaf);
			s->binding->n--;
		}
}

/*
 * A thread that began meanwhile has inherited the perf events if its creator had them by then. If it has not, it must
 * be attached; if it has, it would record twice.
 */
static int check_new(const struct pp_msg_target *t, const struct threads *before,
		     const struct threads *now, struct failure *f)
{
	char name[32];

	for (size_t i = 0; i < now->n; i++)
		if (!(t->flags & PP_TARGET_NO_INHERIT) && !has(before, now->v[i]))
			return fail(
				f, EAGAIN,
				"The %s makes threads so fast that perf events cannot be attached "
				"to all of them; try again, or record its cgroup (-G).",
				name_of(t, name));
	return 0;
}

/*
 * What was forked between a perf event and its link has inherited the perf event without the program, for good; and
 * the kernel may put the two in each other's place. Each was enabled after its link, for which the kernel waits until
 * such a fork is done. Where the kernel does not let us look, that goes unseen.
 */
static int check_forks(const struct binding *b, const struct made *made, struct failure *f)
{
	_cleanup_free_ struct link_fact *facts = NULL;
	char name[32];
	size_t n;

	if (b->target.flags & PP_TARGET_NO_INHERIT || link_facts_read(b->broker, &facts, &n) < 0)
		return 0;
	for (size_t i = 0; i < made->n; i++) {
		const struct link_fact *fact = link_facts_find(facts, n, made->ids[i]);

		if (fact && fact->bare)
			return fail(f, EAGAIN,
				    "The %s forks so fast that perf events cannot be attached "
				    "meanwhile; try again, or record its cgroup (-G).",
				    name_of(&b->target, name));
	}
	return 0;
}

/* Whether the number was the same task's all the time. */
static int check_same(const struct pp_msg_target *t, struct failure *f)
{
	int fd = target_watch(t);
	char name[32];

	close_fd(fd);
	if (fd == -ESRCH)
		return has_ended(t, f);
	return fd < 0 && fd != -EOPNOTSUPP ? fail(f, -fd, "Cannot look at the %s again: %s.",
						  name_of(t, name), strerror(-fd))
					   : 0;
}

static int check_again(const struct sources *s, const struct threads *before,
		       struct pins_draft *draft, struct failure *f)
{
	_cleanup_(threads_done) struct threads now = {};
	const struct pp_msg_target *t = &s->binding->target;
	int r = list_threads(t, &now, f);

	if (r >= 0)
		r = check_same(t, f);
	if (r >= 0)
		r = check_new(t, before, &now, f);
	if (r < 0)
		return r;
	drop_strangers(s, before, &now, draft);
	return s->binding->n ? 0 : has_ended(t, f);
}

int bound_link_threads(const struct sources *s, const int *entries, struct pins_draft *draft,
		       struct failure *f)
{
	_cleanup_(threads_done) struct threads threads = {};
	_cleanup_(made_done) struct made made = {};
	int r = list_threads(&s->binding->target, &threads, f);

	if (r >= 0)
		r = check_number(s, threads.n, f);
	if (r >= 0)
		r = link_all(s, entries, &threads, draft, &made, f);
	if (r >= 0)
		r = check_forks(s->binding, &made, f);
	return r < 0 ? r : check_again(s, &threads, draft, f);
}
