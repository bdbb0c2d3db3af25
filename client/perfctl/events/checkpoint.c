// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/checkpoint-internal.h"

#include <inttypes.h>
#include <string.h>

#include "client/perfctl/events/choose.h"
#include "client/perfctl/print/info.h"

#define SECOND 1000000000ULL
#define RETRY (2 * SECOND)
#define RELIST (30 * SECOND) /* what there was no room for is tried again */
#define LOOK_AGAIN SECOND    /* whatever is created and deleted meanwhile */
/* A slow disk is for others, too: an event waits so many times as long as a write of it took. */
#define SLOW 32
#define SLOW_MAX (60 * SECOND)

static void checkpointing_done(struct checkpointing *c)
{
	for (size_t i = 0; i < c->n; i++)
		target_close(&c->all[i]);
	free(c->all);
	perfpersist_free(c->p);
	perfpersist_checkpoints_free(c->files);
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
	return MAX(t->due, budget_ready(&c->budget, target_is_root(t)));
}

/* Root's events come first, then those that have waited the longest. */
static bool is_before(const struct target *a, const struct target *b)
{
	return target_is_root(a) != target_is_root(b) ? target_is_root(a) : a->due < b->due;
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
		n += is_waiting(c, &c->all[i]) && target_is_root(&c->all[i]) == target_is_root(t) &&
		     c->all[i].due <= until;
	return budget_share(&c->budget, target_is_root(t), n);
}

static void write_target(struct checkpointing *c, struct target *t, uint64_t max_bytes)
{
	struct perfpersist_checkpoint_stat stat = { .sz = sizeof(stat) };
	uint64_t began = checkpoint_now(), ended;
	int r = perfpersist_checkpoint_write(t->file, max_bytes, &stat);

	ended = checkpoint_now();
	t->due = ended + MAX(PERFPERSIST_CHECKPOINT_OF(t->info.flags) * SECOND,
			     MIN(SLOW * (ended - began), SLOW_MAX));
	if (r < 0) {
		target_say(t, perfpersist_error(NULL));
		target_keep(t);
		return;
	}
	if (stat.written)
		budget_spend(&c->budget, target_is_root(t), stat.written);
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
		target_open(c, next);
	else
		write_target(c, next, share_of(c, next, until));
	return true;
}

/* One: meanwhile another may have come to be due that goes first. */
static void write_next(struct checkpointing *c)
{
	uint64_t t = checkpoint_now();

	budget_refill(&c->budget, t);
	go_on_with_next(c, t);
}

/* The last one of each, as far as the limit allows. */
static void write_all(struct checkpointing *c)
{
	uint64_t t = checkpoint_now();

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
	c->looked = checkpoint_now();
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
	uint64_t due = next_look(c), t = checkpoint_now();

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
		if (!c->p && checkpoint_now() >= next_look(c))
			reconnect(c);
		if (c->p && checkpoint_now() >= next_look(c) && targets_look(c) < 0)
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
	budget_init(&c->budget, c->options->max_rate, checkpoint_now());
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
	r = targets_look(c);
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
