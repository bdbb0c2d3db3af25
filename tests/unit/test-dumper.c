// SPDX-License-Identifier: LGPL-2.1-or-later
/* The dumper: copies of rings at rest and under full load, and the requests that it accepts. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/copy.h"
#include "daemon/dumper/copy.h"
#include "proto/catalog.h"
#include "proto/packet.h"
#include "tests/unit/dumper-process.h"
#include "tests/unit/needs.h"
#include "tests/unit/ring-writer.h"

#define DATA_SIZE 4096
#define SPILL_SIZE 256

/* ── rings ──────────────────────────────────────────────────────────────────────────────── */

static struct writer copy_of(const struct writer *w)
{
	struct writer copy = { .size = w->size };

	ck_assert_int_eq(copy_ring(w->fd, w->size, &copy.fd), 0);
	return copy;
}

/* The tids of a reader's records, the newest first; all records are whole. */
static size_t read_tids(int fd, uint32_t *tids, size_t max)
{
	struct perfpersist_cursor *cursor = NULL;
	struct perfpersist_event *e = NULL;
	struct perfpersist_snapshot *s;
	struct perfpersist_sample sample;
	size_t n = 0;
	int r;

	ck_assert_int_eq(perfpersist_open_fds(&fd, 1, &e), 0);
	s = writer_snapshot(e);
	ck_assert_int_eq(perfpersist_cursor_new(s, 0, &cursor), 0);
	while ((r = perfpersist_cursor_next(cursor, &sample)) > 0) {
		ck_assert_uint_lt(n, max);
		ck_assert(writer_is_whole(&sample));
		tids[n++] = sample.tid;
	}
	ck_assert_int_eq(r, 0);
	perfpersist_cursor_free(cursor);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
	return n;
}

static void check_same(const struct writer *w)
{
	uint32_t of_ring[DATA_SIZE / 8], of_copy[DATA_SIZE / 8];
	struct writer copy = copy_of(w);
	size_t n = read_tids(w->fd, of_ring, ARRAY_SIZE(of_ring));

	ck_assert_uint_eq(read_tids(copy.fd, of_copy, ARRAY_SIZE(of_copy)), n);
	ck_assert_mem_eq(of_ring, of_copy, n * sizeof(of_ring[0]));
	close(copy.fd);
}

/* What the copy says of its count of records: 0: it is exact. */
static uint64_t inexact(const struct writer *w)
{
	struct writer copy = copy_of(w);
	struct pp_ring_live live;

	ck_assert_int_eq(pread(copy.fd, &live, sizeof(live), PP_RING_LIVE_OFFSET), sizeof(live));
	close(copy.fd);
	return live.nest;
}

START_TEST(at_rest)
{
	struct writer w = writer_new(3, DATA_SIZE, SPILL_SIZE), copy;
	struct pp_ring_header header;

	check_same(&w);
	for (uint32_t i = 1; i < 400; i++) {
		writer_write(&w, i, i, 4 + i % 25 * 8);
		check_same(&w);
	}
	w.header->live.state = PP_RING_PAUSED;
	w.header->limit.limited = 5;
	copy = copy_of(&w);
	ck_assert_int_eq(pread(copy.fd, &header, sizeof(header), 0), sizeof(header));
	ck_assert_mem_eq(&header, w.header, sizeof(header));
	close(copy.fd);
	writer_done(&w);
}
END_TEST

/* A record is being written: the copy does not show the overwritten ones as whole, either. */
START_TEST(in_the_middle)
{
	struct writer w = writer_new(3, DATA_SIZE, SPILL_SIZE);
	struct writer_record r;
	size_t n = 0;

	for (uint32_t i = 0; i < 200; i++) {
		n = writer_make(&r, i, i, 36);
		writer_put(&w, &r, n);
	}
	w.header->live.reserve -= n;
	w.header->live.nest = 1;
	memset(w.ring + w.header->header_size + (w.header->live.reserve & (DATA_SIZE - 1)), 0xff,
	       n);
	check_same(&w);
	ck_assert_uint_eq(inexact(&w), 1);
	/* Whatever its size. */
	w.header->live.reserve = w.header->live.head - 2 * DATA_SIZE;
	check_same(&w);
	writer_done(&w);
}
END_TEST

struct burst {
	struct writer w;
	_Atomic bool stop;
	uint32_t tid;
};

static void *write_on(void *arg)
{
	struct burst *b = arg;

	while (!atomic_load(&b->stop)) {
		b->tid++;
		writer_write(&b->w, b->tid, b->tid, 4 + b->tid % 25 * 8);
	}
	return NULL;
}

