// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a snapshot takes and says is missing, against a daemon that follows a script. */
#include "client/perfctl/events/take.h"

#include <stdarg.h>

#include "client/local/saved-make.h"
#include "client/local/saved-remove.h"
#include "client/local/saved-write.h"
#include "client/perfctl/decode/sources.h"
#include "proto/clock.h"
#include "proto/perf-file.h"
#include "tests/unit/fake-server.h"
#include "tests/unit/ring-writer.h"

#define REPLY(op) ((op) | PP_OP_REPLY)
#define EVENTS 2

/* The engine has a sources_done() as well: this links perfctl's. */
static __attribute__((used)) int (*const link_this)(struct perfpersist_event *,
						    struct sources *) = sources_open;

/* Replace main.c's, which is not linked. */
static char said[4096];

void complain(const char *fmt, ...)
{
	size_t n = strlen(said);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said + n, sizeof(said) - n, fmt, ap);
	va_end(ap);
}

int bad_usage(const struct call *call _unused_, const char *fmt, ...)
{
	ck_abort_msg("%s", fmt);
	return EXIT_USAGE;
}

int call_failed(struct perfpersist *p, int error)
{
	ck_abort_msg("%d: %s", error, perfpersist_error(p));
	return EXIT_FAILED;
}

int call_failed_as(int error, const char *fmt, ...)
{
	ck_abort_msg("%d: %s", error, fmt);
	return EXIT_FAILED;
}

/* ── the daemon ─────────────────────────────────────────────────────────────────────────── */

static struct writer rings[EVENTS];
static uint64_t missed;
static uint32_t copies;
static void (*before_open)(uint64_t id); /* it answers an OPEN after this */

/* Events are named by their number, from 1 on, which is their id as well. */
static struct pp_msg_event event_of(uint64_t id)
{
	struct pp_msg_event m = {
		.id = id,
		.ns = "space",
		.event = "sys:tracepoint",
		.recorder = PP_RECORDER_GENERIC,
		.state = PP_EVENT_RUNNING,
		.sources = 1,
		.set = rings[id - 1].header->set,
		.sample_type = WRITER_SAMPLE_TYPE,
		.missed = missed,
	};

	snprintf(m.name, sizeof(m.name), "e%u", (unsigned)id);
	return m;
}

static uint64_t id_of(const struct pp_msg_name *which)
{
	return which->id ?: strtoul(which->name + 1, NULL, 10);
}

static void answer_open(int fd, uint32_t serial, uint64_t id)
{
	_cleanup_free_ union pp_body *reply = calloc(1, sizeof(*reply));
	const struct writer *w = &rings[id - 1];

	if (before_open)
		before_open(id);
	reply->open_reply = (struct pp_msg_open_reply){
		.event = event_of(id),
		.total = 1,
		.count = 1,
		.copies = copies,
		.cpus[0] = { 0, (uint32_t)w->size },
	};
	server_send(fd, REPLY(PP_OP_OPEN), serial, reply, &w->fd, 1);
}

static void script(int fd)
{
	static uint8_t packet[PP_PACKET_MAX];
	static union pp_body body;
	struct pp_header h;
	ssize_t n;

	while ((n = pp_packet_receive(fd, packet, sizeof(packet), 0, NULL, 0)) > 0) {
		ck_assert_int_eq(pp_decode(packet, (size_t)n, 0, false, &h, &body), 0);
		if (h.opcode == PP_OP_SHOW) {
			struct pp_msg_event m = event_of(id_of(&body.name));

			server_send(fd, REPLY(PP_OP_SHOW), h.serial, &m, NULL, 0);
		} else if (h.opcode == PP_OP_OPEN) {
			answer_open(fd, h.serial, id_of(&body.open_request.which));
		} else {
			server_error(fd, h.serial, EOPNOTSUPP, "there is none");
		}
	}
}

/* ── a snapshot ─────────────────────────────────────────────────────────────────────────── */

static struct server server;
static struct perfpersist *p;
static char *words[] = { "snapshot" };
static struct call call = { .argc = 1, .argv = words };

