// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/collect.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/events/announce.h"
#include "client/perfctl/events/take.h"
#include "client/perfctl/events/tape.h"
#include "client/perfctl/output/outfile.h"
#include "proto/clock.h"
#include "proto/fired.h"

#define SECOND 1000000000ULL
#define RETRY_MAX (60 * SECOND)
#define IDLE (3 * SECOND)
#define JUST_NOW (SECOND / 2)
#define LOOKS_MAX 10 /* in a row, while others save or release the same tapes */

struct collecting {
	struct call *call;
	const struct collect_options *options;
	struct perfpersist *p;
	bool came;   /* a notice of a tape */
	int missing; /* exit code: with --once, whether all that are named have frozen something */
	uint64_t retry; /* ns, until what could not be written is tried again; 0: nothing waits */
	unsigned looks;
};

/* ── one firing ─────────────────────────────────────────────────────────────────────────── */

/* The tapes of one firing: tapes[0 … n). */
struct firing {
	const struct perfpersist_tape *tapes;
	size_t n;
};

static void describe(const struct firing *f, struct spooled *ret)
{
	const struct perfpersist_tape *t = f->tapes;

	*ret = (struct spooled){
		.number = t->number,
		.id = f->tapes[f->n - 1].id,
		.pid = t->by_hand ? 0 : t->pid,
		.time = pp_clock_real(t->fired),
	};
	memcpy(ret->ns, t->ns, sizeof(ret->ns));
	snprintf(ret->trigger, sizeof(ret->trigger), "%s", tape_trigger(t));
	if (t->by_hand)
		strcpy(ret->comm, "hand");
	else if (t->overdue)
		strcpy(ret->comm, "overdue");
	else
		memcpy(ret->comm, t->comm, sizeof(ret->comm));
	spool_name(ret);
}

/* The trigger's own event: its newest record until then is what fired. Records of earlier firings would
 * bring the sideband of all the time since then. */
static int window_of(struct perfpersist_event *trigger, uint64_t fired, struct take_window *ret)
{
	struct perfpersist_interleave *records = NULL;
	struct perfpersist_sample s;
	size_t event;
	int r = perfpersist_interleave_new(&trigger, 1, &records);

	if (r < 0)
		return r;
	*ret = (struct take_window){ .until = fired };
	while ((r = perfpersist_interleave_next(records, &s, &event)) > 0 && s.time <= fired)
		ret->since = s.time;
	perfpersist_interleave_free(records);
	return r;
}

/* The tapes, and the trigger's own event, which tells what fired. 1: nothing is left of them. -ESTALE: of some;
 * another collector saves or somebody releases them just now. */
static int open_all(struct collecting *c, const struct firing *f, struct chosen *ret,
		    struct take_window *windows)
{
	_cleanup_(chosen_done) struct chosen events = {
		.events = calloc(f->n + 1, sizeof(*events.events)),
	};
	int r = 0;

	if (!events.events)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++) {
		r = perfpersist_open_by_id(c->p, f->tapes[i].id, &events.events[events.n]);
		if (r == -ENOENT) /* somebody has released it */
			continue;
		if (r < 0)
			return r;
		events.n++;
	}
	if (!events.n)
		return 1;
	if (events.n < f->n && c->looks < LOOKS_MAX)
		return -ESTALE;
	if (events.n < f->n)
		complain("%zu of %zu events that %s/%s has frozen (number %" PRIu64
			 ") are not there any more",
			 f->n - events.n, f->n, f->tapes[0].ns, tape_trigger(f->tapes),
			 f->tapes[0].number);
	r = perfpersist_open_by_id(c->p, f->tapes[0].trigger, &events.events[events.n]);
	if (r < 0 && r != -ENOENT) /* that: it was removed */
		return r;
	if (r >= 0) {
		struct take_window *window = &windows[events.n];

		/* No record fired if one was missing, or if somebody did. */
		*window = (struct take_window){ f->tapes[0].fired, f->tapes[0].fired };
		if (!f->tapes[0].overdue && !f->tapes[0].by_hand) {
			r = window_of(events.events[events.n], f->tapes[0].fired, window);
			if (r >= 0 && !window->since)
				complain(
					"the record with which %s/%s has fired (number %" PRIu64
					") was overwritten by later ones before it could be saved; "
					"add the trigger with a larger buffer (-m)",
					f->tapes[0].ns, tape_trigger(f->tapes), f->tapes[0].number);
		}
		events.n++;
		if (r < 0)
			return r;
	}
	*ret = events;
	events = (struct chosen){};
	return 0;
}

