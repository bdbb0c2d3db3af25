// SPDX-License-Identifier: LGPL-2.1-or-later
/* The file of a recording that could not read all: what it has of the other events, and from when to
 * when each is complete. */
#include <fcntl.h>

#include "client/perfctl/events/recording.h"
#include "client/perfctl/trace/trace.h"
#include "proto/clock.h"
#include "tests/unit/fake-server.h"
#include "tests/unit/needs.h"
#include "tests/unit/ring-writer.h"

#define EVENTS 2
#define FIRST_ID 20

static struct writer rings[EVENTS];
static int is_refused; /* copies of the second event are, with this error */
static struct server server;
static char *arguments[] = { "record", NULL };
static struct call call = { .argc = 1, .argv = arguments };
static struct selection everything;
static struct recording *recording;

/* Of main.c, which is not linked. */
void complain(const char *fmt _unused_, ...)
{
}

int bad_usage(const struct call *of _unused_, const char *fmt _unused_, ...)
{
	return EXIT_USAGE;
}

int call_connect(struct call *of, struct perfpersist **ret)
{
	return perfpersist_connect(&of->connect, ret) < 0 ? EXIT_FAILED : EXIT_OK;
}

int call_failed_as(int error _unused_, const char *fmt _unused_, ...)
{
	return EXIT_FAILED;
}

int call_failed(struct perfpersist *p _unused_, int error _unused_)
{
	return EXIT_FAILED;
}

static void send_copies(int fd, uint32_t serial, const struct pp_msg_open_request *m)
{
	_cleanup_free_ union pp_body *reply = calloc(1, sizeof(*reply));
	size_t i = m->which.id == FIRST_ID + 1 || !strcmp(m->which.name, "b");

	if (i == 1 && is_refused) {
		server_error(fd, serial, is_refused, "not now");
		return;
	}
	reply->open_reply = (struct pp_msg_open_reply){
		.event = { .id = FIRST_ID + i, .ns = "space", .set = 1 },
		.total = 1,
		.copies = 1,
		.count = 1,
		.cpus = { { rings[i].header->cpu, (uint32_t)rings[i].size } },
	};
	strcpy(reply->open_reply.event.name, rings[i].header->name);
	server_send(fd, PP_OP_OPEN | PP_OP_REPLY, serial, reply, &rings[i].fd, 1);
}

/* Gives the rings themselves as copies, and no sideband. */
static void script(int fd)
{
	_cleanup_free_ union pp_body *body = calloc(1, sizeof(*body));
	static uint8_t packet[PP_PACKET_MAX];
	struct pp_header h;
	ssize_t n;

	while ((n = pp_packet_receive(fd, packet, sizeof(packet), 0, NULL, 0)) > 0) {
		ck_assert_int_eq(pp_decode(packet, (size_t)n, 0, false, &h, body), 0);
		if (h.opcode == PP_OP_OPEN)
			send_copies(fd, h.serial, &body->open_request);
		else
			server_error(fd, h.serial, EOPNOTSUPP, "there is none");
	}
}

static void begin(const char *output)
{
	struct recording_options o = { .output = output, .selection = &everything };
	struct perfpersist_info infos[EVENTS] = {};

	for (size_t i = 0; i < EVENTS; i++) {
		rings[i] = writer_new(0, 4096, 64);
		rings[i].header->event_id = FIRST_ID + i;
		strcpy(rings[i].header->name, i ? "b" : "a");
		infos[i].id = FIRST_ID + i;
		strcpy(infos[i].ns, "space");
		strcpy(infos[i].name, rings[i].header->name);
	}
	is_refused = 0;
	server_start(&server, script);
	call.connect =
		(struct perfpersist_options){ .sz = sizeof(call.connect), .socket = server.socket };
	ck_assert_int_eq(recording_new(&call, infos, EVENTS, &o, &recording), EXIT_OK);
}

static void end(void)
{
	recording_free(recording);
	server_end(&server);
	for (size_t i = 0; i < EVENTS; i++)
		writer_done(&rings[i]);
}

/* The file has this record of the first event, which is complete to then; the second one is not
 * known to be. */
static void expect_file(const char *path, uint64_t time)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct trace_history h;
	struct trace_record record;
	struct trace *t = NULL;
	size_t n = 0;

	ck_assert_int_ge(fd, 0);
	unlink(path);
	ck_assert_int_eq(trace_open(fd, &t), 0);
	while (trace_next(t, &record) == 1) {
		if (record.kind != TRACE_SAMPLE)
			continue;
		ck_assert_uint_eq(record.time, time);
		n++;
	}
	ck_assert_uint_eq(n, 1);
	h = trace_history(t, 0);
	ck_assert(h.known && h.from < h.to);
	ck_assert_uint_eq(h.to, time);
	h = trace_history(t, 1);
	ck_assert(h.known && h.from >= h.to);
	trace_free(t);
}

/* A damaged ring is the end of its event, not of the others. */
START_TEST(test_damaged)
{
	uint64_t time;

	begin("test-recording.damaged");
	atomic_store(WRITER_WORD(&rings[1], head), 3);
	ck_assert_int_eq(recording_go_on(recording), 0);
	time = pp_clock_ns(CLOCK_MONOTONIC);
	writer_write(&rings[0], 1, time, 4);
	ck_assert_int_eq(recording_finish(recording), EXIT_FAILED);
	expect_file("test-recording.damaged", time);
	end();
}
END_TEST

/* Copies that do not come at all: the recording has all but these. */
START_TEST(test_refused)
{
	uint64_t time;

	begin("test-recording.refused");
	is_refused = EDQUOT;
	ck_assert_int_eq(recording_go_on(recording), 0);
	time = pp_clock_ns(CLOCK_MONOTONIC);
	writer_write(&rings[0], 1, time, 4);
	ck_assert_int_eq(recording_finish(recording), EXIT_FAILED);
	expect_file("test-recording.refused", time);
	end();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("recording");
	TCase *t = tcase_create("all");
	char dir[] = "/tmp/test-recording-XXXXXX";
	int code;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(chdir(dir), 0);
	tcase_add_test(t, test_damaged);
	tcase_add_test(t, test_refused);
	suite_add_tcase(s, t);
	code = run_suite(s);
	rmdir(dir);
	return code;
}
