// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the queue of sideband requests. Must not know how sideband is recorded. */
#include "daemon/broker/sideband/sideband-internal.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* Users take turns: the next request is the first of another user, if there is one. */
static struct taking *take_next(struct sideband *s)
{
	struct taking **p = &s->first_taking, *taking;

	while (*p && (*p)->uid == s->last_uid)
		p = &(*p)->next;
	if (!*p)
		p = &s->first_taking;
	taking = *p;
	*p = taking->next;
	if (!*p)
		s->last_taking = p;
	taking->next = NULL;
	s->last_uid = taking->uid;
	return taking;
}

static bool can_answer(const struct sideband *s, const struct taking *taking, bool settled)
{
	return taking->numbers || settled || (s->status.keeping && s->status.tasks);
}

static bool any_can_be_answered(const struct sideband *s, bool settled)
{
	for (const struct taking *t = s->first_taking; t; t = t->next)
		if (can_answer(s, t, settled))
			return true;
	return false;
}

static void ask(struct sideband *s, struct taking *taking)
{
	struct pp_keep_request *request =
		keeper_request(&s->keeper, taking->numbers ? PP_KEEP_HELLO : PP_KEEP_TAKE);
	int r;

	request->since = taking->numbers ? 0 : taking->since;
	request->until = taking->numbers ? 0 : taking->until;
	r = keeper_ask(&s->keeper, NULL, 0);
	if (r < 0)
		taking->done(taking, -EAGAIN, NULL, -EBADF);
	else
		s->current = taking;
}

/* A request that must wait goes behind all others: some may ask for numbers only, which are
 * available at once. */
bool takings_ask(struct sideband *s, bool settled)
{
	while (any_can_be_answered(s, settled)) {
		struct taking *taking = take_next(s);

		if (!can_answer(s, taking, settled)) {
			*s->last_taking = taking;
			s->last_taking = &taking->next;
		} else if (taking->numbers || s->status.keeping) {
			ask(s, taking);
			return true;
		} else {
			taking->done(taking, 0, NULL, -EBADF);
		}
	}
	return false;
}

void takings_answered(struct sideband *s, const struct pp_keep_answer *answer, struct pp_fds *fds)
{
	struct taking *taking = TAKE_PTR(s->current);
	size_t due = taking && !taking->numbers && !answer->error ? 1 : 0;

	if (!taking)
		return;
	if (!taking->numbers && answer->error == ENODATA) {
		taking->done(taking, 0, NULL, -EBADF);
	} else if (fds->n != due || (due && !answer->size)) {
		log_error("The keeper sent sideband without a file, or a file without sideband.");
		taking->done(taking, -EAGAIN, NULL, -EBADF);
	} else {
		taking->done(taking, -answer->error, answer, due ? fds->fd[0] : -EBADF);
	}
}

void takings_break(struct sideband *s, int error)
{
	struct taking *taking = TAKE_PTR(s->current);

	if (taking)
		taking->done(taking, error, NULL, -EBADF);
}

void takings_end(struct sideband *s, int error)
{
	while (s->first_taking) {
		struct taking *taking = take_next(s);

		taking->done(taking, error, NULL, -EBADF);
	}
}

void sideband_take(struct sideband *s, struct taking *taking)
{
	taking->next = NULL;
	*s->last_taking = taking;
	s->last_taking = &taking->next;
	sideband_continue(s);
}