/* So many bytes at most, as far as it can be known. */
static uint64_t estimate(const struct chosen *events)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	uint64_t bytes = 0;

	for (size_t i = 0; i < events->n; i++)
		if (perfpersist_event_info(events->events[i], &info) >= 0)
			bytes += MIN(info.bytes, info.memory ?: info.bytes);
	return bytes;
}

struct rights {
	bool give; /* to the directory's owner and group: what root saves in the services' stead is for them */
	uid_t owner;
	gid_t group;
	mode_t mode;
};

/* Readers of the directory get no more than the namespace gives its group. */
static int find_rights(const struct collecting *c, const struct chosen *events, struct rights *ret)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct stat st;

	*ret = (struct rights){ .group = getegid(), .mode = 0640 };
	if (stat(c->options->directory, &st) < 0)
		return -errno;
	if (c->options->is_spool && geteuid() == 0)
		*ret = (struct rights){ true, st.st_uid, st.st_gid, 0640 };
	for (size_t i = 0; i < events->n; i++)
		if (perfpersist_event_info(events->events[i], &info) < 0 || !(info.mode & 040) ||
		    info.group != ret->group)
			ret->mode = 0600;
	return 0;
}

static int sync_directory(const char *directory)
{
	_cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* 1: nothing is left to be written. -ENOSPC, -EDQUOT: maybe with older files gone. -ESTALE: the tapes are to be
 * listed again. */
static int write_file(struct collecting *c, const struct firing *f, const struct spooled *file,
		      const char *path)
{
	_cleanup_free_ struct take_window *windows = calloc(f->n + 1, sizeof(*windows));
	_cleanup_(outfile_done) struct outfile out = OUTFILE_NONE;
	_cleanup_(chosen_done) struct chosen events = {};
	const struct spool_limits *limits = &c->options->limits;
	struct take_result result = {};
	struct stat st = {};
	struct rights rights;
	uint64_t bytes;
	int r;

	if (!windows)
		return -ENOMEM;
	r = open_all(c, f, &events, windows);
	if (r != 0) /* no room for copies is none that older files take */
		return r == -EDQUOT || r == -ENOSPC ? -EAGAIN : r;
	/* Not all at once for one that is larger than everything may be. */
	bytes = estimate(&events);
	if (limits->bytes)
		bytes = MIN(bytes, limits->bytes / 2);
	r = find_rights(c, &events, &rights);
	if (r >= 0)
		r = spool_make_room(c->options->directory, limits, file, bytes);
	if (r >= 0)
		r = outfile_open(path, &out);
	if (r < 0)
		return r;
	r = take_opened(c->call, c->p, &events, windows, out.fd, &result);
	if (r >= 0)
		r = spool_mark(out.fd, f->tapes, f->n);
	if (r < 0)
		return r;
	if (rights.give && fchown(out.fd, rights.owner, rights.group) < 0)
		return -errno;
	if (fchmod(out.fd, rights.mode) < 0 || fsync(out.fd) < 0 || fstat(out.fd, &st) < 0)
		return -errno;
	result.bytes = (uint64_t)st.st_size;
	r = spool_make_room(c->options->directory, limits, file, (uint64_t)st.st_blocks * 512);
	/* Else another collector's file could give way to one with less. */
	if (r >= 0)
		r = outfile_commit_new(&out);
	if (r == -EEXIST)
		return -ESTALE;
	if (r >= 0)
		r = sync_directory(c->options->directory);
	if (r >= 0)
		announce(path, file, f->tapes, &result);
	return r;
}

static int release(struct collecting *c, const struct perfpersist_tape *tape)
{
	int r = perfpersist_tape_release(c->p, tape->id);

	if (r < 0 && r != -ENOENT)
		complain("%s", perfpersist_error(c->p));
	return r == -ENOENT ? 0 : r;
}

/*
 * Releases those tapes of a firing that a file has already: this was killed before it could. The others go to
 * `rest`, which has room for all: an event whose turn failed at first gives its tape later, when the firing has
 * a file. A new file gets an id that is newer than those of the others: an event that is frozen without a
 * second set is its own tape, and has the same id at each firing, from before all of them.
 */
static int release_saved(struct collecting *c, const struct firing *f, struct spooled *file,
			 struct perfpersist_tape *rest, size_t *ret_n)
{
	_cleanup_free_ struct spooled *all = NULL;
	const char *directory = c->options->directory;
	size_t n = 0, n_rest = 0;
	int r = 0;

	if (spool_list(directory, &all, &n) < 0)
		n = 0; /* rather twice than not at all */
	for (size_t i = 0; r >= 0 && i < f->n; i++) {
		size_t k;

		for (k = 0; k < n && !(all[k].number == f->tapes[i].number &&
				       !strcmp(all[k].ns, f->tapes[i].ns) &&
				       spool_has(directory, &all[k], &f->tapes[i]));)
			k++;
		if (k < n)
			r = release(c, &f->tapes[i]);
		else
			rest[n_rest++] = f->tapes[i];
	}
	if (n) {
		file->id = MAX(file->id, all[n - 1].id + 1);
		spool_name(file);
	}
	*ret_n = n_rest;
	return r;
}

/* Tapes may be released in part when this or the daemon ends. */
static int write_and_release(struct collecting *c, const struct firing *f,
			     const struct spooled *file)
{
	char path[1024];
	int r;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", c->options->directory, file->name) >=
	    sizeof(path))
		return -ENAMETOOLONG;
	do
		r = write_file(c, f, file, path);
	while ((r == -ENOSPC || r == -EDQUOT) && spool_remove_oldest(c->options->directory) > 0);
	if (r < 0 && r != -EINTR && (r != -ESTALE || c->looks == LOOKS_MAX))
		complain("cannot write %s: %s; what was frozen waits, and this is tried again",
			 path, strerror(-r));
	for (size_t i = 0; r >= 0 && i < f->n; i++)
		r = release(c, &f->tapes[i]);
	return MIN(r, 0);
}

