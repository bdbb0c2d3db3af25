// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Checkpoints: whatever part of their writes a disk has when the power fails, the file has one whole
 * checkpoint, the last that was complete or the one before. All writes are recorded, and cut off,
 * left out and reordered as far as the calls of fdatasync(2) between them allow.
 */
#include "client/local/checkpoint-write.h"
#include "client/local/saved-remove.h"
#include "proto/clock.h"
#include "tests/unit/catalog-writer.h"
#include "tests/unit/needs.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define RINGS 2
#define MANY 16
#define RECORDS_MAX 512
#define OPS_MAX 64
#define FILE_MAX (128U << 10)

/* ── what is written to the disk ────────────────────────────────────────────────────────── */

struct op {
	uint64_t at;
	size_t n;
	uint8_t *bytes;
	unsigned group; /* the number of syncs before it */
};

static struct op ops[OPS_MAX];
static size_t n_ops;
static unsigned group;
static int recorded = -1; /* the descriptor */
static uint64_t first_write;

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at);

static ssize_t record_write(int fd, const void *bytes, size_t n, off64_t at)
{
	if (fd == recorded) {
		if (!n_ops)
			first_write = pp_clock_ns(CLOCK_MONOTONIC);
		ck_assert_uint_lt(n_ops, OPS_MAX);
		ops[n_ops] = (struct op){ (uint64_t)at, n, malloc(n), group };
		memcpy(ops[n_ops++].bytes, bytes, n);
	}
	return syscall(SYS_pwrite64, fd, bytes, n, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return record_write(fd, bytes, n, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
	return record_write(fd, bytes, n, at);
}

int fdatasync(int fd)
{
	group += fd == recorded;
	return 0;
}

static void forget_ops(void)
{
	while (n_ops)
		free(ops[--n_ops].bytes);
	group = 0;
}

/* ── what is in it ──────────────────────────────────────────────────────────────────────── */

/* The tids of the records of all rings, the newest of each first. */
struct contents {
	size_t n;
	uint32_t tids[RINGS * RECORDS_MAX];
	size_t of_ring[MANY];
};

static void read_contents(struct perfpersist_event *e, struct contents *ret)
{
	struct perfpersist_snapshot *s = writer_snapshot(e);
	struct perfpersist_sample sample;
	struct perfpersist_cursor *c;

	*ret = (struct contents){};
	for (size_t i = 0; i < perfpersist_event_rings(e); i++) {
		ck_assert_int_eq(perfpersist_cursor_new(s, i, &c), 0);
		for (int r; (r = perfpersist_cursor_next(c, &sample));) {
			ck_assert_int_eq(r, 1);
			ck_assert(writer_is_whole(&sample));
			ck_assert_uint_lt(ret->n, ARRAY_SIZE(ret->tids));
			ret->tids[ret->n++] = sample.tid;
			ret->of_ring[i]++;
		}
		perfpersist_cursor_free(c);
	}
	perfpersist_snapshot_free(s);
}

static bool is_same(const struct contents *a, const struct contents *b)
{
	return a->n == b->n && memcmp(a->of_ring, b->of_ring, sizeof(a->of_ring)) == 0 &&
	       memcmp(a->tids, b->tids, a->n * sizeof(a->tids[0])) == 0;
}

static int read_file(int fd, struct contents *ret, struct perfpersist_info *ret_info)
{
	struct perfpersist_event *e = NULL;
	int r = checkpoint_read(fd, &e, ret_info);

	if (r < 0)
		return r;
	read_contents(e, ret);
	perfpersist_event_free(e);
	return 0;
}

/* ── a machine ──────────────────────────────────────────────────────────────────────────── */

static struct writer w[RINGS];
static struct perfpersist_event *event;
static struct checkpoint_writer writer;
static uint32_t tid;

static int new_file(void)
{
	int fd = memfd_create("checkpoint", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void setup(void)
{
	w[0] = writer_new(0, 4096, 512);
	w[1] = writer_new(3, 8192, 128);
	event = writer_open(w, RINGS);
	ck_assert_int_eq(checkpoint_writer_init(&writer, event), 0);
	ck_assert_int_eq(checkpoint_writer_begin(&writer, new_file()), 0);
	recorded = writer.fd;
	tid = 0;
}

static void teardown(void)
{
	recorded = -1;
	forget_ops();
	checkpoint_writer_done(&writer);
	perfpersist_event_free(event);
	for (size_t i = 0; i < RINGS; i++)
		writer_done(&w[i]);
}

static void record(size_t ring, unsigned n)
{
	for (; n; n--, tid++)
		writer_write(&w[ring], tid, 1000 + tid, 4 + 8 * (tid * 7 % (ring ? 10 : 40)));
}

/* From nothing to more than the ring holds; sometimes nothing at all. */
static void record_round(unsigned round)
{
	static const unsigned sizes[] = { 3, 0, 17, 1, 40, 5, 200, 2, 11, 60 };

	record(0, sizes[round % ARRAY_SIZE(sizes)]);
	record(1, sizes[(round * 3 + 1) % ARRAY_SIZE(sizes)]);
}

/* ── the power fails ────────────────────────────────────────────────────────────────────── */

struct disk {
	uint8_t before[FILE_MAX]; /* the last checkpoint */
	uint8_t now[FILE_MAX];
	size_t size;
	int fd;
	struct contents last, next; /* expected */
	int last_error;		    /* of reading the last one */
	unsigned images;
};

static void put(struct disk *d, const struct op *op, size_t n)
{
	memcpy(d->now + op->at, op->bytes, n);
}

/* The newest slot is written in the last group: with all of it, it is the new checkpoint. */
static void expect(struct disk *d, bool is_complete, bool is_begun)
{
	struct perfpersist_info info;
	struct contents found;
	int r;

	ck_assert_int_eq(syscall(SYS_pwrite64, d->fd, d->now, d->size, 0), d->size);
	r = read_file(d->fd, &found, &info);
	d->images++;
	if (r == 0 && is_begun && is_same(&found, &d->next))
		return;
	ck_assert(!is_complete);
	ck_assert_int_eq(r, d->last_error);
	ck_assert(r < 0 || is_same(&found, &d->last));
}

/* Everything of the groups before this one. */
static void start(struct disk *d, unsigned of_group)
{
	memcpy(d->now, d->before, d->size);
	for (size_t i = 0; i < n_ops && ops[i].group < of_group; i++)
		put(d, &ops[i], ops[i].n);
}

static void try_group(struct disk *d, size_t first, size_t end)
{
	bool is_last = end == n_ops;

	for (size_t i = first; i < end; i++) {
		/* cut off at each sector, and within some */
		for (size_t n = 0; n <= ops[i].n; n += n % 512 || ops[i].n - n < 512 ? 504 : 8) {
			start(d, ops[i].group);
			for (size_t k = first; k < i; k++)
				put(d, &ops[k], ops[k].n);
			put(d, &ops[i], n);
			expect(d, false, is_last);
		}
		/* this one alone, and all but this one */
		start(d, ops[i].group);
		put(d, &ops[i], ops[i].n);
		expect(d, is_last && end - first == 1, is_last);
		start(d, ops[i].group);
		for (size_t k = first; k < end; k++)
			if (k != i)
				put(d, &ops[k], ops[k].n);
		expect(d, false, is_last);
	}
	start(d, ops[first].group);
	for (size_t i = first; i < end; i++)
		put(d, &ops[i], ops[i].n);
	expect(d, is_last, is_last);
}

static void try_all(struct disk *d)
{
	size_t first = 0;

	for (size_t i = 1; i <= n_ops; i++)
		if (i == n_ops || ops[i].group != ops[first].group) {
			try_group(d, first, i);
			first = i;
		}
}

START_TEST(test_power_fails)
{
	struct disk *d = calloc(1, sizeof(*d));
	struct perfpersist_info info;

	d->size = writer.layout.size;
	d->fd = new_file();
	d->last_error = -ENOENT;
	ck_assert_uint_le(d->size, FILE_MAX);
	ck_assert_int_eq(pread(writer.fd, d->before, d->size, 0), d->size);
	for (unsigned round = 0; round < 40; round++) {
		struct perfpersist_checkpoint_stat stat = {};

		record_round(round);
		forget_ops();
		ck_assert_int_eq(checkpoint_writer_write(&writer, UINT64_MAX, &stat), 0);
		ck_assert_uint_eq(stat.skipped, 0);
		read_contents(event, &d->next);
		if (n_ops)
			try_all(d);
		ck_assert_int_eq(pread(writer.fd, d->before, d->size, 0), d->size);
		ck_assert_int_eq(read_file(writer.fd, &d->last, &info), 0);
		ck_assert(is_same(&d->last, &d->next));
		d->last_error = 0;
	}
	ck_assert_uint_gt(d->images, 1000);
	printf("%u images of a file that was cut off had a whole checkpoint\n", d->images);
	close(d->fd);
	free(d);
}
END_TEST

/* ── the rest ───────────────────────────────────────────────────────────────────────────── */

START_TEST(test_nothing_new)
{
	record(0, 10);
	ck_assert_int_eq(checkpoint_writer_write(&writer, UINT64_MAX, NULL), 0);
	forget_ops();
	ck_assert_int_eq(checkpoint_writer_write(&writer, UINT64_MAX, NULL), 0);
	ck_assert_uint_eq(n_ops, 0);
	/* Only what is new: a record of 36 bytes, and a slot. */
	record(1, 1);
	ck_assert_int_eq(checkpoint_writer_write(&writer, UINT64_MAX, NULL), 0);
	ck_assert_uint_eq(n_ops, 2);
	ck_assert_uint_le(ops[0].n, 128);
	ck_assert_uint_eq(ops[1].n, CHECKPOINT_PAGE);
}
END_TEST

/* The newest is written, in one piece, and the rest is counted. */
START_TEST(test_limit)
{
	struct perfpersist_info info;
	struct contents found;
	uint64_t skipped = 0;

	for (unsigned i = 0; i < 30; i++) {
		struct perfpersist_checkpoint_stat stat = {};

		record(1, 20 + i);
		forget_ops();
		ck_assert_int_eq(checkpoint_writer_write(&writer, 1024, &stat), 0);
		ck_assert_uint_le(stat.written, 1024 + CHECKPOINT_PAGE);
		ck_assert_uint_gt(stat.skipped, 0);
		skipped += stat.skipped;
		ck_assert_int_eq(read_file(writer.fd, &found, &info), 0);
		ck_assert_uint_eq(info.skipped, skipped);
		ck_assert_uint_gt(found.n, 5);
		for (size_t k = 0; k < found.n; k++)
			ck_assert_uint_eq(found.tids[k], tid - 1 - k);
	}
	/* What comes later is joined to it. */
	record(1, 2);
	ck_assert_int_eq(checkpoint_writer_write(&writer, UINT64_MAX, NULL), 0);
	ck_assert_int_eq(read_file(writer.fd, &found, &info), 0);
	ck_assert_uint_gt(found.n, 7);
	ck_assert_uint_eq(found.tids[0], tid - 1);
	ck_assert_uint_eq(info.skipped, skipped);
}
END_TEST

#define LARGE 8216U /* bytes of a record */
#define BUSY 400U   /* records of 40 bytes */

struct turns {
	struct writer rings[MANY];
	size_t n;
	struct perfpersist_event *event;
	struct checkpoint_writer writer;
	struct perfpersist_checkpoint_stat stat; /* of the last one */
	struct perfpersist_info info;		 /* likewise, as the file has it */
	struct contents found;
};

static void turns_begin(struct turns *t, size_t n)
{
	*t = (struct turns){ .n = n };
	for (size_t i = 0; i < n; i++)
		t->rings[i] = writer_new((uint32_t)i, 32768, 8704);
	t->event = writer_open(t->rings, n);
	ck_assert_int_eq(checkpoint_writer_init(&t->writer, t->event), 0);
	ck_assert_int_eq(checkpoint_writer_begin(&t->writer, new_file()), 0);
}

static void turns_end(struct turns *t)
{
	checkpoint_writer_done(&t->writer);
	perfpersist_event_free(t->event);
	for (size_t i = 0; i < t->n; i++)
		writer_done(&t->rings[i]);
}

static void turns_write(struct turns *t, uint64_t max_bytes)
{
	ck_assert_int_eq(checkpoint_writer_write(&t->writer, max_bytes, &t->stat), 0);
	ck_assert_int_eq(read_file(t->writer.fd, &t->found, &t->info), 0);
}

/* Another process goes on. */
static void turns_resume(struct turns *t)
{
	int fd = fcntl(t->writer.fd, F_DUPFD_CLOEXEC, 0);

	checkpoint_writer_done(&t->writer);
	ck_assert_int_eq(checkpoint_writer_init(&t->writer, t->event), 0);
	ck_assert_int_eq(checkpoint_writer_resume(&t->writer, fd), 1);
}

static void record_of_size(struct writer *ring, uint32_t round, size_t size)
{
	writer_write(ring, round, 1000 + round, size - offsetof(struct writer_record, raw));
}

static void record_busy(struct writer *ring, uint32_t round)
{
	for (unsigned i = 0; i < BUSY; i++)
		record_of_size(ring, round, 40);
}

/* The first round of which a ring has no record in the file. */
static uint32_t missing(const struct contents *c, size_t ring)
{
	size_t at = 0;

	for (size_t i = 0; i < ring; i++)
		at += c->of_ring[i];
	return c->of_ring[ring] ? c->tids[at] + 1 : 0;
}

/* There is room for the record of one ring: each gets its turn. Until then the time of the checkpoint is
 * before what waits, and what waits is not left out. */
START_TEST(test_turns)
{
	uint64_t times[10], bytes = 0, written = 0, skipped = 0;
	struct turns t;

	turns_begin(&t, RINGS);
	for (uint32_t round = 0; round < ARRAY_SIZE(times); round++) {
		times[round] = pp_clock_ns(CLOCK_MONOTONIC);
		for (size_t i = 0; i < t.n; i++)
			record_of_size(&t.rings[i], round, LARGE);
		bytes += t.n * LARGE;
		turns_write(&t, LARGE + 800);
		ck_assert_uint_eq(t.stat.written, LARGE + t.writer.layout.slot_size);
		written += LARGE;
		skipped += t.stat.skipped;
		ck_assert_uint_eq(t.info.skipped, skipped);
		ck_assert_uint_eq(bytes - written - skipped, LARGE); /* the other ring's */
		for (size_t i = 0; i < t.n; i++) {
			uint32_t m = missing(&t.found, i);

			ck_assert_uint_ge(m, round);
			ck_assert(m > round || t.info.saved_mono <= times[m]);
		}
	}
	turns_resume(&t);
	turns_write(&t, UINT64_MAX);
	ck_assert_uint_eq(t.stat.skipped, 0);
	written += t.stat.written - t.writer.layout.slot_size;
	ck_assert_uint_eq(t.info.skipped, skipped);
	ck_assert_uint_eq(written + skipped, bytes);
	ck_assert_uint_gt(t.info.saved_mono, times[ARRAY_SIZE(times) - 1]);
	turns_end(&t);
}
END_TEST

/* A ring whose equal part has no room for its record, beside one that uses up its part each time. */
START_TEST(test_large_beside_small)
{
	struct turns t;

	turns_begin(&t, RINGS);
	for (uint32_t round = 0; round < 10; round++) {
		record_of_size(&t.rings[0], round, LARGE);
		record_busy(&t.rings[1], round);
		turns_write(&t, 12000);
		ck_assert_uint_ge(missing(&t.found, 0), round);
		ck_assert_uint_eq(missing(&t.found, 1), round + 1);
	}
	turns_end(&t);
}
END_TEST

/* However large a record may be: no ring takes the others' parts while its own has room for some. */
START_TEST(test_equal_parts)
{
	struct turns t;

	turns_begin(&t, MANY);
	for (uint32_t round = 0; round < 10; round++) {
		for (size_t i = 0; i < t.n; i++)
			record_busy(&t.rings[i], round);
		turns_write(&t, MANY * 400);
		for (size_t i = 0; i < t.n; i++) {
			ck_assert_uint_eq(t.found.of_ring[i], 10);
			ck_assert_uint_eq(missing(&t.found, i), round + 1);
		}
	}
	turns_end(&t);
}
END_TEST

/* A ring for which there is never room holds up none of those that need a turn to have room. */
START_TEST(test_never_room)
{
	struct turns t;

	turns_begin(&t, 3);
	for (uint32_t round = 0; round < 10; round++) {
		record_of_size(&t.rings[0], round, LARGE);
		record_busy(&t.rings[1], round);
		record_of_size(&t.rings[2], round, 4000);
		turns_write(&t, 6000);
		ck_assert_uint_eq(missing(&t.found, 0), 0);
		ck_assert_uint_ge(missing(&t.found, 1), round);
		ck_assert_uint_ge(missing(&t.found, 2), round);
	}
	turns_end(&t);
}
END_TEST

/* What is damaged never gets whole: it is left out once, and the ring goes on behind it. */
START_TEST(test_damaged_ring)
{
	static const uint64_t none[2];
	uint64_t before;
	struct turns t;

	turns_begin(&t, RINGS);
	for (uint32_t round = 0; round < 3; round++) {
		bool has_bad_head = round == 2;

		for (size_t i = 0; i < t.n; i++)
			record_of_size(&t.rings[i], round, 40);
		turns_write(&t, UINT64_MAX);
		ck_assert_uint_eq(t.stat.skipped, 0);
		ck_assert_uint_eq(missing(&t.found, 0), round + 1);
		writer_put(&t.rings[0], none, has_bad_head ? 12 : sizeof(none));
		before = pp_clock_ns(CLOCK_MONOTONIC);
		turns_write(&t, UINT64_MAX);
		ck_assert_uint_eq(t.stat.skipped, has_bad_head ? 8 : sizeof(none));
		ck_assert_uint_ge(t.info.saved_mono, before);
		ck_assert_uint_eq(missing(&t.found, 1), round + 1);
		turns_write(&t, UINT64_MAX);
		ck_assert_uint_eq(t.stat.skipped, 0);
		ck_assert_uint_eq(t.stat.written, 0);
	}
	ck_assert_uint_eq(t.info.skipped, 2 * sizeof(none) + 8);
	turns_end(&t);
}
END_TEST

START_TEST(test_facts)
{
	struct perfpersist_info info, now = { .sz = sizeof(now) };
	struct perfpersist_event *e = NULL;

	record(0, 300);
	w[0].header->limit.limited = 5;
	ck_assert_int_eq(checkpoint_writer_write(&writer, UINT64_MAX, NULL), 0);
	ck_assert_int_eq(checkpoint_read(writer.fd, &e, &info), 0);
	ck_assert_int_eq(perfpersist_event_info(e, &now), 0);
	ck_assert_uint_eq(now.records, 300);
	ck_assert_uint_eq(now.bytes, 0 - w[0].header->live.head);
	ck_assert_uint_eq(now.limited, 5);
	ck_assert_str_eq(now.cpus, "0,3");
	ck_assert_str_eq(info.name, "name");
	ck_assert_str_eq(info.event, "sys:tracepoint");
	ck_assert_uint_gt(info.saved, 1600000000000000000);
	ck_assert_uint_gt(info.saved_mono, 0);
	ck_assert(info.missed_unknown);
	perfpersist_event_free(e);
}
END_TEST

/* What is recorded while it is written may be missing: it is complete until before that. */
START_TEST(test_time)
{
	uint64_t before = pp_clock_ns(CLOCK_MONOTONIC), offset = pp_clock_offset();
	struct perfpersist_info info;
	struct contents found;

	record(0, 3);
	record(1, 3);
	forget_ops();
	ck_assert_int_eq(checkpoint_writer_write(&writer, UINT64_MAX, NULL), 0);
	ck_assert_int_eq(read_file(writer.fd, &found, &info), 0);
	ck_assert_uint_ge(info.saved_mono, before);
	ck_assert_uint_le(info.saved_mono, first_write);
	ck_assert_uint_le(labs((long)(info.saved - info.saved_mono - offset)), 1000000000);
}
END_TEST

static int duplicate(void)
{
	return fcntl(writer.fd, F_DUPFD_CLOEXEC, 0);
}

/* Another process of the same boot goes on; other rings have another file. */
START_TEST(test_resume)
{
	struct checkpoint_writer second;
	struct perfpersist_info info;
	struct contents expected, found;
	int fd;

	record(0, 20);
	ck_assert_int_eq(checkpoint_writer_init(&second, event), 0);
	fd = duplicate();
	ck_assert_int_eq(checkpoint_writer_resume(&second, fd), 0); /* there is no checkpoint */
	ck_assert_int_eq(checkpoint_writer_write(&writer, UINT64_MAX, NULL), 0);
	ck_assert_int_eq(checkpoint_writer_resume(&second, fd), 1);
	record(0, 3);
	recorded = second.fd;
	forget_ops();
	ck_assert_int_eq(checkpoint_writer_write(&second, UINT64_MAX, NULL), 0);
	ck_assert_uint_lt(ops[0].n, 1200);
	ck_assert_int_eq(read_file(fd, &found, &info), 0);
	read_contents(event, &expected);
	ck_assert(is_same(&found, &expected));
	checkpoint_writer_done(&second);

	w[0].header->set = w[1].header->set = 2;
	perfpersist_event_free(event);
	event = writer_open(w, RINGS);
	ck_assert_int_eq(checkpoint_writer_init(&second, event), 0);
	fd = duplicate();
	ck_assert_int_eq(checkpoint_writer_resume(&second, fd), 0);
	close(fd);
	checkpoint_writer_done(&second);
}
END_TEST

/* Any byte of the fixed part counts; a file that is shorter is none. */
START_TEST(test_damage)
{
	struct perfpersist_info info;
	struct contents found;
	size_t header = writer.layout.bytes_size;

	record(0, 20);
	ck_assert_int_eq(checkpoint_writer_write(&writer, UINT64_MAX, NULL), 0);
	recorded = -1;
	for (size_t at = 0; at < header; at += 61) {
		uint8_t byte, other;

		ck_assert_int_eq(pread(writer.fd, &byte, 1, (off_t)at), 1);
		other = byte ^ 0x10;
		ck_assert_int_eq(pwrite(writer.fd, &other, 1, (off_t)at), 1);
		ck_assert_int_eq(read_file(writer.fd, &found, &info), -EBADMSG);
		ck_assert_int_eq(pwrite(writer.fd, &byte, 1, (off_t)at), 1);
	}
	ck_assert_int_eq(read_file(writer.fd, &found, &info), 0);
	ck_assert_int_eq(ftruncate(writer.fd, (off_t)writer.layout.rings[0].at + 100), 0);
	ck_assert_int_eq(read_file(writer.fd, &found, &info), -EBADMSG);
	ck_assert_int_eq(ftruncate(writer.fd, (off_t)writer.layout.slot_at[0] + 100), 0);
	ck_assert_int_eq(read_file(writer.fd, &found, &info), -EBADMSG);
	ck_assert_int_eq(ftruncate(writer.fd, 100), 0);
	ck_assert_int_eq(read_file(writer.fd, &found, &info), -EBADMSG);
}
END_TEST

/* Such a header is refused before anything is spent on what it promises. */
START_TEST(test_header)
{
	struct checkpoint_layout l = {};
	struct checkpoint_header h;
	struct perfpersist_info info;
	struct contents found;

	record(0, 20);
	ck_assert_int_eq(checkpoint_writer_write(&writer, UINT64_MAX, NULL), 0);
	recorded = -1;
	ck_assert_int_eq(ftruncate(writer.fd, (off_t)writer.layout.size - 1), 0);
	ck_assert_int_eq(checkpoint_header_read(writer.fd, &l), -EBADMSG);
	ck_assert_int_eq(ftruncate(writer.fd, (off_t)writer.layout.size), 0);
	ck_assert_int_eq(checkpoint_header_read(writer.fd, &l), 0);
	checkpoint_layout_done(&l);
	ck_assert_int_eq(pread(writer.fd, &h, sizeof(h), 0), sizeof(h));
	h.version++;
	ck_assert_int_eq(pwrite(writer.fd, &h, sizeof(h), 0), sizeof(h));
	ck_assert_int_eq(read_file(writer.fd, &found, &info), -EPROTONOSUPPORT);
}
END_TEST

START_TEST(test_several_sources)
{
	struct writer shared = writer_new_shared(2, 4096, 64, 3);
	int fds[2] = { shared.fd, writer_catalog(3) };
	struct perfpersist_event *e = NULL, *back = NULL;
	struct checkpoint_writer one;
	struct perfpersist_info info;

	for (uint32_t i = 0; i < 500; i++)
		writer_write_source(&shared, i % 3, i, 1000 + i);
	ck_assert_int_eq(perfpersist_open_fds(fds, 2, &e), 0);
	ck_assert_int_eq(checkpoint_writer_init(&one, e), 0);
	ck_assert_int_eq(checkpoint_writer_begin(&one, new_file()), 0);
	ck_assert_int_eq(checkpoint_writer_write(&one, UINT64_MAX, NULL), 0);
	ck_assert_int_eq(checkpoint_read(one.fd, &back, &info), 0);
	ck_assert_uint_eq(perfpersist_event_sources(back), 3);
	perfpersist_event_free(back);
	checkpoint_writer_done(&one);
	perfpersist_event_free(e);
	close(fds[1]);
	writer_done(&shared);
}
END_TEST

/* ── the directory ──────────────────────────────────────────────────────────────────────── */

static char root[] = "/tmp/perfpersist-checkpoint-XXXXXX";

/* This boot's directory. */
static const char *boot_name(void)
{
	static char name[64] = "+boot-";
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(read(fd, name + 6, 36), 36);
	close(fd);
	return name;
}

static void path_of(const char *boot, uint64_t id, char ret[static 256])
{
	snprintf(ret, 256, "%s/%s/%" PRIu64, root, boot, id);
}

static void make_root(void)
{
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static void rename_boot(const char *to)
{
	char from[256], path[256];

	snprintf(from, sizeof(from), "%s/%s", root, boot_name());
	snprintf(path, sizeof(path), "%s/%s", root, to);
	ck_assert_int_eq(rename(from, path), 0);
}

/* One boot: records, writes a checkpoint, and leaves the file. */
static void boot(unsigned n, const char *name)
{
	struct perfpersist_checkpoints *c = NULL, *other = NULL;
	struct perfpersist_checkpoint *one = NULL, *two = NULL;

	ck_assert_int_eq(perfpersist_checkpoints_open(NULL, root, &c), 0);
	ck_assert_int_eq(perfpersist_checkpoints_open(NULL, root, &other), -EBUSY);
	event->is_copy = false;
	ck_assert_int_eq(perfpersist_checkpoint_new(c, event, &one), 0);
	ck_assert_int_eq(perfpersist_checkpoint_new(c, event, &two), -EEXIST);
	record(0, n);
	ck_assert_int_eq(perfpersist_checkpoint_write(one, UINT64_MAX, NULL), 0);
	perfpersist_checkpoints_sweep(c, NULL, 0);
	perfpersist_checkpoint_free(one);
	perfpersist_checkpoints_free(c);
	rename_boot(name);
}

/* Who limits bytes or syncs knows of all: of a new file, and of its first checkpoint, without a record. */
START_TEST(test_costs)
{
	struct perfpersist_checkpoint_stat stat = { .sz = sizeof(stat) };
	struct perfpersist_checkpoints *c = NULL;
	struct perfpersist_checkpoint *one = NULL;

	make_root();
	ck_assert_int_eq(perfpersist_checkpoints_open(NULL, root, &c), 0);
	event->is_copy = false;
	for (int again = 0; again < 2; again++) {
		ck_assert_int_eq(perfpersist_checkpoint_new(c, event, &one), again);
		ck_assert_int_eq(perfpersist_checkpoint_write(one, UINT64_MAX, &stat), 0);
		ck_assert_uint_eq(stat.written, again ? 0 : CHECKPOINT_PAGE);
		perfpersist_checkpoint_free(one);
	}
	perfpersist_checkpoints_free(c);
	ck_assert_int_eq(saved_remove(AT_FDCWD, root), 0);
}
END_TEST

/* A file stays while a checkpoint writes it, or the caller wants it. */
START_TEST(test_sweep)
{
	struct perfpersist_checkpoints *c = NULL;
	struct perfpersist_checkpoint *one = NULL;
	uint64_t id = event->header.event_id, keep[] = { id + 1, id };
	char path[256];

	make_root();
	ck_assert_int_eq(perfpersist_checkpoints_open(NULL, root, &c), 0);
	path_of(boot_name(), id, path);
	event->is_copy = false;
	ck_assert_int_eq(perfpersist_checkpoint_new(c, event, &one), 0);
	ck_assert_int_eq(perfpersist_checkpoint_write(one, UINT64_MAX, NULL), 0);
	perfpersist_checkpoints_sweep(c, NULL, 0);
	ck_assert_int_eq(access(path, F_OK), 0);
	perfpersist_checkpoint_free(one);
	perfpersist_checkpoints_sweep(c, keep, 2);
	ck_assert_int_eq(access(path, F_OK), 0);
	perfpersist_checkpoints_sweep(c, keep, 1);
	ck_assert_int_lt(access(path, F_OK), 0);
	perfpersist_checkpoints_free(c);
	ck_assert_int_eq(saved_remove(AT_FDCWD, root), 0);
}
END_TEST

static unsigned count_saves(void)
{
	DIR *dir = opendir(root);
	struct dirent *entry;
	unsigned n = 0;

	while ((entry = readdir(dir)))
		n += entry->d_name[0] == '2';
	closedir(dir);
	return n;
}

static int recover(struct perfpersist_save_result *ret)
{
	struct perfpersist_checkpoints *c = NULL;
	int r;

	ck_assert_int_eq(perfpersist_checkpoints_open(NULL, root, &c), 0);
	r = perfpersist_checkpoints_recover(c, 2, ret);
	perfpersist_checkpoints_free(c);
	return r;
}

START_TEST(test_directory)
{
	struct perfpersist_save_result result = { .sz = sizeof(result) };

	make_root();
	ck_assert_int_eq(recover(&result), 0);
	for (unsigned i = 1; i <= 4; i++) {
		boot(2, "+boot-another");
		ck_assert_int_eq(recover(&result), 1);
		ck_assert_uint_eq(result.events, 1);
		ck_assert_uint_eq(result.records, 2 * i);
		ck_assert_uint_eq(result.failed, 0);
		ck_assert_int_eq(recover(&result), 0);
		ck_assert_uint_eq(count_saves(), MIN(i, 2U));
	}
	ck_assert_int_eq(chmod(root, 0777), 0);
	ck_assert_int_eq(perfpersist_checkpoints_open(NULL, root,
						      &(struct perfpersist_checkpoints *){ NULL }),
			 -EACCES);
	ck_assert_int_eq(saved_remove(AT_FDCWD, root), 0);
}
END_TEST

static void set_version(const char *path, uint32_t version)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(
		pwrite(fd, &version, sizeof(version), offsetof(struct checkpoint_header, version)),
		sizeof(version));
	close(fd);
}

/* One boot's files cannot be read by this version: they stay, and those of the boots around it are found. */
START_TEST(test_newer_version)
{
	struct perfpersist_save_result result = { .sz = sizeof(result) };
	char path[256];

	make_root();
	boot(2, "+boot-a");
	path_of("+boot-a", event->header.event_id, path);
	set_version(path, CHECKPOINT_VERSION + 1);
	ck_assert_int_eq(recover(&result), -EPROTONOSUPPORT);
	ck_assert_ptr_nonnull(strstr(perfpersist_error(NULL), "newer version"));
	boot(2, "+boot-b");
	ck_assert_int_eq(recover(&result), 1);
	ck_assert_uint_eq(result.records, 4);
	ck_assert_uint_eq(result.failed, 1);
	ck_assert_ptr_nonnull(strstr(result.message, "newer version"));
	ck_assert_int_eq(access(path, F_OK), 0);
	set_version(path, CHECKPOINT_VERSION);
	ck_assert_int_eq(recover(&result), 1);
	ck_assert_uint_eq(result.records, 2);
	ck_assert_uint_eq(count_saves(), 2);
	ck_assert_int_lt(access(path, F_OK), 0);
	ck_assert_int_eq(saved_remove(AT_FDCWD, root), 0);
}
END_TEST

/* After failures there may be more than are kept: what goes without a save is told, also if no other is made. */
START_TEST(test_too_many)
{
	struct perfpersist_save_result result = { .sz = sizeof(result) };
	char path[256], wanted[256];

	make_root();
	boot(2, "+boot-a");
	boot(2, "+boot-b");
	path_of("+boot-b", event->header.event_id, path);
	set_version(path, CHECKPOINT_VERSION + 1);
	boot(2, "+boot-c");
	path_of("+boot-c", event->header.event_id, path);
	set_version(path, CHECKPOINT_VERSION + 1);
	snprintf(wanted, sizeof(wanted), "the checkpoints in %s/+boot-a are removed", root);
	ck_assert_int_eq(recover(&result), -EPROTONOSUPPORT);
	ck_assert_uint_eq(result.failed, 3);
	ck_assert_int_eq(strncmp(result.message, wanted, strlen(wanted)), 0);
	path_of("+boot-a", event->header.event_id, path);
	ck_assert_int_lt(access(path, F_OK), 0);
	boot(2, "+boot-d");
	ck_assert_int_eq(recover(&result), 1);
	ck_assert_uint_eq(result.failed, 2); /* b is removed, c is read by nobody */
	ck_assert_uint_eq(count_saves(), 1);
	ck_assert_int_eq(saved_remove(AT_FDCWD, root), 0);
}
END_TEST

/* What could not be removed after its save would be saved at each start, and push out the others. */
START_TEST(test_stays)
{
	struct perfpersist_save_result result = { .sz = sizeof(result) };
	char path[256];

	make_root();
	boot(2, "+boot-a");
	ck_assert_int_eq(recover(&result), 1);
	boot(2, "+boot-b");
	snprintf(path, sizeof(path), "%s/+boot-b", root);
	ck_assert_int_eq(mount(path, path, NULL, MS_BIND, NULL), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(recover(&result), -EBUSY);
		ck_assert_uint_eq(result.failed, 1);
		ck_assert_uint_eq(count_saves(), 1);
	}
	ck_assert_int_eq(umount(path), 0);
	ck_assert_int_eq(recover(&result), 1);
	ck_assert_uint_eq(count_saves(), 2);
	/* It ended between both renames. */
	boot(2, "+boot-11111111-2222-3333-4444-555555555555~");
	ck_assert_int_eq(recover(&result), 1);
	ck_assert_uint_eq(count_saves(), 2);
	ck_assert_int_eq(saved_remove(AT_FDCWD, root), 0);
}
END_TEST

/* What cannot be read now is not empty. */
START_TEST(test_no_descriptors)
{
	struct perfpersist_save_result result = { .sz = sizeof(result) };
	struct perfpersist_checkpoints *c = NULL;
	struct rlimit before, few;
	int next;

	make_root();
	boot(2, "+boot-a");
	ck_assert_int_eq(perfpersist_checkpoints_open(NULL, root, &c), 0);
	next = dup(0);
	close(next);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (int more = 0; more < 4; more++) {
		few = (struct rlimit){ (rlim_t)(next + more), before.rlim_max };
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
		ck_assert_int_eq(perfpersist_checkpoints_recover(c, 2, &result), -EMFILE);
		ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
		ck_assert_uint_eq(count_saves(), 0);
	}
	ck_assert_int_eq(perfpersist_checkpoints_recover(c, 2, &result), 1);
	ck_assert_uint_eq(result.records, 2);
	ck_assert_uint_eq(result.failed, 0);
	perfpersist_checkpoints_free(c);
	ck_assert_int_eq(saved_remove(AT_FDCWD, root), 0);
}
END_TEST

/* The newest event of a name counts. What half a removal has left means nothing. */
START_TEST(test_leftovers)
{
	struct perfpersist_save_result result = { .sz = sizeof(result) };
	char path[256], other[256];

	make_root();
	path_of("+del-+boot-b", 1, path);
	snprintf(other, sizeof(other), "%s/+del-+boot-b", root);
	ck_assert_int_eq(mkdir(other, 0700), 0);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	ck_assert_int_eq(recover(&result), 0);
	ck_assert_int_lt(access(other, F_OK), 0);
	boot(2, "+boot-a");
	path_of("+boot-a", event->header.event_id, path);
	path_of("+boot-a", event->header.event_id * 10, other);
	ck_assert_int_eq(link(path, other), 0);
	ck_assert_int_eq(recover(&result), 1);
	ck_assert_uint_eq(result.events, 1);
	ck_assert_uint_eq(result.records, 2);
	ck_assert_uint_eq(result.failed, 1);
	snprintf(path, sizeof(path), "%" PRIu64 ": a newer event",
		 (uint64_t)event->header.event_id);
	ck_assert_int_eq(strncmp(result.message, path, strlen(path)), 0);
	ck_assert_uint_eq(count_saves(), 1);
	ck_assert_int_eq(saved_remove(AT_FDCWD, root), 0);
}
END_TEST

START_TEST(test_sizes)
{
	struct perfpersist_checkpoint_stat stat = { .sz = sizeof(stat) - 1 };
	struct perfpersist_save_result result = { .sz = sizeof(result) - 1 };
	struct perfpersist_checkpoints *c = NULL;
	struct perfpersist_checkpoint *one = NULL;

	make_root();
	ck_assert_int_eq(recover(&result), -EINVAL);
	ck_assert_int_eq(perfpersist_checkpoints_open(NULL, root, &c), 0);
	event->is_copy = false;
	ck_assert_int_eq(perfpersist_checkpoint_new(c, event, &one), 0);
	record(0, 1);
	ck_assert_int_eq(perfpersist_checkpoint_write(one, UINT64_MAX, &stat), -EINVAL);
	stat.sz++;
	ck_assert_int_eq(perfpersist_checkpoint_write(one, UINT64_MAX, &stat), 0);
	ck_assert_uint_gt(stat.written, 0);
	perfpersist_checkpoint_free(one);
	perfpersist_checkpoints_free(c);
	ck_assert_int_eq(saved_remove(AT_FDCWD, root), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("checkpoint");
	TCase *tc = tcase_create("checkpoint");

	umask(022);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_power_fails);
	tcase_add_test(tc, test_nothing_new);
	tcase_add_test(tc, test_limit);
	tcase_add_test(tc, test_turns);
	tcase_add_test(tc, test_large_beside_small);
	tcase_add_test(tc, test_equal_parts);
	tcase_add_test(tc, test_never_room);
	tcase_add_test(tc, test_damaged_ring);
	tcase_add_test(tc, test_facts);
	tcase_add_test(tc, test_time);
	tcase_add_test(tc, test_resume);
	tcase_add_test(tc, test_damage);
	tcase_add_test(tc, test_header);
	tcase_add_test(tc, test_several_sources);
	tcase_add_test(tc, test_costs);
	tcase_add_test(tc, test_sweep);
	tcase_add_test(tc, test_directory);
	tcase_add_test(tc, test_newer_version);
	tcase_add_test(tc, test_too_many);
	add_test_unless(no_mounts(), tc, test_stays);
	tcase_add_test(tc, test_no_descriptors);
	tcase_add_test(tc, test_leftovers);
	tcase_add_test(tc, test_sizes);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
