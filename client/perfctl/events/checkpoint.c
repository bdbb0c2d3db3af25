// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/checkpoint.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/budget.h"
#include "client/perfctl/events/choose.h"
#include "client/perfctl/print/info.h"
#include "proto/clock.h"

#define SECOND 1000000000ULL
#define RETRY (2 * SECOND)
#define RELIST (30 * SECOND) /* what there was no room for is tried again */
#define LOOK_AGAIN SECOND    /* whatever is created and deleted meanwhile */
/* A slow disk is for others, too: an event waits so many times as long as a write of it took. */
#define SLOW 32
#define SLOW_MAX (60 * SECOND)

/* An event that asks for checkpoints. */
struct target {
	struct perfpersist_info info;
	struct perfpersist_event *event;     /* NULL: there are no checkpoints of it now */
	struct perfpersist_checkpoint *file; /* NULL likewise */
	uint64_t size;			     /* of the file; also of one that is kept */
	uint64_t due;			     /* CLOCK_MONOTONIC, ns */
	bool is_seen;			     /* in the present list */
	bool is_stale;			     /* is to be opened, or opened again, when it is due */
	bool is_kept; /* not opened yet, or in vain: its file stays as it is */
	bool has_complained;
	bool has_skipped;
};

struct checkpointing {
	struct call *call;
	const struct checkpoint_options *options;
	struct perfpersist_checkpoints *files;
	struct perfpersist *p; /* NULL: the daemon is away */
	struct target *all;
	size_t n;
	bool came;	 /* a notice: the list may be another */
	bool is_told;	 /* that the daemon is away */
	uint64_t looked; /* when it was read, CLOCK_MONOTONIC, ns; 0: not yet */
	struct budget budget;
};

static uint64_t now(void)
{
	return pp_clock_ns(CLOCK_MONOTONIC);
}

static void close_target(struct target *t)
{
	perfpersist_checkpoint_free(t->file);
	perfpersist_event_free(t->event);
	t->file = NULL;
	t->event = NULL;
	t->size = 0;
	t->is_kept = false;
}

/* Closes it, but its file stays as it is. */
static void keep_target(struct target *t)
{
	uint64_t size = t->size;

	close_target(t);
	t->size = size;
	t->is_kept = true;
}

static void checkpointing_done(struct checkpointing *c)
{
	for (size_t i = 0; i < c->n; i++)
		close_target(&c->all[i]);
	free(c->all);
	perfpersist_free(c->p);
	perfpersist_checkpoints_free(c->files);
}

/* ── which events ───────────────────────────────────────────────────────────────────────── */

static bool is_root(const struct target *t)
{
	return !t->info.creator;
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

static void say(struct target *t, const char *why)
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
	say(t, why);
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
		budget_spend(&c->budget, is_root(t), BUDGET_WRITE);
	if (r < 0) {
		say(t, perfpersist_error(NULL));
		return r;
	}
	t->size = size;
	t->has_complained = false;
	return 0;
}

/* It is due as before: an event that changes often has no more checkpoints. */
static void open_target(struct checkpointing *c, struct target *t)
{
	uint64_t had = t->size;
	int r;

	close_target(t);
	t->is_stale = false;
	r = perfpersist_open_by_id(c->p, t->info.id, &t->event);
	if (r < 0 && r != -ENOENT)
		say(t, perfpersist_error(c->p));
	if (r >= 0)
		r = open_file(c, t, had);
	if (r != 0)
		close_target(t);
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
			close_target(&c->all[i]);
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

static int look(struct checkpointing *c)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n = 0;
	int r = perfpersist_list(c->p, NULL, &infos, &n);

	if (r < 0)
		return r;
	c->came = false;
	c->looked = now();
	mark_seen(c, infos, n);
	drop_unseen(c);
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (is_wanted(&infos[i]))
			r = take_info(c, &infos[i]);
	if (r >= 0)
		sweep(c);
	return r;
}

/* ── writing ────────────────────────────────────────────────────────────────────────────── */

/* While there is no daemon, nothing is opened. */
static bool is_to_open(const struct checkpointing *c, const struct target *t)
{
	return t->is_stale && c->p;
}