static int save(struct collecting *c, const struct firing *f)
{
	_cleanup_free_ struct perfpersist_tape *rest = calloc(f->n, sizeof(*rest));
	struct spooled file;
	size_t n = 0;
	int r;

	if (!rest)
		return -ENOMEM;
	describe(f, &file);
	r = release_saved(c, f, &file, rest, &n);
	return r < 0 || !n ? r : write_and_release(c, &(struct firing){ rest, n }, &file);
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static int compare(const void *a, const void *b)
{
	const struct perfpersist_tape *x = a, *y = b;

	if (x->trigger != y->trigger)
		return x->trigger < y->trigger ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* What a trigger only freezes is saved if that trigger is named. */
static bool is_wanted(const struct collecting *c, const struct perfpersist_tape *t)
{
	const struct collect_options *o = c->options;

	if (!o->n_triggers)
		return t->action != PERFPERSIST_ACTION_FREEZE;
	for (size_t i = 0; i < o->n_triggers; i++)
		if (tape_is_of(t, &o->triggers[i]))
			return true;
	return false;
}

/* EXIT_NOT_FOUND: some are named that have frozen nothing. */
static int find_named(const struct collect_options *o, const struct perfpersist_tape *tapes,
		      size_t n)
{
	int code = EXIT_OK;

	for (size_t i = 0; i < o->n_triggers; i++) {
		size_t k;

		for (k = 0; k < n && !tape_is_of(&tapes[k], &o->triggers[i]); k++)
			;
		if (k == n)
			code = tape_not_found(&o->triggers[i]);
	}
	return code;
}

/* Whether what this trigger freezes is to be saved. */
static bool is_asked_for(const struct collect_options *o, const struct perfpersist_trigger *t)
{
	if (t->action != PERFPERSIST_ACTION_SNAPSHOT && t->action != PERFPERSIST_ACTION_FREEZE)
		return false;
	for (size_t i = 0; i < o->n_triggers; i++)
		if (!strcmp(o->triggers[i].ns, t->ns) && !strcmp(o->triggers[i].name, t->name))
			return true;
	return !o->n_triggers && t->action == PERFPERSIST_ACTION_SNAPSHOT;
}

/* Whether one has fired just now, and the daemon has no tape of it yet. */
static bool is_on_its_way(const struct collecting *c)
{
	_cleanup_free_ struct perfpersist_trigger *all = NULL;
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	size_t n = 0;

	if (perfpersist_triggers(c->p, NULL, &all, &n) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (is_asked_for(c->options, &all[i]) && all[i].last && !all[i].tapes &&
		    all[i].n_targets && (int64_t)(now - all[i].last) < (int64_t)JUST_NOW)
			return true;
	return false;
}

static void wait_for_tapes(const struct collecting *c)
{
	uint64_t due = pp_clock_ns(CLOCK_MONOTONIC) + JUST_NOW;

	while (!signals_caught() && pp_clock_ns(CLOCK_MONOTONIC) < due && is_on_its_way(c))
		nanosleep(&(struct timespec){ .tv_nsec = SECOND / 50 }, NULL);
}

/* -errno: of the first one that could not be saved. */
static int save_all(struct collecting *c)
{
	_cleanup_free_ struct perfpersist_tape *tapes = NULL;
	size_t n = 0, end;
	int r = perfpersist_tapes(c->p, NULL, &tapes, &n);

	if (r < 0) {
		complain("%s", perfpersist_error(c->p));
		return r;
	}
	if (c->options->once && c->looks == 0)
		c->missing = find_named(c->options, tapes, n);
	if (n)
		qsort(tapes, n, sizeof(*tapes), compare);
	/* One that cannot be saved does not keep the others. */
	for (size_t i = 0; r != -ECONNRESET && i < n && !signals_caught(); i = end) {
		int saved;

		for (end = i + 1; end < n && tapes[end].trigger == tapes[i].trigger &&
				  tapes[end].number == tapes[i].number;)
			end++;
		if (!is_wanted(c, &tapes[i]))
			continue;
		saved = save(c, &(struct firing){ &tapes[i], end - i });
		if (saved == -ECONNRESET || saved == -ESTALE || r >= 0)
			r = saved;
	}
	return r;
}

static void on_notice(struct perfpersist *p _unused_, const struct perfpersist_notice *n,
		      void *userdata)
{
	struct collecting *c = userdata;

	/* After lost notices there may be tapes as well. */
	c->came |= n->kind == PERFPERSIST_NOTICE_TAPE || n->kind == PERFPERSIST_NOTICE_LOST;
}

static void plan(struct collecting *c, int r)
{
	c->retry = r >= 0 ? 0 : c->retry ? MIN(2 * c->retry, RETRY_MAX) : SECOND;
}

static int look(struct collecting *c)
{
	int r;

	c->came = false;
	c->looks = 0;
	do
		r = save_all(c);
	while (r == -ESTALE && !signals_caught() && c->looks++ < LOOKS_MAX);
	plan(c, r);
	return r;
}

/* How long it waits for the next tape. */
static uint64_t patience(const struct collecting *c)
{
	if (c->retry)
		return c->retry;
	return c->options->until_idle ? IDLE : 3600 * SECOND;
}

static int wait_for_more(struct collecting *c)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC), due = now + patience(c);
	int r;

	for (; !signals_caught() && !c->came && now < due; now = pp_clock_ns(CLOCK_MONOTONIC)) {
		signals_wait(due - now, perfpersist_fd(c->p));
		r = perfpersist_dispatch(c->p);
		if (r < 0)
			return call_failed(c->p, r);
	}
	/* Files grow old while nothing happens. */
	if (!c->came)
		spool_make_room(c->options->directory, &c->options->limits, NULL, 0);
	return EXIT_OK;
}

static bool is_over(const struct collecting *c)
{
	return signals_caught() || (c->options->until_idle && !c->came && !c->retry);
}

int collect(struct call *call, const struct collect_options *options)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct collecting c = { .call = call, .options = options };
	int r = call_connect(call, &p);

	if (r)
		return r;
	c.p = p;
	if (mkdir(options->directory, 0750) < 0 && errno != EEXIST) {
		complain("cannot make %s: %s", options->directory, strerror(errno));
		return EXIT_FAILED;
	}
	spool_sweep(options->directory);
	signals_catch();
	r = options->once ? 0 : perfpersist_watch(p, NULL, on_notice, &c);
	if (r < 0)
		return call_failed(p, r);
	if (options->once)
		wait_for_tapes(&c);
	do {
		r = look(&c);
		if (options->once)
			return r < 0 ? EXIT_FAILED : c.missing;
		if (r == -ECONNRESET || r == -ECONNREFUSED)
			return EXIT_NO_DAEMON;
		r = wait_for_more(&c);
	} while (!r && !is_over(&c));
	return r;
}
