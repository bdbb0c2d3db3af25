// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/firing.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/events/announce.h"
#include "client/perfctl/events/take.h"
#include "client/perfctl/events/tape.h"
#include "client/perfctl/output/outfile.h"
#include "proto/clock.h"

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

/* ns from the firing to its record: a microsecond, if nothing interrupts. */
#define RECORD_AFTER 10000000
/* A trigger that an earlier version has made writes its record first. */
#define RECORD_BEFORE 100000

/* After the end of its records: whether those of that time on that CPU are overwritten. */
static bool is_overwritten(struct perfpersist_interleave *records,
			   struct perfpersist_event *trigger, const struct perfpersist_tape *tape)
{
	for (size_t ring = 0; ring < perfpersist_event_rings(trigger); ring++) {
		struct perfpersist_history h = { .sz = sizeof(h) };

		if (perfpersist_interleave_history(records, 0, ring, &h) >= 0 && h.cpu == tape->cpu)
			return h.from > tape->fired && h.from < h.to;
	}
	return false;
}

/* The trigger's own event: what fired is its next record there, by that task. Records of earlier firings would
 * bring the sideband of all the time since then. 0: it is not there. */
static int window_of(struct perfpersist_event *trigger, const struct perfpersist_tape *tape,
		     struct take_window *ret)
{
	struct perfpersist_interleave *records = NULL;
	struct perfpersist_sample s;
	uint64_t found = 0;
	size_t event;
	int r = perfpersist_interleave_new(&trigger, 1, &records);

	if (r < 0)
		return r;
	while ((r = perfpersist_interleave_next(records, &s, &event)) > 0)
		if (found < tape->fired && s.time + RECORD_BEFORE >= tape->fired &&
		    s.time <= tape->fired + RECORD_AFTER && s.cpu == tape->cpu &&
		    s.tid == tape->tid)
			found = s.time;
	if (r == 0 && is_overwritten(records, trigger, tape))
		found = 0;
	perfpersist_interleave_free(records);
	if (r < 0 || !found)
		return MIN(r, 0);
	*ret = (struct take_window){ found, found };
	return 1;
}

/* The tapes, and the trigger's own event, which tells what fired. 1: nothing is left of them. -ESTALE: of some;
 * another collector saves or somebody releases them just now. */
