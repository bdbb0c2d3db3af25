// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which threads the processes have that --pid selects, before any record is read: a record about a thread does not say
 * whose it is, nor does one of a thread that exits. /proc knows those that run; the sideband, which the kernel's records
 * fill a moment later, also those that have ended.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/perfctl/events/selection.h"
#include "proto/macro.h"
#include "proto/sideband.h"

/* COMM: pid, tid, …; FORK: pid, its parent, tid, … */
static void learn_record(const struct selection *s, const struct perf_event_header *r)
{
	const uint32_t *ids = (const uint32_t *)(r + 1);
	uint32_t tid;

	if (r->type != PERF_RECORD_COMM && r->type != PERF_RECORD_FORK)
		return;
	tid = ids[r->type == PERF_RECORD_COMM ? 1 : 2];
	if (selection_wants_whose(s, ids[0], tid))
		selection_learn(s, ids[0], tid);
}

static void learn_records(const struct selection *s, const struct pp_sideband_header *h,
			  size_t size)
{
	const struct perf_event_header *r;

	if (size < sizeof(*h) || h->magic != PP_SIDEBAND_MAGIC ||
	    h->version != PP_SIDEBAND_VERSION || h->header_size < sizeof(*h) ||
	    h->header_size % 8 || h->size > size)
		return;
	for (uint64_t at = h->header_size; at + sizeof(*r) + PP_SIDEBAND_ID_SIZE <= h->size;
	     at += r->size) {
		r = (const void *)((const uint8_t *)h + at);
		if (r->size < sizeof(*r) + PP_SIDEBAND_ID_SIZE || r->size % 8 ||
		    r->size > h->size - at)
			return;
		learn_record(s, r);
	}
}

/* Without a sideband it is as it was: the records tell. */
static void learn_of_sideband(const struct selection *s, struct perfpersist *p)
{
	_cleanup_close_ int fd = -EBADF;
	struct stat st;
	void *bytes;

	if (perfpersist_sideband(p, s->since, s->until, NULL, &fd) < 0 || fd < 0 ||
	    fstat(fd, &st) < 0)
		return;
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return;
	learn_records(s, bytes, (size_t)st.st_size);
	munmap(bytes, (size_t)st.st_size);
}

static void learn_of_proc(const struct selection *s, uint32_t pid)
{
	_cleanup_closedir_ DIR *dir = NULL;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	for (struct dirent *entry; dir && (entry = readdir(dir));)
		if (isdigit((unsigned char)entry->d_name[0]))
			selection_learn(s, pid, (uint32_t)strtoul(entry->d_name, NULL, 10));
}

void selection_learn_threads(const struct selection *s, struct perfpersist *p)
{
	if (s->pids.n)
		learn_of_sideband(s, p);
	for (size_t i = 0; i < s->pids.n; i++)
		learn_of_proc(s, s->pids.all[i]);
}
