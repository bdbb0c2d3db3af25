// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/choose.h"

#include <string.h>
#include <sys/resource.h>

#include "client/perfctl/events/find.h"
#include "proto/clock.h"

void chosen_done(struct chosen *c)
{
	for (size_t i = 0; i < c->n; i++)
		perfpersist_event_free(c->events[i]);
	free(c->events);
	*c = (struct chosen){};
}

static uint64_t rings_of(const struct perfpersist_info *info)
{
	return info->shares ?: info->id;
}

bool is_second_name(const struct perfpersist_info *infos, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (rings_of(&infos[j]) == rings_of(&infos[i]))
			return true;
	return false;
}

void tell_frozen(const struct perfpersist_info *info)
{
	if (info->state == PERFPERSIST_FROZEN)
		complain(
			"%s/%s: triggers have frozen it twice; what it has recorded since can be read when "
			"what the first one froze is saved, or released (`perfctl trigger release`)",
			info->ns, info->name);
}

/* is_alone: the user asked for this event alone. Otherwise skips an event that was deleted
 * meanwhile or is not ready. */
static int open_one(struct perfpersist *p, const struct perfpersist_info *info, bool is_alone,
		    bool copies, struct chosen *c)
{
	int r = (copies ? perfpersist_open_copy : perfpersist_open)(p, info->ns, info->name,
								    &c->events[c->n]);

	if (r < 0 && (is_alone || (r != -ENOENT && r != -EBUSY)))
		return call_failed(p, r);
	c->n += r >= 0;
	return EXIT_OK;
}

uint64_t chosen_now(struct perfpersist_interleave *records, size_t n, uint64_t now)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	uint64_t saved = 0;

	for (size_t i = 0; i < n; i++)
		if (perfpersist_interleave_info(records, i, &info) >= 0 && info.saved)
			saved = MAX(saved, info.saved_mono);
	return saved ?: now;
}

void allow_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int choose_events(struct call *call, struct perfpersist *p, char **names, size_t n_names,
		  bool copies, struct chosen *ret)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	_cleanup_(chosen_done) struct chosen c = {};
	size_t n = 0;
	int r;

	r = find_events(call, p, names, n_names, &infos, &n);
	if (r)
		return r;
	c.events = calloc(n + 1, sizeof(*c.events));
	if (!c.events) {
		complain("cannot open the events: out of memory");
		return EXIT_FAILED;
	}
	allow_descriptors();
	for (size_t i = 0; !r && i < n; i++)
		if (!is_second_name(infos, i)) {
			tell_frozen(&infos[i]);
			r = open_one(p, &infos[i], n == 1, copies, &c);
		}
	if (r)
		return r;
	if (!c.n) {
		complain("cannot open the events: they were deleted or are not ready yet");
		return EXIT_NOT_FOUND;
	}
	*ret = c;
	c = (struct chosen){};
	return EXIT_OK;
}