/* Each copy is a part of the stream without a gap; most have the matching counts. */
START_TEST(under_load)
{
	struct burst b = { .w = writer_new(3, 65536, SPILL_SIZE) };
	static uint32_t tids[65536 / 8];
	pthread_t thread;
	unsigned exact = 0;

	ck_assert_int_eq(pthread_create(&thread, NULL, write_on, &b), 0);
	while (atomic_load(WRITER_WORD(&b.w, records)) < 10000)
		sched_yield();
	for (unsigned i = 0; i < 200; i++) {
		struct writer copy = copy_of(&b.w);
		size_t n = read_tids(copy.fd, tids, ARRAY_SIZE(tids));
		struct pp_ring_live live;

		for (size_t k = 1; k < n; k++)
			ck_assert_uint_eq(tids[k], tids[k - 1] - 1);
		ck_assert_int_eq(pread(copy.fd, &live, sizeof(live), PP_RING_LIVE_OFFSET),
				 sizeof(live));
		ck_assert(n == 0 || live.records >= tids[0]);
		/* Whatever is overwritten while it is copied. */
		ck_assert(n == 0 || live.nest || live.records == tids[0]);
		exact += n > 0 && !live.nest;
		close(copy.fd);
	}
	ck_assert_uint_gt(exact, 0);
	atomic_store(&b.stop, true);
	pthread_join(thread, NULL);
	writer_done(&b.w);
}
END_TEST