static bool is_waiting(const struct checkpointing *c, const struct target *t)
{
	return t->file || is_to_open(c, t);
}

static uint64_t due_of(const struct checkpointing *c, const struct target *t)
{
	return MAX(t->due, budget_ready(&c->budget, is_root(t)));
}

/* Root's events come first, then those that have waited the longest. */
static bool is_before(const struct target *a, const struct target *b)
{
	return is_root(a) != is_root(b) ? is_root(a) : a->due < b->due;
}

static struct target *next_due(const struct checkpointing *c, uint64_t until)
{
	struct target *next = NULL;

	for (size_t i = 0; i < c->n; i++)
		if (is_waiting(c, &c->all[i]) && due_of(c, &c->all[i]) <= until &&
		    (!next || is_before(&c->all[i], next)))
			next = &c->all[i];
	return next;
}

/* Equal parts of the limit; what one leaves is for those behind it. */
static uint64_t share_of(const struct checkpointing *c, const struct target *t, uint64_t until)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += is_waiting(c, &c->all[i]) && is_root(&c->all[i]) == is_root(t) &&
		     c->all[i].due <= until;
	return budget_share(&c->budget, is_root(t), n);
}

static void write_target(struct checkpointing *c, struct target *t, uint64_t max_bytes)
{
	struct perfpersist_checkpoint_stat stat = { .sz = sizeof(stat) };
	uint64_t began = now(), ended;
	int r = perfpersist_checkpoint_write(t->file, max_bytes, &stat);

	ended = now();
	t->due = ended + MAX(PERFPERSIST_CHECKPOINT_OF(t->info.flags) * SECOND,
			     MIN(SLOW * (ended - began), SLOW_MAX));
	if (r < 0) {
		say(t, perfpersist_error(NULL));
		keep_target(t);
		return;
	}
	if (stat.written)
		budget_spend(&c->budget, is_root(t), stat.written);
	if (stat.skipped && !t->has_skipped)
		complain("checkpoints of %s/%s leave out records for --max-rate; `perfctl "
			 "--saved=previous-boot show` will say how many bytes",
			 t->info.ns, t->info.name);
	t->has_skipped |= stat.skipped > 0;
	/* Other rings have taken their place. */
	if (perfpersist_event_state(t->event) >= PERFPERSIST_RINGS_RETIRED)
		c->came = true;
}

/* Opens or writes one that is due; false: there is none. A new file may use up what there was for a write,
 * which then waits; the file before it stays until then. */
static bool go_on_with_next(struct checkpointing *c, uint64_t until)
{
	struct target *next = next_due(c, until);

	if (!next)
		return false;
	if (is_to_open(c, next))
		open_target(c, next);
	else
		write_target(c, next, share_of(c, next, until));
	return true;
}

/* One: meanwhile another may have come to be due that goes first. */
static void write_next(struct checkpointing *c)
{
	uint64_t t = now();

	budget_refill(&c->budget, t);
	go_on_with_next(c, t);
}

/* The last one of each, as far as the limit allows. */
static void write_all(struct checkpointing *c)
{
	uint64_t t = now();

	budget_refill(&c->budget, t);
	for (size_t i = 0; i < c->n; i++)
		c->all[i].due = 0;
	while (go_on_with_next(c, t))
		;
}

/* ── the daemon ─────────────────────────────────────────────────────────────────────────── */

static void on_notice(struct perfpersist *p _unused_, const struct perfpersist_notice *n _unused_,
		      void *userdata)
{
	struct checkpointing *c = userdata;

	c->came = true;
}

static void disconnect(struct checkpointing *c)
{
	if (!c->is_told)
		complain("%s; meanwhile the buffers that are open are written",
			 perfpersist_error(c->p));
	c->is_told = true;
	perfpersist_free(c->p);
	c->p = NULL;
	c->looked = now();
}