static void setup(void)
{
	for (uint32_t i = 0; i < EVENTS; i++) {
		rings[i] = writer_new(0, 4096, 64);
		rings[i].header->event_id = i + 1;
		rings[i].header->created_mono = 1;
	}
	missed = copies = 0;
	before_open = NULL;
	*said = '\0';
	server_start(&server, script);
	p = server_connect(&server);
}

static void teardown(void)
{
	perfpersist_free(p);
	server_end(&server);
	for (size_t i = 0; i < EVENTS; i++)
		writer_done(&rings[i]);
}

/* How many records of a type a file has. */
static unsigned count(int fd, uint32_t type)
{
	struct perf_file_header file;
	struct perf_event_header h;
	unsigned n = 0;

	ck_assert_int_eq(pread(fd, &file, sizeof(file), 0), sizeof(file));
	for (uint64_t at = 0; at < file.data.size; at += h.size) {
		ck_assert_int_eq(pread(fd, &h, sizeof(h), (off_t)(file.data.offset + at)),
				 sizeof(h));
		ck_assert_uint_ge(h.size, sizeof(h));
		n += h.type == type;
	}
	return n;
}

/* Takes the first n events; the caller closes the file. */
static int take_all(size_t n, uint64_t last, struct take_result *ret)
{
	char *names[EVENTS] = { "space/e1", "space/e2" };
	struct selection s = { .last = last };
	int fd = memfd_create("perf.data", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	*ret = (struct take_result){};
	ck_assert_int_eq(take(&call, p, names, n, &s, fd, false, false, ret), EXIT_OK);
	return fd;
}

/* ── the cases ──────────────────────────────────────────────────────────────────────────── */

#define LAST 50000000ULL

/* Just before it is copied. The second event takes longer than what is asked for. */
static void write_now(uint64_t id)
{
	if (id == 2)
		nanosleep(&(struct timespec){ .tv_nsec = 2 * LAST }, NULL);
	writer_write(&rings[id - 1], (uint32_t)id, pp_clock_ns(CLOCK_MONOTONIC), 4);
}

/* --last is about the time before the question, however long the copies take. */
START_TEST(test_slow_copies)
{
	struct take_result result;
	int fd;

	copies = 1;
	before_open = write_now;
	fd = take_all(2, LAST, &result);
	ck_assert_uint_eq(result.records, 2);
	close(fd);
}
END_TEST

/* What earlier sets of rings held is not there: it is said, and what was missed is not lost here. */
START_TEST(test_later_set)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	struct take_result result;
	int fd;

	missed = 7;
	writer_write(&rings[0], 1, now, 4);
	for (uint32_t set = 1; set <= 2; set++) {
		rings[0].header->set = set;
		fd = take_all(1, 0, &result);
		ck_assert_uint_eq(result.missed, 7);
		ck_assert_uint_eq(count(fd, PERF_RECORD_LOST_SAMPLES), set == 1);
		close(fd);
		ck_assert_ptr_null(strstr(said, "new buffers"));
		fd = take_all(1, now - 1, &result);
		ck_assert_uint_eq(count(fd, PERF_RECORD_LOST_SAMPLES), 0);
		close(fd);
		ck_assert_int_eq(!!strstr(said, "space/e1 has got new buffers"), set == 2);
	}
}
END_TEST

/* Nothing is said if the set is older than what is asked for, or if nothing tells how old it is. */
START_TEST(test_old_enough)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	struct take_result result;

	rings[0].header->set = rings[1].header->set = 2;
	writer_write(&rings[0], 1, 1, 4);
	close(take_all(2, now / 2, &result));
	ck_assert_uint_eq(result.records, 0);
	ck_assert_ptr_null(strstr(said, "new buffers"));
}
END_TEST

/* A part of an event is not all that it has recorded. */
START_TEST(test_window)
{
	for (uint64_t until = 0; until <= 10; until += 10) {
		const struct take_window window = { .until = until };
		struct chosen events = { calloc(1, sizeof(*events.events)), 1 };
		int fd = memfd_create("perf.data", MFD_CLOEXEC);
		struct take_result result;

		missed = 7;
		writer_write(&rings[0], 1, 10 + until, 4);
		ck_assert_int_eq(perfpersist_open(p, "space", "e1", &events.events[0]), 0);
		ck_assert_int_eq(take_opened(&call, p, &events, &window, fd, &result), 0);
		ck_assert_uint_eq(result.records, 1);
		ck_assert_uint_eq(count(fd, PERF_RECORD_LOST_SAMPLES), !until);
		close(fd);
	}
}
END_TEST

