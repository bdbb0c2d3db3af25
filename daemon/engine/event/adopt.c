// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adoptions under way. See adopt.h. */
#include "daemon/engine/event/adopt.h"

#include <fcntl.h>
#include <string.h>
#include <sys/queue.h>

#include "daemon/engine/event/create.h"
#include "daemon/engine/event/entries.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/sources/adopted.h"
#include "daemon/engine/sources/links.h"
#include "proto/macro.h"

/* All users' together: each holds its rings' descriptors. */
#define ADOPTIONS_MAX 256

struct adoption {
	SLIST_ENTRY(adoption) entry;
	struct parts p;
	struct pp_parsed parsed; /* the sources point into it */
	int program;		 /* their entry */
	unsigned n_links;
};

static SLIST_HEAD(, adoption) adoptions = SLIST_HEAD_INITIALIZER(adoptions);

static void adoption_free(struct adoption *a)
{
	if (!a)
		return;
	if (a->n_links && a->p.draft.path[0]) {
		pins_discard(&a->p.draft);
		reaper_kick();
	}
	parts_done(&a->p);
	close_fd(a->program);
	free(a);
}

static void adoption_cleanup(struct adoption **a)
{
	adoption_free(*a);
}

static struct adoption *find(uint64_t id)
{
	struct adoption *a;

	SLIST_FOREACH(a, &adoptions, entry)
	if (a->p.event.id == id)
		return a;
	return NULL;
}

static void forget(struct adoption *a)
{
	SLIST_REMOVE(&adoptions, a, adoption, entry);
	adoption_free(a);
}

bool event_forget_adoption(uint64_t id)
{
	struct adoption *a = id ? find(id) : SLIST_FIRST(&adoptions);
	bool there = a;

	for (; a; a = id ? NULL : SLIST_FIRST(&adoptions))
		forget(a);
	return there;
}

uint64_t event_adoptions_memory(void)
{
	const struct adoption *a;
	uint64_t sum = 0;

	SLIST_FOREACH(a, &adoptions, entry)
	sum += parts_memory(&a->p);
	return sum;
}

/* ── beginning ──────────────────────────────────────────────────────────────────────────── */

static int check_number(struct failure *f)
{
	const struct adoption *a;
	unsigned n = 0;

	SLIST_FOREACH(a, &adoptions, entry)
	n++;
	if (n < ADOPTIONS_MAX)
		return 0;
	return fail(f, EBUSY,
		    "%u adoptions, of all users, are under way, which is the most; try again when "
		    "one has ended.",
		    n);
}

/* Whether the broker has charged its program: it is under way, or an event. */
static bool is_charged(uint64_t id)
{
	char path[PINS_PATH_SIZE];

	pins_event(id, path);
	return find(id) || access(path, F_OK) == 0;
}

static int begin(struct adoption *a, const struct pp_spec *spec,
		 const struct pp_allowance *allowance, struct failure *f)
{
	int r = check_number(f);

	if (r >= 0)
		r = create_check_name(spec, f);
	if (r >= 0)
		r = entries_check(spec->creator, allowance, is_charged, f);
	if (r >= 0)
		r = create_begin(&a->p, spec, &a->parsed, 0, allowance, f);
	if (r >= 0)
		r = adopted_check_source(&a->p.sources, f);
	if (r >= 0)
		r = create_draft(&a->p, NULL, f);
	return r < 0 ? r : links_entry(&a->p.sources, &a->p.programs, &a->program, f);
}

int event_adopt(const struct pp_spec *spec, const struct pp_parsed *parsed,
		const struct pp_allowance *allowance, uid_t broker, struct pp_event *ret,
		int *ret_entry, struct failure *f)
{
	_cleanup_(adoption_cleanup) struct adoption *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return fail(f, ENOMEM, "No memory for '%s/%s'.", spec->ns, spec->name);
	a->p = (struct parts)PARTS_NONE;
	a->p.broker = broker;
	a->parsed = *parsed;
	a->program = -EBADF;
	r = begin(a, spec, allowance, f);
	if (r < 0)
		return r;
	r = entries_add(a->program, spec->creator, a->p.event.id);
	if (r >= 0)
		*ret_entry = r = fcntl(a->program, F_DUPFD_CLOEXEC, 3);
	if (r < 0)
		return fail(f, errno, "Cannot pass the program of '%s/%s': %s.", spec->ns,
			    spec->name, strerror(errno));
	*ret = a->p.event;
	SLIST_INSERT_HEAD(&adoptions, a, entry);
	TAKE_PTR(a);
	return 0;
}

/* ── attaching ──────────────────────────────────────────────────────────────────────────── */

int event_attach(uint64_t id, const uint64_t *links, unsigned n, bool more, struct pp_event *ret,
		 struct failure *f)
{
	struct adoption *a = find(id);
	char path[PINS_PATH_SIZE];
	int r;

	if (!a)
		return fail(f, ENOENT,
			    "The engine has ended during this adoption, and does not know it any "
			    "more; the perf events are still yours, try again.");
	r = adopted_take_links(&a->p.sources, a->program, links, n, a->n_links, a->p.broker,
			       &a->p.draft, f);
	a->n_links += n;
	a->p.user_memory = a->n_links * PP_PERF_EVENT_MEMORY;
	a->p.event.memory = parts_memory(&a->p);
	if (r >= 0 && more)
		return 0;
	if (r >= 0)
		r = create_finish(&a->p, &a->parsed, f);
	if (r >= 0) {
		pins_event(id, path);
		if (event_read(path, ret) < 0)
			*ret = a->p.event;
	}
	forget(a);
	return r < 0 ? r : 1;
}