/* While there is no daemon, the rings that are open are written. */
static void reconnect(struct checkpointing *c)
{
	if (perfpersist_connect(&c->call->connect, &c->p) < 0 ||
	    perfpersist_watch(c->p, NULL, on_notice, c) < 0) {
		disconnect(c);
		return;
	}
	c->looked = 0;
	c->is_told = false;
}

/* When it asks the daemon again: for the events, or whether it is there. */
static uint64_t next_look(const struct checkpointing *c)
{
	if (!c->p)
		return c->looked + RETRY;
	if (!c->looked)
		return 0;
	return c->looked + (c->came ? LOOK_AGAIN : RELIST);
}

static void wait_for_more(struct checkpointing *c)
{
	uint64_t due = next_look(c), t = now();

	for (size_t i = 0; i < c->n; i++)
		if (is_waiting(c, &c->all[i]))
			due = MIN(due, due_of(c, &c->all[i]));
	/* One notice is as good as many. */
	if (due > t)
		signals_wait(due - t, c->p && !c->came ? perfpersist_fd(c->p) : -1);
	if (c->p && perfpersist_dispatch(c->p) < 0)
		disconnect(c);
}

static void go_on(struct checkpointing *c)
{
	while (!signals_caught()) {
		if (!c->p && now() >= next_look(c))
			reconnect(c);
		if (c->p && now() >= next_look(c) && look(c) < 0)
			disconnect(c);
		write_next(c);
		wait_for_more(c);
	}
}

/* ── beginning ──────────────────────────────────────────────────────────────────────────── */

/* What cannot be saved now, for a full disk, can be at the next start. */
static void recover(struct checkpointing *c)
{
	struct perfpersist_save_result result = { .sz = sizeof(result) };
	int r = perfpersist_checkpoints_recover(c->files, (uint32_t)c->options->keep, &result);

	if (r < 0)
		complain("%s", perfpersist_error(NULL));
	if (r > 0)
		printf("%s: %" PRIu64 " record%s of %u event%s, from before the boot\n",
		       result.path, result.records, result.records == 1 ? "" : "s", result.events,
		       result.events == 1 ? "" : "s");
	fflush(stdout);
	/* The error is one of these. */
	if (result.failed > (r < 0))
		complain("%u of the checkpoints from before the boot are not in a save: %s",
			 result.failed, result.message);
}

static int begin(struct checkpointing *c)
{
	int r = perfpersist_checkpoints_open(c->call->connect.instance, c->options->directory,
					     &c->files);

	if (r < 0)
		return call_failed(NULL, r);
	recover(c);
	budget_init(&c->budget, c->options->max_rate, now());
	return EXIT_OK;
}

/* Nothing was left of the limit when it was its turn. */
static void say_left_out(const struct checkpointing *c, const struct target *t)
{
	complain(
		"no checkpoint of %s/%s is written: what --max-rate %s allows at once is used up%s; raise it",
		t->info.ns, t->info.name, format_size(c->options->max_rate).s,
		t->info.creator ? ", of which users other than root get half" : "");
}

/* Each that is not written has been complained of. */
static int result_of_all(const struct checkpointing *c)
{
	int code = EXIT_OK;

	for (size_t i = 0; i < c->n; i++) {
		const struct target *t = &c->all[i];
		bool is_left_out = is_waiting(c, t) && !t->due;

		if (is_left_out)
			say_left_out(c, t);
		if (is_left_out || t->has_complained)
			code = EXIT_FAILED;
	}
	return code;
}

static int write_once(struct checkpointing *c)
{
	int r = call_connect(c->call, &c->p);

	if (r)
		return r;
	r = look(c);
	if (r < 0)
		return call_failed(c->p, r);
	write_all(c);
	return result_of_all(c);
}

int checkpoint(struct call *call, const struct checkpoint_options *options)
{
	_cleanup_(checkpointing_done) struct checkpointing c = { .call = call, .options = options };
	int r;

	allow_descriptors();
	r = begin(&c);
	if (r)
		return r;
	if (options->once)
		return write_once(&c);
	signals_catch();
	call->connect.sz = sizeof(call->connect);
	reconnect(&c);
	go_on(&c);
	write_all(&c);
	return EXIT_OK;
}
