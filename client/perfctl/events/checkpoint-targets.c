// SPDX-License-Identifier: LGPL-2.1-or-later
/* Which events have a file for their checkpoints. */
#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/checkpoint-internal.h"
#include "client/perfctl/print/info.h"

void target_close(struct target *t)
{
	perfpersist_checkpoint_free(t->file);
	perfpersist_event_free(t->event);
	t->file = NULL;
	t->event = NULL;
	t->size = 0;
	t->is_kept = false;
}

void target_keep(struct target *t)
{
	uint64_t size = t->size;

	target_close(t);
	t->size = size;
	t->is_kept = true;
}

/* Users other than root get half of the space, so that they cannot use up the rest. */
static uint64_t room_for(const struct checkpointing *c, const struct target *t)
{
	uint64_t all = c->options->max_size, others = all / 2, used = 0, used_by_others = 0;

	for (size_t i = 0; i < c->n; i++) {
		used += c->all[i].size;
		if (c->all[i].info.creator)
			used_by_others += c->all[i].size;
	}
	all -= MIN(used, all);
	others -= MIN(used_by_others, others);
	return t->info.creator ? MIN(all, others) : all;
}

void target_say(struct target *t, const char *why)
{
	if (!t->has_complained)
		complain("there are no checkpoints of %s/%s: %s", t->info.ns, t->info.name, why);
	t->has_complained = true;
}

static void no_room(const struct checkpointing *c, struct target *t, uint64_t size, uint64_t room)
{
	char why[512];

	snprintf(
		why, sizeof(why),
		"they would take %s on the disk, and of --max-size %s there are %s left%s; raise it "
		"(`systemctl edit perfpersist-checkpoint`) or make the buffers smaller",
		format_size(size).s, format_size(c->options->max_size).s, format_size(room).s,
		t->info.creator ? " for events of users other than root" : "");
	target_say(t, why);
}

/* Only files that nothing wants any more: one that could not be opened now may be the next time. */
static void sweep(struct checkpointing *c)
{
	_cleanup_free_ uint64_t *keep = calloc(c->n + 1, sizeof(*keep));
	size_t n = 0;

	for (size_t i = 0; keep && i < c->n; i++)
		if (c->all[i].is_kept)
			keep[n++] = c->all[i].info.shares ?: c->all[i].info.id;
	if (keep)
		perfpersist_checkpoints_sweep(c->files, keep, n);
}

/* 1: there is no room, or it is a second name: no file of it is kept. */
static int open_file(struct checkpointing *c, struct target *t, uint64_t had)
{
	uint64_t size = perfpersist_checkpoint_size(t->event), room = room_for(c, t);
	int r;

	if (size > room) {
		no_room(c, t, size, room);
		return 1;
	}
	/* The file of its earlier rings stays until the new one has a checkpoint, if there is room. */
	if (size > room - MIN(had, room))
		sweep(c);
	r = perfpersist_checkpoint_new(c->files, t->event, &t->file);
	if (r == -EEXIST)
		return 1;
	/* A new file is synced. */
	if (r <= 0)
		budget_spend(&c->budget, target_is_root(t), BUDGET_WRITE);
	if (r < 0) {
		target_say(t, perfpersist_error(NULL));
		return r;
	}
	t->size = size;
	t->has_complained = false;
	return 0;
}

void target_open(struct checkpointing *c, struct target *t)
{
	uint64_t had = t->size;
	int r;

	target_close(t);
	t->is_stale = false;
	r = perfpersist_open_by_id(c->p, t->info.id, &t->event);
	if (r < 0 && r != -ENOENT)
		target_say(t, perfpersist_error(c->p));
	/* Most of what it is refused for passes soon, and no notice tells of that. */
	c->came |= r < 0;
	if (r >= 0)
		r = open_file(c, t, had);
	if (r != 0)
		target_close(t);
	t->is_kept = r < 0 && r != -ENOENT;
	if (t->is_kept)
		t->size = had;
}

/* What the file says of the event: also who may read the save that it becomes. */
static bool has_same_text(const struct perfpersist_info *a, const struct perfpersist_info *b)
{
	return a->mode == b->mode && a->group == b->group && a->owner == b->owner &&
	       a->max_rate == b->max_rate && a->period == b->period &&
	       !((a->flags ^ b->flags) & PERFPERSIST_FREQ) && !strcmp(a->filter, b->filter) &&
	       !strcmp(a->cpus, b->cpus);
}

static bool has_same_rings(const struct target *t, const struct perfpersist_info *info)
{
	enum perfpersist_ring_state state;

	if (!t->file || t->info.set != info->set || !has_same_text(&t->info, info))
		return false;
	state = perfpersist_event_state(t->event);
	return state == PERFPERSIST_RINGS_RUNNING || state == PERFPERSIST_RINGS_PAUSED;
}

static int take_info(struct checkpointing *c, const struct perfpersist_info *info)
{
	struct target *t;
	size_t i;

	for (i = 0; i < c->n && c->all[i].info.id != info->id; i++)
		;
	if (i == c->n) {
		if (!GROW(c->all, c->n))
			return -ENOMEM;
		c->all[c->n++] = (struct target){ .info = *info, .is_kept = true };
	}
	t = &c->all[i];
	t->is_seen = true;
	t->is_stale |= !has_same_rings(t, info);
	t->info = *info;
	return 0;
}

/* Events that are gone, or ask for checkpoints no more, make room for others. */
static void drop_unseen(struct checkpointing *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		if (c->all[i].is_seen)
			c->all[n++] = c->all[i];
		else
			target_close(&c->all[i]);
	}
	c->n = n;
}

static bool is_wanted(const struct perfpersist_info *info)
{
	return PERFPERSIST_CHECKPOINT_OF(info->flags) && info->state != PERFPERSIST_CREATING &&
	       info->state != PERFPERSIST_DELETING;
}

static void mark_seen(struct checkpointing *c, const struct perfpersist_info *infos, size_t n)
{
	for (size_t k = 0; k < c->n; k++) {
		c->all[k].is_seen = false;
		for (size_t i = 0; i < n; i++)
			c->all[k].is_seen |=
				infos[i].id == c->all[k].info.id && is_wanted(&infos[i]);
	}
}

int targets_look(struct checkpointing *c)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n = 0;
	int r;

	c->came = false; /* a notice that comes during the list may be of what was listed already */
	r = perfpersist_list(c->p, NULL, &infos, &n);
	if (r < 0)
		return r;
	c->looked = checkpoint_now();
	mark_seen(c, infos, n);
	drop_unseen(c);
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (is_wanted(&infos[i]))
			r = take_info(c, &infos[i]);
	if (r >= 0)
		sweep(c);
	return r;
}