START_TEST(sealed)
{
	struct writer w = writer_new(3, DATA_SIZE, SPILL_SIZE), copy;
	struct stat st;
	char path[64];

	writer_write(&w, 1, 1, 36);
	copy = copy_of(&w);
	ck_assert_int_eq(fstat(copy.fd, &st), 0);
	ck_assert_int_eq(st.st_size, (off_t)w.size);
	ck_assert_uint_eq(st.st_mode & 07777, 0444);
	ck_assert_int_eq(fcntl(copy.fd, F_GET_SEALS) &
				 (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
	ck_assert_int_eq(fcntl(copy.fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	ck_assert_ptr_eq(mmap(NULL, w.size, PROT_WRITE, MAP_SHARED, copy.fd, 0), MAP_FAILED);
	ck_assert_int_lt(ftruncate(copy.fd, 0), 0);
	/* Root may open anything for writing, but cannot write. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy.fd);
	w.fd = open(path, O_RDWR | O_CLOEXEC);
	if (w.fd >= 0)
		ck_assert_int_lt(write(w.fd, "x", 1), 0);
	close(copy.fd);
	writer_done(&w);
}
END_TEST

START_TEST(not_rings)
{
	struct writer w = writer_new(3, DATA_SIZE, SPILL_SIZE);
	int fd = -EBADF, file = memfd_create("short", MFD_CLOEXEC), ends[2];

	/* The file could shrink meanwhile. */
	ck_assert_int_eq(ftruncate(file, (off_t)w.size), 0);
	ck_assert_int_eq(pwrite(file, w.ring, w.size, 0), (ssize_t)w.size);
	ck_assert_int_eq(copy_ring(file, w.size, &fd), -EBADMSG);
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(copy_ring(ends[0], w.size, &fd), -EBADMSG);
	/* A size larger than the file, smaller than the header says, zero, and above any ring's. */
	ck_assert_int_eq(copy_ring(w.fd, w.size + 4096, &fd), -EBADMSG);
	ck_assert_int_eq(copy_ring(w.fd, w.size - 8, &fd), -EBADMSG);
	ck_assert_int_eq(copy_ring(w.fd, 0, &fd), -EBADMSG);
	ck_assert_int_eq(copy_ring(w.fd, SIZE_MAX, &fd), -EBADMSG);
	w.header->live.head = -12;
	ck_assert_int_eq(copy_ring(w.fd, w.size, &fd), -EBADMSG);
	w.header->version = PP_RING_VERSION + 1;
	ck_assert_int_eq(copy_ring(w.fd, w.size, &fd), -EPROTONOSUPPORT);
	w.header->magic++;
	ck_assert_int_eq(copy_ring(w.fd, w.size, &fd), -EBADMSG);
	ck_assert_int_eq(fd, -EBADF);
	close(ends[0]);
	close(ends[1]);
	close(file);
	writer_done(&w);
}
END_TEST

/* ── catalogs ───────────────────────────────────────────────────────────────────────────── */

static int make_catalog(size_t *ret_size)
{
	struct {
		struct pp_catalog_header header;
		struct pp_catalog_entry entry;
		char text[8];
	} catalog = {
		.header = {
			.magic = PP_CATALOG_MAGIC,
			.version = PP_CATALOG_VERSION,
			.header_size = sizeof(catalog.header),
			.entry_size = sizeof(catalog.entry),
			.n_sources = 1,
			.size = sizeof(catalog),
			.event_id = 7,
		},
		.entry = {
			.id = PP_SOURCE_ID(7, 0),
			.text_offset = offsetof(__typeof__(catalog), text),
			.text_size = 3,
		},
		.text = "a:b",
	};
	int fd = memfd_create("catalog", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	ck_assert_int_eq(write(fd, &catalog, sizeof(catalog)), sizeof(catalog));
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	*ret_size = sizeof(catalog);
	return fd;
}

START_TEST(catalogs)
{
	struct writer w = writer_new(3, DATA_SIZE, SPILL_SIZE);
	size_t size;
	int copy, fd = make_catalog(&size);
	char a[512], b[512];

	ck_assert_int_eq(copy_catalog(fd, size, &copy), 0);
	ck_assert_int_eq(pread(fd, a, sizeof(a), 0), (ssize_t)size);
	ck_assert_int_eq(pread(copy, b, sizeof(b), 0), (ssize_t)size);
	ck_assert_mem_eq(a, b, size);
	close(copy);
	ck_assert_int_eq(copy_ring(fd, size, &copy), -EBADMSG);
	ck_assert_int_eq(copy_catalog(w.fd, w.size, &copy), -EBADMSG);
	ck_assert_int_eq(copy_catalog(fd, size - 1, &copy), -EBADMSG);
	close(fd);
	writer_done(&w);
}
END_TEST

/* ── jobs ───────────────────────────────────────────────────────────────────────────────── */

static struct dumper_process dumper;
static char dir[64];

static void begin_dumper(void)
{
	char path[96];

	snprintf(dir, sizeof(dir), "/tmp/perfpersist-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/dumper", dir);
	dumper_process_listen(&dumper, path);
	dumper_process_start(&dumper);
}

static void end_dumper(void)
{
	dumper_process_done(&dumper);
	rmdir(dir);
}

static int connect_dumper(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&dumper.address, sizeof(dumper.address)),
			 0);
	return fd;
}

/* The answer's error; > 0: the dumper hung up. */
static int ask(int fd, const struct pp_copy_job *job, const int *fds, size_t n,
	       struct pp_copy_answer *ret, struct pp_fds *ret_fds)
{
	struct pp_copy_answer last;
	ssize_t size;

	ck_assert_int_eq(pp_packet_send(fd, job, sizeof(*job), fds, n), 0);
	size = pp_packet_receive(fd, ret, sizeof(*ret), PP_FDS_MAX, ret_fds, 0);
	if (size <= 0)
		return 1;
	ck_assert_int_eq(size, sizeof(*ret));
	ck_assert_uint_eq(ret->serial, job->serial);
	ck_assert_uint_eq(ret->count, ret_fds->n);
	ck_assert_uint_eq(ret->last, ret->error != 0);
	if (!ret->last) {
		ck_assert_int_eq(pp_packet_receive(fd, &last, sizeof(last), 0, NULL, 0),
				 sizeof(last));
		ck_assert_uint_eq(last.last, 1);
		ck_assert_int_eq(last.error, 0);
	}
	return -ret->error;
}

START_TEST(jobs)
{
	struct writer w[2] = { writer_new(0, DATA_SIZE, SPILL_SIZE),
			       writer_new(4, DATA_SIZE, SPILL_SIZE) };
	struct pp_copy_job job = { .abi = PP_COPY_ABI, .count = 3, .serial = 9, .catalog = 1 };
	int fds[3] = { -EBADF, w[0].fd, w[1].fd }, socket_fd, again;
	struct pp_fds copies = { .n = 0 };
	struct pp_copy_answer answer;
	uint32_t tids[64];
	size_t size;

	begin_dumper();
	socket_fd = connect_dumper();
	fds[0] = make_catalog(&size);
	job.size[0] = size;
	job.size[1] = job.size[2] = w[0].size;
	for (uint32_t i = 0; i < 5; i++)
		writer_write(&w[1], i, i, 36);
	ck_assert_int_eq(ask(socket_fd, &job, fds, 3, &answer, &copies), 0);
	ck_assert_uint_eq(copies.n, 3);
	ck_assert_uint_eq(read_tids(copies.fd[1], tids, ARRAY_SIZE(tids)), 0);
	ck_assert_uint_eq(read_tids(copies.fd[2], tids, ARRAY_SIZE(tids)), 5);
	pp_fds_close(&copies);

	/* A ring that cannot be copied fails the job, and does not stop the dumper. */
	w[1].header->magic++;
	ck_assert_int_eq(ask(socket_fd, &job, fds, 3, &answer, &copies), -EBADMSG);
	ck_assert_uint_eq(copies.n, 0);
	w[1].header->magic--;
	ck_assert_int_eq(ask(socket_fd, &job, fds, 3, &answer, &copies), 0);
	pp_fds_close(&copies);

	/* An invalid job costs the connection, and does not stop the dumper. */
	ck_assert_int_eq(ask(socket_fd, &job, fds, 2, &answer, &copies), 1);
	again = connect_dumper();
	job.abi++;
	ck_assert_int_eq(ask(again, &job, fds, 3, &answer, &copies), 1);
	close(again);
	again = connect_dumper();
	job.abi--;
	ck_assert_int_eq(ask(again, &job, fds, 3, &answer, &copies), 0);
	pp_fds_close(&copies);
	close(again);
	close(socket_fd);
	close(fds[0]);
	writer_done(&w[0]);
	writer_done(&w[1]);
	end_dumper();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("dumper");
	TCase *t = tcase_create("all");

	tcase_add_test(t, at_rest);
	tcase_add_test(t, in_the_middle);
	tcase_add_test(t, under_load);
	tcase_add_test(t, sealed);
	tcase_add_test(t, not_rings);
	tcase_add_test(t, catalogs);
	tcase_add_test(t, jobs);
	suite_add_tcase(s, t);
	return run_suite(s);
}
