// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How long the kernel is in what others have attached to tracepoints, for apps.sh:
 *
 *   bench-between TRACEPOINT…        (without its system, as sched_switch)
 *
 * A tracepoint calls functions of one priority in the order in which they were attached (func_add() in the kernel's
 * kernel/tracepoint.c; perf's and those of BPF have the same one). Where that is not so, both recorders take as long as
 * nothing does. So this attaches a program to each, prints "first",
 * and waits for a line on stdin, while the recorder begins; attaches a second one, prints "second", and waits for
 * another line, while the load runs. The time between the two programs is then that of the recorder, with the
 * caches as the load leaves them, and some ns more, which a run without any recorder tells.
 *
 * Then it prints "TRACEPOINT TIMES NANOSECONDS" for each tracepoint.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <stddef.h>

#include "daemon/engine/emit/emit.h"
#include "measure.h"

#define TRACEPOINTS_MAX 64

struct mark {
	uint64_t at; /* when the first program ran; 0: not since the second */
	uint64_t times, ns;
};

static int marks = -1; /* struct mark of each tracepoint, for each CPU */

enum { R0, R1, R2, MARK = BPF_REG_6, NOW, FRAME = BPF_REG_10 };

#define AT (int)offsetof(struct mark, at)
#define TIMES (int)offsetof(struct mark, times)
#define NS (int)offsetof(struct mark, ns)

/* R0 = this CPU's mark of the tracepoint i. */
static emit_label find(struct emitter *e, int i)
{
	emit_load_map(e, R1, marks);
	emit_store_imm(e, 4, FRAME, -4, i);
	emit_mov(e, R2, FRAME);
	emit_alu_imm(e, BPF_ADD, R2, -4);
	emit_call(e, BPF_FUNC_map_lookup_elem);
	return emit_jump_imm(e, BPF_JEQ, R0, 0);
}

/* Until this process ends. */
static void attach(struct emitter *e, const char *tracepoint)
{
	int program;

	emit_mov_imm(e, R0, 0);
	emit_exit(e);
	if (e->error)
		die("cannot make a program that tells the time: %s", strerror(-e->error));
	program = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "bench_between", "GPL", e->insns,
				e->n, NULL);
	if (program < 0)
		die("the kernel refuses a program that tells the time: %s", strerror(-program));
	if (bpf_raw_tracepoint_open(tracepoint, program) < 0)
		die("cannot attach to the tracepoint %s: %m", tracepoint);
	close(program);
}

/* The clock last, and in the second program first. */
static void attach_first(const char *tracepoint, int i)
{
	_cleanup_(emit_done) struct emitter e = {};
	emit_label none = find(&e, i);

	emit_mov(&e, MARK, R0);
	emit_call(&e, BPF_FUNC_ktime_get_ns);
	emit_store(&e, 8, MARK, AT, R0);
	emit_land(&e, none);
	attach(&e, tracepoint);
}

static void attach_second(const char *tracepoint, int i)
{
	_cleanup_(emit_done) struct emitter e = {};
	emit_label none, not_begun;

	emit_call(&e, BPF_FUNC_ktime_get_ns);
	emit_mov(&e, NOW, R0);
	none = find(&e, i);
	emit_load(&e, 8, R1, R0, AT);
	not_begun = emit_jump_imm(&e, BPF_JEQ, R1, 0);
	emit_alu(&e, BPF_SUB, NOW, R1);
	emit_load(&e, 8, R2, R0, NS);
	emit_alu(&e, BPF_ADD, R2, NOW);
	emit_store(&e, 8, R0, NS, R2);
	emit_load(&e, 8, R2, R0, TIMES);
	emit_alu_imm(&e, BPF_ADD, R2, 1);
	emit_store(&e, 8, R0, TIMES, R2);
	emit_store_imm(&e, 8, R0, AT, 0);
	emit_land(&e, not_begun);
	emit_land(&e, none);
	attach(&e, tracepoint);
}

static void wait_after(const char *what)
{
	char line[80];

	puts(what);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(1); /* who measures has ended */
}

int main(int argc, char **argv)
{
	int n = argc - 1, cpus = libbpf_num_possible_cpus();
	struct mark *of_cpus;

	if (n < 1 || n > TRACEPOINTS_MAX)
		die("usage: bench-between TRACEPOINT…, at most %d", TRACEPOINTS_MAX);
	if (cpus < 1 || !(of_cpus = calloc((size_t)cpus, sizeof(*of_cpus))))
		die("cannot tell which CPUs there can be");
	marks = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "bench_between", sizeof(uint32_t),
			       sizeof(struct mark), (uint32_t)n, NULL);
	if (marks < 0)
		die("cannot create a map: %s", strerror(-marks));
	for (int i = 0; i < n; i++)
		attach_first(argv[i + 1], i);
	wait_after("first");
	for (int i = 0; i < n; i++)
		attach_second(argv[i + 1], i);
	wait_after("second");
	for (int i = 0; i < n; i++) {
		uint64_t times = 0, ns = 0;

		if (bpf_map_lookup_elem(marks, &i, of_cpus) < 0)
			die("cannot read a map: %m");
		for (int cpu = 0; cpu < cpus; cpu++) {
			times += of_cpus[cpu].times;
			ns += of_cpus[cpu].ns;
		}
		printf("%s %" PRIu64 " %" PRIu64 "\n", argv[i + 1], times, ns);
	}
	return 0;
}
