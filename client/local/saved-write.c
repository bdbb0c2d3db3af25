// SPDX-License-Identifier: LGPL-2.1-or-later
/* The files of one event in a save: its rings, its catalog, and its texts, as in the registry. Each
 * text ends with a line that is always there, so that truncation shows. */
#include "client/local/saved-write.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "client/info.h"
#include "proto/clock.h"
#include "proto/event-text.h"
#include "proto/io.h"
#include "proto/macro.h"

#define FILE_NAME_SIZE 32 /* the longest is "cpu4294967295" */

struct saved_rights saved_rights_of(const struct perfpersist_info *info)
{
	return (struct saved_rights){ .group = info->group, .mode = 0600 | (info->mode & 044) };
}

mode_t saved_dir_mode(const struct saved_rights *rights)
{
	return rights->mode | 0100 | (rights->mode & 044) >> 2;
}

int saved_give(int fd, const struct saved_rights *rights, mode_t mode)
{
	if (fchown(fd, (uid_t)-1, rights->group) < 0) {
		if (errno != EPERM)
			return -errno;
		mode &= ~077U; /* without its group the file must not be readable for another one */
	} else if (rights->group == (gid_t)-1) {
		mode &= ~077U;
	}
	return fchmod(fd, mode) < 0 ? -errno : 0;
}

int saved_write_file(int dir_fd, const char *name, const void *bytes, size_t n,
		     const struct saved_rights *rights)
{
	_cleanup_close_ int fd =
		openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = pp_write_all(fd, bytes, n);
	if (r >= 0)
		r = saved_give(fd, rights, rights->mode);
	if (r < 0)
		return r;
	return close(TAKE_FD(fd)) < 0 ? -errno : 0; /* some file systems report errors only here */
}

/* ── The texts ──────────────────────────────────────────────────────────────────────────── */

void saved_print_info(FILE *f, const struct perfpersist_info *info)
{
	struct pp_event_text t = {
		.saved_mono = info->saved_mono,
		.saved = info->saved,
		.skipped = info->skipped,
	};

	client_info_to_message(info, &t.event);
	t.event.mode &= 0777;
	if (t.event.state != PP_EVENT_PAUSED)
		t.event.state = PP_EVENT_RUNNING;
	pp_event_text_write(f, &t);
}

struct totals {
	uint64_t records, bytes, limited, missed;
};

static void print_stat_line(FILE *f, const struct totals *t, bool missed_unknown, bool at_least)
{
	fprintf(f, "records=%" PRIu64 " bytes=%" PRIu64 " limited=%" PRIu64 " missed=", t->records,
		t->bytes, t->limited);
	if (missed_unknown)
		fputs("unknown\n", f);
	else
		fprintf(f, "%" PRIu64 "%s\n", t->missed, at_least ? "+" : "");
}

/* Only rings of a single sampling event tell the misses of a CPU; other events have just a
 * total. */
static void print_stat(FILE *f, const struct perfpersist_info *info, const uint32_t *cpus,
		       const struct saved_ring_counts *rings, size_t n)
{
	bool by_ring = info->recorder == PERFPERSIST_RECORDER_OVERFLOW && info->sources <= 1;
	struct totals all = { .missed = 0 };

	for (size_t i = 0; i < n; i++) {
		struct totals one = { rings[i].records, rings[i].bytes, rings[i].limited,
				      rings[i].missed };

		fprintf(f, "cpu%u ", cpus[i]);
		print_stat_line(f, &one, !by_ring, false);
		all.records += one.records;
		all.bytes += one.bytes;
		all.limited += one.limited;
		all.missed += one.missed;
	}
	if (!by_ring)
		all.missed = MAX(all.missed, info->missed);
	fputs("total ", f);
	print_stat_line(f, &all, !by_ring && info->missed_unknown, info->missed_at_least);
}

/* ── The files ──────────────────────────────────────────────────────────────────────────── */

struct event_files {
	int dir_fd;
	struct saved_rights rights;
	char *file; /* the file being written */
};

static int write_stream(const struct event_files *w, const char *name, FILE *f, char **text,
			const size_t *size)
{
	int r = fclose(f) ? -ENOMEM : 0;

	snprintf(w->file, FILE_NAME_SIZE, "%s", name);
	if (r >= 0)
		r = saved_write_file(w->dir_fd, name, *text, *size, &w->rights);
	free(*text);
	return r;
}

static int write_info(const struct event_files *w, const struct perfpersist_info *info)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	saved_print_info(f, info);
	return write_stream(w, "info", f, &text, &size);
}

static int write_stat(const struct event_files *w, const struct perfpersist_info *info,
		      struct perfpersist_event *e, const struct saved_ring_counts *counts)
{
	_cleanup_free_ uint32_t *cpus = calloc(e->n + 1, sizeof(*cpus));
	char *text = NULL;
	size_t size = 0;
	FILE *f = cpus ? open_memstream(&text, &size) : NULL;

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < e->n; i++)
		cpus[i] = e->rings[i].header.cpu;
	print_stat(f, info, cpus, counts, e->n);
	return write_stream(w, "stat", f, &text, &size);
}

static int write_rings(const struct event_files *w, const struct perfpersist_event *e,
		       struct saved_ring_counts *counts, struct saved_event_counts *ret)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < e->n; i++) {
		snprintf(w->file, FILE_NAME_SIZE, "cpu%u", e->rings[i].header.cpu);
		r = saved_write_ring(w->dir_fd, w->file, &e->rings[i], &e->catalog, &w->rights,
				     &counts[i]);
		ret->records += counts[i].held;
		ret->bytes += counts[i].held_bytes;
		ret->damaged += counts[i].damaged;
	}
	if (r < 0 || !e->catalog.bytes)
		return r;
	snprintf(w->file, FILE_NAME_SIZE, "catalog");
	return saved_write_file(w->dir_fd, "catalog", e->catalog.bytes,
				((const struct pp_catalog_header *)e->catalog.bytes)->size,
				&w->rights);
}

/* Readers take a save as complete until then: it must be before any of the rings is copied. */
static void note_time(const struct perfpersist_event *e, struct perfpersist_info *info)
{
	info->saved_mono = e->copied ?: pp_clock_ns(CLOCK_MONOTONIC);
	info->saved = pp_clock_real(info->saved_mono);
}

int saved_write_event(int dir_fd, struct perfpersist_event *e, const struct perfpersist_info *event,
		      struct saved_event_counts *ret, char ret_file[static FILE_NAME_SIZE])
{
	const struct event_files w = { dir_fd, saved_rights_of(event), ret_file };
	_cleanup_free_ struct saved_ring_counts *counts = calloc(e->n + 1, sizeof(*counts));
	struct saved_event_counts all = { .records = 0 };
	struct perfpersist_info info = *event;
	int r;

	if (!info.saved)
		note_time(e, &info);
	r = counts ? write_rings(&w, e, counts, &all) : -ENOMEM;
	if (r >= 0)
		r = write_info(&w, &info);
	if (r >= 0)
		r = write_stat(&w, &info, e, counts);
	if (r >= 0)
		*ret = all;
	return r;
}
