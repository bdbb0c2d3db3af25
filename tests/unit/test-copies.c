// SPDX-License-Identifier: LGPL-2.1-or-later
/* Copies: which users get them, what they are charged, and until when; with a real dumper, or
 * without one. */
#include "daemon/broker/handout/memfd-refs.h"
#include "tests/unit/dumper-process.h"
#include "tests/unit/registry-pins.h"

#define DATA 4096ULL
#define RING (PP_RING_PAGE + DATA + 4096)

static struct broker b;
static struct dumper_process dumper;
static struct client root, member;
static const struct pp_msg_open_request nothing;
static struct pp_msg_open_request request;

/* Creates a/x with two rings, which all may read, and only owner and group may hold. */
static void begin(void)
{
	broker_start(&b);
	client_begin(&b, &root, 0);
	client_begin(&b, &member, MEMBER);
	ck_assert_int_eq(
		registry_configure(&b.lifecycle.registry, "a", 0, TEAM, 0644, NAMESPACE_LIVE_GROUP),
		0);
	dumper_process_listen(&dumper, b.dumper);
	request = nothing;
	request.which = client_name("a", "x");
	pins_begin(&b);
	ck_assert_int_eq(client_create(&root, "a", "x"), 0);
	pins_rings(&b, "a", "x", DATA);
}

static void end(void)
{
	client_end(&root);
	client_end(&member);
	pins_end(&b);
	dumper_process_done(&dumper);
	/* This asserts that nothing is charged. */
	broker_end(&b);
}

static uint64_t charged(uint32_t uid)
{
	const struct quota_account *user;

	broker_settle(&b);
	user = quota_user(&b.quota, uid);
	return user ? user->used[QUOTA_COPIES] : 0;
}

START_TEST(who_gets_them)
{
	const struct pp_msg_open_reply *reply = &member.body.open_reply;
	struct pp_ring_header header;

	begin();
	dumper_process_start(&dumper);
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &request), 0);
	ck_assert_uint_eq(reply->copies, 1);
	ck_assert_uint_eq(reply->total, 2);
	ck_assert_uint_eq(reply->count, 2);
	ck_assert_uint_eq(reply->event.flags & PP_EVENT_COPIES, PP_EVENT_COPIES);
	ck_assert_uint_eq(member.fds.n, 2);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(reply->cpus[i].map_size, RING);
		ck_assert_int_eq(pread(member.fds.fd[i], &header, sizeof(header), 0),
				 sizeof(header));
		ck_assert_uint_eq(header.cpu, reply->cpus[i].cpu);
		ck_assert_int_ge(fcntl(member.fds.fd[i], F_GET_SEALS), F_SEAL_WRITE);
	}
	ck_assert_uint_eq(charged(MEMBER), 2 * RING);
	request.first = 1;
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &request), 0);
	ck_assert_uint_eq(reply->count, 1);
	ck_assert_uint_eq(reply->cpus[0].cpu, 3);
	request.first = 2;
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &request), -EINVAL);
	ck_assert_uint_eq(charged(MEMBER), 0);

	/* Root gets the rings, unless it asks for copies. */
	request.first = 0;
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), 0);
	ck_assert_uint_eq(root.body.open_reply.copies, 0);
	ck_assert_uint_eq(root.body.open_reply.event.flags & PP_EVENT_COPIES, 0);
	ck_assert_int_lt(fcntl(root.fds.fd[0], F_GET_SEALS), 0);
	request.flags = PP_OPEN_COPY;
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), 0);
	ck_assert_uint_eq(root.body.open_reply.copies, 1);
	ck_assert_uint_eq(charged(0), 2 * RING);
	request.flags |= 1U << 31;
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), -EINVAL);
	/* Copies of an event that does not exist: refused without asking the dumper. */
	request.flags = PP_OPEN_COPY;
	request.which = client_name("a", "y");
	ck_assert_int_eq(client_call(&root, PP_OP_OPEN, &request), -ENOENT);
	end();
}
END_TEST