/* ── a save ─────────────────────────────────────────────────────────────────────────────── */

#define HOUR 3600000000000ULL

static char root[] = "/tmp/perfpersist-take-XXXXXX";

static void save_event(struct saving *s, uint64_t id, uint64_t at)
{
	struct perfpersist_info info = {
		.sz = sizeof(info),
		.id = id,
		.ns = "space",
		.event = "sys:tracepoint",
		.recorder = PERFPERSIST_RECORDER_GENERIC,
		.sources = 1,
		.set = 1,
		.group = (gid_t)-1,
		.saved = at + pp_clock_offset(),
		.saved_mono = at,
	};
	struct perfpersist_event *e = NULL;
	struct saved_event_counts counts;
	char file[32];
	int dir;

	snprintf(info.name, sizeof(info.name), "e%u", (unsigned)id);
	ck_assert_int_eq(perfpersist_open_fds(&rings[id - 1].fd, 1, &e), 0);
	ck_assert_int_eq(saving_event_dir(s, &info, &dir), 0);
	ck_assert_int_eq(saved_write_event(dir, e, &info, &counts, file), 0);
	close(dir);
	perfpersist_event_free(e);
}

/* In place of the daemon. Each event was saved an hour after the one before. */
static void save_all(char path[static 64], uint64_t at)
{
	struct saving s;

	ck_assert_ptr_nonnull(mkdtemp(root));
	snprintf(path, 64, "%s/save", root);
	ck_assert_int_eq(saving_begin_at(path, &s), 0);
	for (uint64_t id = 1; id <= EVENTS; id++)
		save_event(&s, id, at + (id - 1) * HOUR);
	ck_assert_int_eq(saving_finish(&s), 0);
	saving_done(&s);
	perfpersist_free(p);
	call.connect.saved = path;
	ck_assert_int_eq(perfpersist_connect(
				 &(struct perfpersist_options){
					 .sz = sizeof(struct perfpersist_options), .saved = path },
				 &p),
			 0);
}

static void remove_save(void)
{
	call.connect.saved = NULL;
	ck_assert_int_eq(saved_remove(AT_FDCWD, root), 0);
}

/* A save may have records that are newer than its time. Its processes are none of today's, whatever its
 * sideband is worth. */
START_TEST(test_save)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	struct take_result result;
	char path[64], sideband[96];
	int fd;

	writer_write(&rings[0], 1, now + EVENTS * HOUR, 4);
	save_all(path, now);
	for (int has_sideband = 0; has_sideband <= 1; has_sideband++) {
		if (has_sideband) {
			snprintf(sideband, sizeof(sideband), "%s/+sideband", path);
			close(open(sideband, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
		}
		fd = take_all(2, 0, &result);
		ck_assert_uint_eq(result.records, 1);
		ck_assert_uint_eq(count(fd, PERF_RECORD_SAMPLE), 1);
		ck_assert_uint_eq(count(fd, PERF_RECORD_COMM), 0);
		ck_assert_int_eq(*said != 0, has_sideband);
		close(fd);
	}
	ck_assert_ptr_nonnull(strstr(said, "; processes will be unnamed"));
	remove_save();
}
END_TEST

/* The first of its events may have been saved long before the others: --last is about the last one. */
START_TEST(test_last_of_save)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	struct take_result result;
	char path[64];

	writer_write(&rings[0], 1, now, 4);
	writer_write(&rings[1], 2, now + HOUR, 4);
	save_all(path, now);
	close(take_all(2, HOUR / 2, &result));
	ck_assert_uint_eq(result.records, 1);
	remove_save();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("take");
	TCase *tc = tcase_create("take");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, test_slow_copies);
	tcase_add_test(tc, test_later_set);
	tcase_add_test(tc, test_old_enough);
	tcase_add_test(tc, test_window);
	tcase_add_test(tc, test_save);
	tcase_add_test(tc, test_last_of_save);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
