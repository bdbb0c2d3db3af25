// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Prints sideband, as a client gets it, in lines for grep: first its header, then its records in
 * their order. Complains if it does not match proto/sideband.h. With --touch it tries to change the
 * file, which must be impossible.
 *
 * Usage: sideband-read INSTANCE [--direct | --saved PATH | --touch] [SINCE]
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/perfpersist.h"
#include "proto/macro.h"
#include "proto/sideband.h"

static _printf_(1, 2) void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

struct id {
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t identifier;
};

static const struct id *id_of(const struct perf_event_header *h)
{
	return (const void *)((const char *)h + h->size - sizeof(struct id));
}

/* ── records ────────────────────────────────────────────────────────────────────────────── */

static void print_task(const char *name, const void *body)
{
	const struct {
		uint32_t pid, ppid, tid, ptid;
	} *t = body;

	printf("%s %u %u from %u %u\n", name, t->pid, t->tid, t->ppid, t->ptid);
}

static void print_comm(const struct perf_event_header *h, const void *body)
{
	const struct {
		uint32_t pid, tid;
		char comm[];
	} *c = body;

	printf("%s %u %u %s\n", h->misc & PERF_RECORD_MISC_COMM_EXEC ? "EXEC" : "COMM", c->pid,
	       c->tid, c->comm);
}

static void print_map(const void *body)
{
	const struct {
		uint32_t pid, tid;
		uint64_t start, len, pgoff;
		uint8_t file[24];
		uint32_t prot, flags;
		char name[];
	} *m = body;

	printf("MMAP %u %" PRIx64 " %" PRIx64 " %" PRIx64 " %s\n", m->pid, m->start,
	       m->start + m->len, m->pgoff, m->name);
}

static void print_record(const struct perf_event_header *h)
{
	const void *body = h + 1;

	printf("%" PRIu64 " ", id_of(h)->time);
	switch (h->type) {
	case PERF_RECORD_FORK:
		print_task("FORK", body);
		break;
	case PERF_RECORD_EXIT:
		print_task("EXIT", body);
		break;
	case PERF_RECORD_COMM:
		print_comm(h, body);
		break;
	case PERF_RECORD_MMAP2:
		print_map(body);
		break;
	case PERF_RECORD_KSYMBOL:
	case PERF_RECORD_BPF_EVENT:
	case PERF_RECORD_NAMESPACES:
	case PERF_RECORD_CGROUP:
	case PERF_RECORD_LOST:
		printf("TYPE %u\n", h->type);
		break;
	default:
		die("a record of type %u", h->type);
	}
}

static void print_records(const char *at, const struct pp_sideband_header *header)
{
	const char *end = at + header->size;
	uint64_t n = 0, last = 0;

	for (at += header->header_size; at < end; n++) {
		const struct perf_event_header *h = (const void *)at;

		if (end - at < (ptrdiff_t)sizeof(*h) || h->size < sizeof(*h) + sizeof(struct id) ||
		    h->size % 8 || h->size > end - at)
			die("record %" PRIu64 " has %u bytes", n, h->size);
		if (id_of(h)->identifier != PP_SIDEBAND_ID || id_of(h)->time < last)
			die("record %" PRIu64 " is not ours, or older than the one before", n);
		last = id_of(h)->time;
		print_record(h);
		at += h->size;
	}
	if (n != header->records)
		die("%" PRIu64 " records, and not %" PRIu64, n, (uint64_t)header->records);
}

/* ── the file ───────────────────────────────────────────────────────────────────────────── */

static void read_file(int fd, uint64_t size)
{
	const char *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	struct pp_sideband_header h;
	struct stat st;

	if (map == MAP_FAILED || fstat(fd, &st) < 0 || st.st_size != (off_t)size)
		die("cannot map the file, or it has not %" PRIu64 " bytes", size);
	memcpy(&h, map, MIN(size, sizeof(h)));
	if (size < sizeof(h) || h.magic != PP_SIDEBAND_MAGIC || h.version != PP_SIDEBAND_VERSION ||
	    h.size != size || h.header_size < sizeof(h))
		die("that is no sideband");
	print_records(map, &h);
}

/* Every way to write must fail. */
static void touch_file(int fd, uint64_t size)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if ((fcntl(fd, F_GET_SEALS) & seals) != seals)
		die("it is not sealed: %#x", fcntl(fd, F_GET_SEALS));
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY)
		die("it is not open for reading alone");
	if (pwrite(fd, "", 1, 0) >= 0 || ftruncate(fd, 0) >= 0)
		die("it can be written, or cut off");
	if (mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED)
		die("it can be mapped to be written");
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && (pwrite(fd, "", 1, 0) >= 0 || ftruncate(fd, 0) >= 0))
		die("it can be opened to be written");
	puts("nothing can be changed");
}

int main(int argc, char **argv)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = argv[1] };
	struct perfpersist_sideband_info info = { .sz = sizeof(info) };
	struct perfpersist *p = NULL;
	bool touch = false;
	uint64_t since = 0;
	int fd = -1;

	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--direct") == 0)
			opts.direct = true;
		else if (strcmp(argv[i], "--touch") == 0)
			touch = true;
		else if (strcmp(argv[i], "--saved") == 0 && i + 1 < argc)
			opts.saved = argv[++i];
		else
			since = strtoull(argv[i], NULL, 10);
	}
	if (perfpersist_connect(&opts, &p) < 0)
		die("%s", perfpersist_error(NULL));
	if (perfpersist_sideband(p, since, 0, &info, &fd) < 0)
		die("%s", perfpersist_error(p));
	printf("keeping=%d pid=%u began=%" PRIu64 " complete=%" PRIu64 " lost=%" PRIu64
	       " forgotten=%" PRIu64 " processes=%" PRIu64 " ended=%" PRIu64 " memory=%" PRIu64
	       " max_memory=%" PRIu64 "\n",
	       info.keeping, info.pid, info.began, info.complete, info.lost, info.forgotten,
	       info.processes, info.ended, info.memory, info.max_memory);
	if (fd >= 0 && touch)
		touch_file(fd, info.size);
	else if (fd >= 0)
		read_file(fd, info.size);
	perfpersist_free(p);
	return 0;
}