/* Charged however the copies are held: as a descriptor, a mapping, or only a name of the file. */
START_TEST(charged_until_gone)
{
	char path[64];
	void *map;
	int name;

	begin();
	dumper_process_start(&dumper);
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &request), 0);
	map = mmap(NULL, RING, PROT_READ, MAP_SHARED, member.fds.fd[0], 0);
	ck_assert_ptr_ne(map, MAP_FAILED);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", member.fds.fd[1]);
	name = open(path, O_PATH | O_CLOEXEC);
	ck_assert_int_ge(name, 0);
	pp_fds_close(&member.fds);
	ck_assert_uint_eq(charged(MEMBER), 2 * RING);
	munmap(map, RING);
	ck_assert_uint_eq(charged(MEMBER), RING);
	/* The client may have left, and the dumper may have died. */
	client_end(&member);
	dumper_process_kill(&dumper);
	ck_assert_uint_eq(charged(MEMBER), RING);
	close(name);
	ck_assert_uint_eq(charged(MEMBER), 0);
	client_begin(&b, &member, MEMBER);
	end();
}
END_TEST

START_TEST(limits)
{
	struct client other;

	begin();
	dumper_process_start(&dumper);
	client_begin(&b, &other, MEMBER);
	b.quota.per_user.max[QUOTA_COPIES] = 3 * RING;
	for (unsigned i = 0; i < 1000; i++) {
		/* Copies that are closed by then no longer count, even before the loop runs. */
		ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &request), 0);
		ck_assert_int_eq(client_call(&other, PP_OP_OPEN, &request), -EDQUOT);
		pp_fds_close(&member.fds);
	}
	ck_assert_uint_eq(charged(MEMBER), 0);
	client_end(&other);
	end();
}
END_TEST

/* Many requests at once, on few connections: one after the other, each complete. */
START_TEST(many)
{
	begin();
	dumper_process_start(&dumper);
	for (unsigned i = 0; i < 50; i++) {
		client_send(&member, PP_OP_OPEN, &request);
		client_send(&root, PP_OP_OPEN, &request);
	}
	for (unsigned i = 0; i < 50; i++) {
		ck_assert_int_eq(client_receive(&member), 0);
		ck_assert_uint_eq(member.body.open_reply.copies, 1);
		ck_assert_int_eq(client_receive(&root), 0);
		ck_assert_uint_eq(root.body.open_reply.copies, 0);
	}
	ck_assert_ptr_null(b.service.openings);
	end();
}
END_TEST

/* A page of copies is limited to what the dumper copies in a moment. */
START_TEST(large_rings)
{
	const struct pp_msg_open_reply *reply = &member.body.open_reply;

	begin();
	dumper_process_start(&dumper);
	ck_assert_int_eq(client_create(&root, "a", "large"), 0);
	pins_rings(&b, "a", "large", 64 << 20);
	b.quota.per_user.max[QUOTA_COPIES] = QUOTA_UNLIMITED;
	b.quota.total.max[QUOTA_COPIES] = QUOTA_UNLIMITED;
	request.which = client_name("a", "large");
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &request), 0);
	ck_assert_uint_eq(reply->total, 2);
	ck_assert_uint_eq(reply->count, 1);
	request.first = 1;
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &request), 0);
	ck_assert_uint_eq(reply->count, 1);
	ck_assert_uint_eq(reply->cpus[0].cpu, 3);
	end();
}
END_TEST

/* ── a dumper that fails ────────────────────────────────────────────────────────────────── */

static int accept_job(void)
{
	static uint8_t job[sizeof(struct pp_copy_job)];
	struct pp_fds fds;
	int fd = accept4(dumper.listen, NULL, NULL, SOCK_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pp_packet_receive(fd, job, sizeof(job), PP_FDS_MAX, &fds, 0), sizeof(job));
	ck_assert_uint_eq(fds.n, 2);
	pp_fds_close(&fds);
	return fd;
}

