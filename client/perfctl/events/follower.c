// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/follower.h"

#include <string.h>

/* Between two looks at copies, each of which the daemon has to make. */
#define COPY_INTERVAL 500000000ULL
/* Who is woken looks by himself only this often, for the case that nobody is there to wake. */
#define WOKEN_INTERVAL 10000000000ULL

struct follower {
	const struct event_name *name;
	struct follow_options options;
	struct perfpersist *p;
	struct perfpersist_event *e;
	struct perfpersist_follow *f;
	uint32_t set; /* of rings, that is followed */
	int wakeup;   /* an eventfd, or -EBADF */
	bool listens; /* the daemon tells what happens to the event */
	bool changed; /* and has done so */

	uint64_t read, overwritten; /* of rings that were replaced */
};

static int start(struct follower *f, struct perfpersist_event *e, uint64_t newest)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r;

	f->e = e;
	r = perfpersist_event_info(e, &info);
	if (r < 0)
		return r;
	f->set = info.set;
	return perfpersist_follow_new(e, newest, &f->f);
}

static void on_notice(struct perfpersist *p _unused_, const struct perfpersist_notice *notice,
		      void *userdata)
{
	struct follower *f = userdata;

	f->changed |= notice->kind == PERFPERSIST_NOTICE_LOST ||
		      (notice->kind == PERFPERSIST_NOTICE_CHANGED &&
		       !strcmp(notice->info->name, f->name->name));
}

/* What is told of the namespace wakes, too: that the event was deleted, say. Who is not told goes
 * on with the rings there are. */
static int be_told(struct follower *f)
{
	int r = f->options.wakeup ? perfpersist_wakeup(f->p, f->name->ns, f->name->name, &f->wakeup)
				  : 0;

	if (r < 0)
		return r;
	r = perfpersist_watch(f->p, f->name->ns, on_notice, f);
	f->listens = r >= 0;
	return f->options.wakeup ? r : 0;
}

int follower_new(struct perfpersist *p, struct perfpersist_event *e, const struct event_name *name,
		 const struct follow_options *options, uint64_t newest, struct follower **ret)
{
	struct follower *f = calloc(1, sizeof(*f));
	int r;

	if (!f) {
		perfpersist_event_free(e);
		return -ENOMEM;
	}
	*f = (struct follower){ .p = p, .name = name, .options = *options, .wakeup = -EBADF };
	r = start(f, e, newest);
	if (r >= 0)
		r = be_told(f);
	if (r < 0) {
		follower_free(f);
		return r;
	}
	*ret = f;
	return 0;
}

static void close_rings(struct follower *f)
{
	perfpersist_follow_free(f->f);
	perfpersist_event_free(f->e);
	f->f = NULL;
	f->e = NULL;
}

void follower_free(struct follower *f)
{
	if (!f)
		return;
	close_rings(f);
	close_fd(f->wakeup);
	free(f);
}

struct perfpersist_event *follower_event(struct follower *f)
{
	return f->e;
}

const struct event_name *follower_name(const struct follower *f)
{
	return f->name;
}

int follower_next(struct follower *f, struct perfpersist_sample *ret)
{
	return perfpersist_follow_next(f->f, ret);
}

void follower_counts(struct follower *f, uint64_t *ret_read, uint64_t *ret_overwritten)
{
	*ret_read = f->read;
	*ret_overwritten = f->overwritten;
	for (size_t i = 0; f->f && i < perfpersist_event_rings(f->e); i++) {
		struct perfpersist_follow_stat s = { .sz = sizeof(s) };

		if (perfpersist_follow_stat(f->f, i, &s) < 0)
			continue;
		*ret_read += s.read;
		*ret_overwritten += s.overwritten;
	}
}

/* ── what becomes of it ─────────────────────────────────────────────────────────────────── */

/* Records of new rings that were overwritten before we had opened them. */
static void count_begin(struct follower *f)
{
	for (size_t i = 0; i < perfpersist_event_rings(f->e); i++) {
		struct perfpersist_follow_stat s = { .sz = sizeof(s) };

		if (perfpersist_follow_stat(f->f, i, &s) >= 0)
			f->overwritten += s.begin;
	}
}

int follower_open_again(struct follower *f, bool *ret_gap)
{
	const char *ns = f->name->ns, *name = f->name->name;
	struct perfpersist_event *e = NULL;
	uint32_t set = f->set;
	int r;

	r = f->options.copies ? perfpersist_open_copy(f->p, ns, name, &e)
			      : perfpersist_open(f->p, ns, name, &e);
	if (r < 0)
		return r == -ENOENT ? FOLLOWER_ENDED : r;
	follower_counts(f, &f->read, &f->overwritten);
	close_rings(f);
	r = start(f, e, SIZE_MAX);
	if (r < 0)
		return r;
	count_begin(f);
	*ret_gap = f->set > set + 1;
	return FOLLOWER_REPLACED;
}

static int look_at_copies(struct follower *f)
{
	int r = perfpersist_event_refresh(f->e, f->p);

	switch (r) {
	case -ESTALE:
		return FOLLOWER_REPLACED;
	case -ENOENT:
		return FOLLOWER_ENDED;
	case -EAGAIN:
		return FOLLOWER_SAME;
	default:
		return r < 0 ? r : FOLLOWER_SAME;
	}
}

int follower_look_around(struct follower *f)
{
	if (perfpersist_event_is_copy(f->e))
		return look_at_copies(f);
	switch (perfpersist_event_state(f->e)) {
	case PERFPERSIST_RINGS_RETIRED:
		return FOLLOWER_REPLACED;
	case PERFPERSIST_RINGS_DELETED:
		return FOLLOWER_ENDED;
	default:
		break;
	}
	/* More rings, perhaps. What is in the way (it was deleted, or replaced) the rings themselves
	 * tell at the next look; who is asked to come again does so. */
	if (f->changed)
		f->changed = perfpersist_event_refresh(f->e, f->p) == -EAGAIN;
	return FOLLOWER_SAME;
}

/* ── waiting ────────────────────────────────────────────────────────────────────────────── */

uint64_t follower_delay(struct follower *f)
{
	if (perfpersist_event_is_copy(f->e))
		return COPY_INTERVAL;
	return f->wakeup >= 0 ? WOKEN_INTERVAL : perfpersist_follow_delay(f->f);
}

int follower_wakeup(const struct follower *f)
{
	return f->wakeup;
}

bool follower_listens(const struct follower *f)
{
	return f->listens && !perfpersist_event_is_copy(f->e);
}

void follower_woken(struct follower *f)
{
	uint64_t count;

	if (f->wakeup >= 0 && read(f->wakeup, &count, sizeof(count)) < 0 && errno != EAGAIN)
		f->wakeup = close_fd(f->wakeup);
}

bool follower_deserted(struct follower *f)
{
	bool woken = f->wakeup >= 0;

	f->listens = false;
	f->wakeup = close_fd(f->wakeup);
	return woken;
}
