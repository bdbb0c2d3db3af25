/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A save in a directory of its own, for tests: writes it and opens it. */
#pragma once

#include "client/local/saved-make.h"
#include "client/local/saved-write.h"
#include "tests/unit/ring-writer.h"

#include <ftw.h>
#include <sys/stat.h>

#define RINGS 4

static char root[] = "/tmp/perfpersist-saved-XXXXXX";
static char save[64]; /* below root */
static char path[256];
static char why[1024]; /* the last error message */

static inline struct perfpersist_info the_info(void)
{
	return (struct perfpersist_info){
		.sz = sizeof(struct perfpersist_info),
		.id = WRITER_EVENT_ID,
		.ns = "space",
		.name = "name",
		.event = "sys:tracepoint",
		.filter = "a == 1 &&\nb == 2",
		.cpus = "0-3",
		.recorder = PERFPERSIST_RECORDER_GENERIC,
		.state = PERFPERSIST_PAUSED,
		.sources = 1,
		.set = 1,
		.flags = PERFPERSIST_ALL_CPUS | PERFPERSIST_WAKEUP,
		.group = getegid(),
		.mode = 0660,
		.created = 1,
		.missed = 5,
	};
}

static inline void save_event(const struct writer *w, size_t n, int catalog,
			      const struct perfpersist_info *info)
{
	struct perfpersist_event *e = NULL;
	struct saved_event_counts counts;
	struct saving s;
	char file[32] = "";
	int fds[RINGS + 1], dir;

	for (size_t i = 0; i < n; i++)
		fds[i] = w[i].fd;
	if (catalog >= 0)
		fds[n++] = catalog;
	ck_assert_int_eq(perfpersist_open_fds(fds, n, &e), 0);
	ck_assert_int_eq(saving_begin_at(save, &s), 0);
	ck_assert_int_eq(saving_event_dir(&s, info, &dir), 0);
	ck_assert_int_eq(saved_write_event(dir, e, info, &counts, file), 0);
	ck_assert_int_eq(saving_finish(&s), 0);
	saving_done(&s);
	close(dir);
	perfpersist_event_free(e);
}

static inline int connect_save(const char *at, struct perfpersist **ret)
{
	return perfpersist_connect(
		&(struct perfpersist_options){ .sz = sizeof(struct perfpersist_options),
					       .saved = at },
		ret);
}

/* Opens the event; the error message is in `why`. */
static inline int open_saved(struct perfpersist_event **ret)
{
	struct perfpersist *p = NULL;
	int r;

	ck_assert_int_eq(connect_save(save, &p), 0);
	r = perfpersist_open(p, "space", "name", ret);
	snprintf(why, sizeof(why), "%s", r < 0 ? perfpersist_error(p) : "");
	ck_assert_ptr_null(strchr(why, '\n'));
	ck_assert_msg(r >= 0 || strstr(why, "space/name"), "%s", why);
	perfpersist_free(p);
	return r;
}

static inline const char *file(const char *leaf)
{
	snprintf(path, sizeof(path), "%s/space/name/%s", save, leaf);
	return path;
}

static inline int remove_one(const char *name, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(name);
}

static inline void setup(void)
{
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	snprintf(save, sizeof(save), "%s/save", root);
}

static inline void teardown(void)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* An empty ring, a ring that is not full, one that has wrapped often, and one whose newest record
 * runs into the spill; sizes of records differ. */
static inline void fill(struct writer *w)
{
	static const unsigned records[RINGS] = { 0, 20, 1000, 333 };
	uint64_t time = 1000;

	for (uint32_t i = 0; i < RINGS; i++) {
		w[i] = writer_new(i, 4096, 512);
		for (unsigned k = 0; k < records[i]; k++)
			writer_write(&w[i], k, time++, 4 + 8 * (k * 7 % 40));
		w[i].header->limit.limited = 3;
	}
	while ((w[3].header->live.head & 4095) < 4000)
		writer_write(&w[3], 1, time++, 12);
}