START_TEST(failing)
{
	struct pp_copy_answer answer = { .abi = PP_COPY_ABI, .serial = UINT64_MAX };
	struct pp_msg_empty empty = {};
	int fd;

	begin();
	/* It dies with the job; the broker answers everything else meanwhile. */
	client_send(&member, PP_OP_OPEN, &request);
	broker_settle(&b);
	ck_assert_uint_eq(charged(MEMBER), 2 * RING);
	ck_assert_int_eq(client_call(&root, PP_OP_PING, &empty), 0);
	close(accept_job());
	ck_assert_int_eq(client_receive(&member), -EAGAIN);
	ck_assert_uint_eq(charged(MEMBER), 0);
	/* It lies. */
	client_send(&member, PP_OP_OPEN, &request);
	broker_settle(&b);
	fd = accept_job();
	ck_assert_int_eq(pp_packet_send(fd, &answer, sizeof(answer), NULL, 0), 0);
	ck_assert_int_eq(client_receive(&member), -EAGAIN);
	close(fd);
	/* The clients have left. */
	client_send(&member, PP_OP_OPEN, &request);
	broker_settle(&b);
	fd = accept_job();
	client_end(&member);
	ck_assert_uint_eq(charged(MEMBER), 2 * RING);
	close(fd);
	ck_assert_uint_eq(charged(MEMBER), 0);
	/* A working dumper serves requests again, although its connection broke unnoticed. */
	client_begin(&b, &member, MEMBER);
	dumper_process_start(&dumper);
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &request), 0);
	dumper_process_kill(&dumper);
	dumper_process_start(&dumper);
	client_send(&member, PP_OP_OPEN, &request);
	ck_assert_int_eq(client_receive(&member), 0);
	/* There is no dumper. */
	dumper_process_kill(&dumper);
	dumper.listen = close_fd(dumper.listen);
	ck_assert_int_eq(client_call(&member, PP_OP_OPEN, &request), -EAGAIN);
	ck_assert_uint_eq(charged(MEMBER), 0);
	/* A socket left over at the end. */
	unlink(b.dumper);
	dumper_process_listen(&dumper, b.dumper);
	client_send(&member, PP_OP_OPEN, &request);
	broker_settle(&b);
	end();
}
END_TEST

/* ── memfd references ───────────────────────────────────────────────────────────────────────────── */

/* When the kernel had no room for its notices, the broker checks the remaining copies. */
START_TEST(reviewed)
{
	struct memfd_refs h = { .fd = -EBADF };
	struct quota quota;
	sd_event *loop;
	int files[20];

	quota_init(&quota);
	ck_assert_int_ge(sd_event_new(&loop), 0);
	ck_assert_int_ge(memfd_refs_init(&h, loop, &quota), 0);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		files[i] = memfd_create("copy", MFD_CLOEXEC);
		ck_assert_int_eq(quota_charge(&quota, QUOTA_COPIES, 7, NULL, i + 1), 0);
		ck_assert_int_eq(memfd_refs_add(&h, files[i], 7, i + 1), 0);
	}
	ck_assert_int_eq(memfd_refs_add(&h, files[3], 7, 1), -EEXIST);
	for (size_t i = 0; i < ARRAY_SIZE(files); i += 2)
		close(files[i]);
	memfd_refs_review(&h);
	ck_assert_uint_eq(quota_user(&quota, 7)->used[QUOTA_COPIES], 110);
	/* Late notices do no harm. */
	memfd_refs_catch_up(&h);
	ck_assert_uint_eq(quota_user(&quota, 7)->used[QUOTA_COPIES], 110);
	for (size_t i = 1; i < ARRAY_SIZE(files); i += 4)
		close(files[i]);
	memfd_refs_catch_up(&h);
	ck_assert_uint_eq(quota_user(&quota, 7)->used[QUOTA_COPIES], 60);
	memfd_refs_done(&h);
	quota_done(&quota);
	sd_event_unref(loop);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("copies");
	TCase *t = tcase_create("all");

	need(no_bpffs());
	tcase_add_test(t, who_gets_them);
	tcase_add_test(t, charged_until_gone);
	tcase_add_test(t, limits);
	tcase_add_test(t, many);
	tcase_add_test(t, large_rings);
	tcase_add_test(t, failing);
	tcase_add_test(t, reviewed);
	suite_add_tcase(s, t);
	return run_suite(s);
}
