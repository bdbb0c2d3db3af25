// SPDX-License-Identifier: LGPL-2.1-or-later
/* Firings without end: the broker hears of all, and does other things, too. */
#include <linux/bpf.h>

#include "daemon/broker/triggers/firings.h"
#include "proto/clock.h"
#include "tests/unit/registry-pins.h"

#define COST 5000000ULL /* ns of each, at least */
#define FIRINGS 20	/* these take twice what they may at once */

static struct broker b;
static int program = -EBADF;
static uint64_t cost = COST;
static unsigned fired, others;

/* Sends an empty firing. */
static int make_program(int map)
{
	const int size = (int)sizeof(struct pp_fired);
	struct bpf_insn code[sizeof(struct pp_fired) / 8 + 9] = {
		{ BPF_LD | BPF_DW | BPF_IMM, 1, BPF_PSEUDO_MAP_FD, 0, map },
		{ 0 },
		{ BPF_ALU64 | BPF_MOV | BPF_X, 2, 10, 0, 0 },
		{ BPF_ALU64 | BPF_ADD | BPF_K, 2, 0, 0, -size },
		{ BPF_ALU64 | BPF_MOV | BPF_K, 3, 0, 0, size },
		{ BPF_ALU64 | BPF_MOV | BPF_K, 4, 0, 0, 0 },
	};
	union bpf_attr attr;
	unsigned n = 6;

	ck_assert_int_eq(size % 8, 0);
	for (int at = -size; at < 0; at += 8)
		code[n++] = (struct bpf_insn){ BPF_ST | BPF_MEM | BPF_DW, 10, 0, (int16_t)at, 0 };
	code[n++] = (struct bpf_insn){ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_output };
	code[n++] = (struct bpf_insn){ BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0, 0 };
	code[n++] = (struct bpf_insn){ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 };
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_CGROUP_SKB;
	attr.insns = (uint64_t)(uintptr_t)code;
	attr.insn_cnt = n;
	attr.license = (uint64_t)(uintptr_t) "GPL";
	return pins_call(BPF_PROG_LOAD, &attr);
}

static void fire(void)
{
	const uint8_t packet[64] = { [12] = 8 };
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)program;
	attr.test.data_in = (uint64_t)(uintptr_t)packet;
	attr.test.data_size_in = sizeof(packet);
	pins_call(BPF_PROG_TEST_RUN, &attr);
}

/* As with 64 triggers: while one is handled the next one comes. It sleeps as if others had the CPU. */
static void on_fired(void *userdata _unused_, const struct pp_fired *f _unused_)
{
	const struct timespec t = { (time_t)(cost / 1000000000), (long)(cost % 1000000000) };

	fired++;
	nanosleep(&t, NULL);
	fire();
}

static void on_read(void *userdata _unused_)
{
}

static int on_other(sd_event_source *s _unused_, void *userdata _unused_)
{
	others++;
	return 0;
}

static struct firings f = { .registry = b.registry, .fired = on_fired, .done = on_read, .fd = -1 };
static int map = -EBADF;

static void begin(void)
{
	broker_start(&b);
	pins_begin(&b);
	f.loop = b.loop;
	map = pins_ringbuf();
	program = make_program(map);
	ck_assert_int_eq(firings_listen(&f), -ENOENT);
	pins_add(&b, map, PP_FIRINGS);
	ck_assert_int_eq(firings_listen(&f), 0);
}

static void end(void)
{
	firings_done(&f);
	close(program);
	close(map);
	pins_end(&b);
	broker_end(&b);
}

START_TEST(without_end)
{
	sd_event_source *other = NULL;

	begin();
	ck_assert_int_eq(sd_event_add_defer(b.loop, &other, on_other, NULL), 0);
	ck_assert_int_eq(sd_event_source_set_enabled(other, SD_EVENT_ON), 0);
	ck_assert_int_eq(sd_event_source_set_priority(other, FAIR_QUEUE_PRIORITY), 0);
	fire();
	while (fired < FIRINGS)
		ck_assert_int_ge(sd_event_run(b.loop, UINT64_MAX), 0);
	ck_assert_uint_gt(others, 0);
	sd_event_source_disable_unref(other);
	end();
}
END_TEST

/* The machine stands still for a second, or a guest for minutes: the next firing does not wait eight times as long. */
START_TEST(stands_still)
{
	begin();
	cost = 1000000000;
	fire();
	while (fired < 1)
		ck_assert_int_ge(sd_event_run(b.loop, UINT64_MAX), 0);
	ck_assert_uint_gt(f.debt, 0);
	ck_assert_uint_lt(f.debt, cost / 4);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("firings");
	TCase *t = tcase_create("firings");

	need(no_bpffs());
	tcase_set_timeout(t, 60);
	tcase_add_test(t, without_end);
	tcase_add_test(t, stands_still);
	suite_add_tcase(suite, t);
	return run_suite(suite);
}