static int open_all(const struct firing *f, struct chosen *ret, struct take_window *windows)
{
	_cleanup_(chosen_done) struct chosen events = {
		.events = calloc(f->n + 1, sizeof(*events.events)),
	};
	int r = 0;

	if (!events.events)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++) {
		r = perfpersist_open_by_id(f->p, f->tapes[i].id, &events.events[events.n]);
		if (r == -ENOENT) /* somebody has released it */
			continue;
		if (r < 0)
			return r;
		events.n++;
	}
	if (!events.n)
		return 1;
	if (events.n < f->n && !f->is_last_look)
		return -ESTALE;
	if (events.n < f->n)
		complain("%zu of %zu events that %s/%s has frozen (number %" PRIu64
			 ") are not there any more",
			 f->n - events.n, f->n, f->tapes[0].ns, tape_trigger(f->tapes),
			 f->tapes[0].number);
	r = perfpersist_open_by_id(f->p, f->tapes[0].trigger, &events.events[events.n]);
	if (r < 0 && r != -ENOENT) /* that: it was removed */
		return r;
	if (r >= 0) {
		struct take_window *window = &windows[events.n];

		/* No record fired if one was missing, or if somebody did. */
		*window = (struct take_window){ f->tapes[0].fired, f->tapes[0].fired };
		if (!f->tapes[0].overdue && !f->tapes[0].by_hand) {
			r = window_of(events.events[events.n], f->tapes, window);
			if (r == 0)
				complain(
					"the record with which %s/%s has fired (number %" PRIu64
					") is not there: later ones have overwritten it before it "
					"could be saved (add the trigger with a larger buffer, -m), "
					"or it had no place (see perfctl show)",
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
	uid_t owner; /* -1, and of the group: as it is */
	gid_t group;
	mode_t mode;
};

/* Readers of the directory get no more than the namespace gives its group. What root saves in the services'
 * stead is for them, too. */
static int find_rights(const struct firing *f, const struct chosen *events, struct rights *ret)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	gid_t group = getegid();
	struct stat st;

	*ret = (struct rights){ (uid_t)-1, (gid_t)-1, 0640 };
	if (f->options->is_spool && geteuid() == 0) {
		if (stat(f->options->directory, &st) < 0)
			return -errno;
		*ret = (struct rights){ st.st_uid, st.st_gid, 0640 };
		group = st.st_gid;
	}
	for (size_t i = 0; i < events->n; i++)
		if (perfpersist_event_info(events->events[i], &info) < 0 || !(info.mode & 040) ||
		    info.group != group)
			ret->mode = 0600;
	return 0;
}

static int sync_directory(const char *directory)
{
	_cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static bool is_full(int r)
{
	return r == -ENOSPC || r == -EDQUOT;
}

/* 1: nothing is left to be written. -ENOSPC, -EDQUOT: maybe with older files gone. -ESTALE: the tapes are to be
 * listed again. ret_bytes: what it takes, about; ret_written: so far. */
static int write_file(const struct firing *f, const struct spooled *file, const char *path,
		      uint64_t *ret_bytes, uint64_t *ret_written)
{
	_cleanup_free_ struct take_window *windows = calloc(f->n + 1, sizeof(*windows));
	_cleanup_(outfile_done) struct outfile out = OUTFILE_NONE;
	_cleanup_(chosen_done) struct chosen events = {};
	const struct spool_limits *limits = &f->options->limits;
	struct take_result result = {};
	struct stat st = {};
	struct rights rights;
	uint64_t bytes;
	int r;

	if (!windows)
		return -ENOMEM;
	r = open_all(f, &events, windows);
	if (r != 0) /* no room for copies is none that older files take */
		return is_full(r) ? -EAGAIN : r;
	/* Not all at once for one that is larger than everything may be. */
	*ret_bytes = bytes = estimate(&events);
	if (limits->bytes)
		bytes = MIN(bytes, limits->bytes / 2);
	r = find_rights(f, &events, &rights);
	if (r >= 0)
		r = spool_make_room(f->options->directory, limits, file, bytes);
	if (r >= 0)
		r = outfile_open(path, &out);
	if (r < 0)
		return r;
	r = take_opened(f->call, f->p, &events, windows, out.fd, &result);
	if (r >= 0)
		r = spool_mark(out.fd, f->tapes, f->n);
	if (r < 0) {
		*ret_written = fstat(out.fd, &st) < 0 ? 0 : (uint64_t)st.st_blocks * 512;
		return r;
	}
	/* The service may not call it, even to change nothing. */
	if (rights.owner != (uid_t)-1 && fchown(out.fd, rights.owner, rights.group) < 0)
		return -errno;
	if (fchmod(out.fd, rights.mode) < 0 || fsync(out.fd) < 0 || fstat(out.fd, &st) < 0)
		return -errno;
	result.bytes = (uint64_t)st.st_size;
	r = spool_make_room(f->options->directory, limits, file, (uint64_t)st.st_blocks * 512);
	/* Else another collector's file could give way to one with less. */
	if (r >= 0)
		r = outfile_commit_new(&out);
	if (r == -EEXIST)
		return -ESTALE;
	if (r >= 0)
		r = sync_directory(f->options->directory);
	if (r >= 0)
		announce(path, file, f->tapes, &result);
	return r;
}

static int release(const struct firing *f, const struct perfpersist_tape *tape)
{
	int r = perfpersist_tape_release(f->p, tape->id);

	if (r < 0 && r != -ENOENT)
		complain("%s", perfpersist_error(f->p));
	return r == -ENOENT ? 0 : r;
}

/*
 * Releases those tapes of a firing that a file has already: this was killed before it could. The others go to
 * `rest`, which has room for all: an event whose turn failed at first gives its tape later, when the firing has
 * a file. A new file gets an id that is newer than those of the others: an event that is frozen without a
 * second set is its own tape, and has the same id at each firing, from before all of them.
 */
static int release_saved(const struct firing *f, struct spooled *file,
			 struct perfpersist_tape *rest, size_t *ret_n)
{
	_cleanup_free_ struct spooled *all = NULL;
	const char *directory = f->options->directory;
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
			r = release(f, &f->tapes[i]);
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

/* On a full disk with older files gone, as long as the file gets longer by that: who fills the disk would have them all
 * removed. */
static int write_in_place_of_others(const struct firing *f, const struct spooled *file,
				    const char *path)
{
	uint64_t bytes = 0, written = 0, removed = 0, before;
	int r;

	for (;;) {
		before = written;
		r = write_file(f, file, path, &bytes, &written);
		if (is_full(r) && removed && written < before + removed / 2)
			*f->in_vain = true;
		if (!is_full(r) || *f->in_vain ||
		    spool_remove_one(f->options->directory, file, bytes, &removed) <= 0)
			break;
	}
	if (r == 0)
		*f->in_vain = false;
	return r;
}

/* Tapes may be released in part when this or the daemon ends. */
static int write_and_release(const struct firing *f, const struct spooled *file)
{
	char path[1024];
	int r;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", f->options->directory, file->name) >=
	    sizeof(path))
		return -ENAMETOOLONG;
	r = write_in_place_of_others(f, file, path);
	if (r < 0 && r != -EINTR && (r != -ESTALE || f->is_last_look))
		complain("cannot write %s: %s; what was frozen waits, and this is tried again",
			 path, strerror(-r));
	for (size_t i = 0; r >= 0 && i < f->n; i++)
		r = release(f, &f->tapes[i]);
	return MIN(r, 0);
}

int firing_save(const struct firing *f)
{
	_cleanup_free_ struct perfpersist_tape *rest = calloc(f->n, sizeof(*rest));
	struct firing unsaved = *f;
	struct spooled file;
	int r;

	if (!rest)
		return -ENOMEM;
	describe(f, &file);
	r = release_saved(f, &file, rest, &unsaved.n);
	unsaved.tapes = rest;
	return r < 0 || !unsaved.n ? r : write_and_release(&unsaved, &file);
}
