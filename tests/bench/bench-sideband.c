// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measures sideband under load. First it finds how many short programs a second the machine runs
 * with nothing attached. Then it runs 80 % of that rate while an event records. It reports the
 * keeper's CPU time and memory, and checks that the sideband names each program, or counts it as
 * forgotten or lost.
 *
 *   bench-sideband INSTANCE SCRATCH SECONDS
 */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "measure.h"
#include "proto/sideband.h"

#define SHARE 0.8
#define PIDS_MAX (1U << 22) /* as the kernel has it */
#define SCALE 2000	    /* programs per second at which the keeper's time is reported */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
static const uint8_t code[] = { 0x31, 0xff, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05 }; /* exit(0) */
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
static const uint32_t code[] = { 0xd2800000, 0xd2800ba8, 0xd4000001 };
#else
#error write exit(0) for this machine
#endif

/* Shared by workers and parent. */
struct shared {
	uint64_t programs[CPUS_MAX]; /* programs that have run to their end */
	uint32_t spawned[PIDS_MAX];  /* how often each pid ran a counted program */
	uint32_t told[PIDS_MAX];     /* how often the sideband has it */
};

static struct shared *shared;
static char program[256];
static int cpus[CPUS_MAX];
static size_t n_cpus;

/* ── the load ───────────────────────────────────────────────────────────────────────────── */

/* The smallest program possible: one page and one system call. */
static void write_program(void)
{
	struct {
		Elf64_Ehdr ehdr;
		Elf64_Phdr phdr;
		uint8_t text[sizeof(code)];
	} file = {
		.ehdr = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT },
			.e_type = ET_EXEC,
			.e_machine = MACHINE,
			.e_version = EV_CURRENT,
			.e_entry = 0x400000 + sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			.e_phoff = sizeof(Elf64_Ehdr),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1,
		},
		.phdr = {
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_vaddr = 0x400000,
			.p_filesz = sizeof(file),
			.p_memsz = sizeof(file),
			.p_align = 0x10000,
		},
	};
	_cleanup_close_ int fd = open(program, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	memcpy(file.text, code, sizeof(code));
	if (fd < 0 || write(fd, &file, sizeof(file)) != (ssize_t)sizeof(file))
		die("cannot write %s: %m", program);
}

static pid_t run_program(void)
{
	char *args[] = { program, NULL }, *none[] = { NULL };
	pid_t pid;
	int r = posix_spawn(&pid, program, NULL, NULL, args, none);

	if (r)
		die("cannot run %s: %s", program, strerror(r));
	if (waitpid(pid, NULL, 0) != pid)
		die("cannot wait for %s: %m", program);
	return pid;
}

static void pace(uint64_t until)
{
	const struct timespec t = { .tv_sec = (time_t)(until / 1000000000),
				    .tv_nsec = (long)(until % 1000000000) };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* rate: programs per second, 0 for as many as possible. counted: the worker writes down the
 * pids. */
static void work(size_t worker, uint64_t end, double rate, bool counted)
{
	uint64_t began = now(CLOCK_MONOTONIC), t;

	stay_on(cpus[worker]);
	for (uint64_t n = 1; (t = now(CLOCK_MONOTONIC)) < end; n++) {
		uint64_t due = rate > 0 ? began + (uint64_t)((double)n * 1e9 / rate) : 0;
		pid_t pid;

		if (due > t)
			pace(due);
		pid = run_program();
		if (counted)
			__atomic_fetch_add(&shared->spawned[(uint32_t)pid % PIDS_MAX], 1,
					   __ATOMIC_RELAXED);
		shared->programs[worker]++;
	}
}

static void start_workers(pid_t *pids, uint64_t end, double rate, bool counted)
{
	memset(shared->programs, 0, sizeof(shared->programs));
	for (size_t i = 0; i < n_cpus; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			die("cannot fork: %m");
		if (pids[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			work(i, end, rate, counted);
			_exit(0);
		}
	}
}

static uint64_t end_workers(const pid_t *pids)
{
	uint64_t programs = 0;
	int status;

	for (size_t i = 0; i < n_cpus; i++) {
		if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
			die("a worker failed");
		programs += shared->programs[i];
	}
	return programs;
}

/* Programs per second of this machine without an event. */
static double bare_rate(unsigned seconds)
{
	uint64_t began = now(CLOCK_MONOTONIC), programs;
	pid_t pids[CPUS_MAX];

	start_workers(pids, began + seconds * 1000000000ULL, 0, false);
	programs = end_workers(pids);
	return (double)programs * 1e9 / (double)(now(CLOCK_MONOTONIC) - began);
}

/* ── the sideband's contents ────────────────────────────────────────────────────────────── */

static struct perfpersist_sideband_info status_of(struct perfpersist *p)
{
	struct perfpersist_sideband_info info = { .sz = sizeof(info) };

	if (perfpersist_sideband(p, 0, 0, &info, NULL) < 0)
		die("%s", perfpersist_error(p));
	return info;
}

static void count_exits(const char *at, const char *end)
{
	while (at < end) {
		const struct perf_event_header *h = (const void *)at;
		const uint32_t *task = (const void *)(h + 1); /* pid, ppid, tid, ptid */

		if (end - at < (ptrdiff_t)sizeof(*h) || h->size < sizeof(*h) || h->size > end - at)
			die("the sideband is damaged");
		if (h->type == PERF_RECORD_EXIT && task[0] == task[2])
			shared->told[task[0] % PIDS_MAX]++;
		at += h->size;
	}
}

/* Reads the whole sideband; returns its counts. */
static struct perfpersist_sideband_info take(struct perfpersist *p)
{
	struct perfpersist_sideband_info info = { .sz = sizeof(info) };
	_cleanup_close_ int fd = -EBADF;
	char *map;

	if (perfpersist_sideband(p, 0, 0, &info, &fd) < 0)
		die("%s", perfpersist_error(p));
	map = mmap(NULL, info.size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		die("cannot map the sideband: %m");
	count_exits(map + ((const struct pp_sideband_header *)(const void *)map)->header_size,
		    map + info.size);
	munmap(map, info.size);
	return info;
}

/* Counts the programs that ran and are not in the sideband. */
static uint64_t missing(void)
{
	uint64_t n = 0;

	for (size_t pid = 0; pid < PIDS_MAX; pid++)
		if (shared->spawned[pid] > shared->told[pid])
			n += shared->spawned[pid] - shared->told[pid];
	return n;
}

/* ── measuring ──────────────────────────────────────────────────────────────────────────── */

static void await_keeping(struct perfpersist *p)
{
	struct perfpersist_sideband_info info = { .sz = sizeof(info) };
	int fd = -1;

	/* The request for the file waits until it is there. */
	if (perfpersist_sideband(p, 0, 0, &info, &fd) < 0)
		die("%s", perfpersist_error(p));
	close_fd(fd);
	if (!info.keeping)
		die("no sideband is kept");
}

static void result(const char *key, double value)
{
	printf("%s %.3f %.3f %.3f\n", key, value, value, value);
}

static int judge(const struct perfpersist_sideband_info *before,
		 const struct perfpersist_sideband_info *after, uint64_t programs, double seconds,
		 uint64_t memory)
{
	double cpu = (double)(after->cpu_time - before->cpu_time);
	uint64_t unseen = missing(), counted = after->forgotten - before->forgotten;
	uint64_t lost = after->lost - before->lost;

	result("sideband_rate", (double)programs / seconds);
	result("sideband_cpu_percent", cpu / seconds / 1e7);
	result("sideband_cpu_percent_at_2000", cpu / (double)programs * SCALE / 1e7);
	result("sideband_memory", (double)memory);
	result("sideband_max_memory", (double)after->max_memory);
	result("sideband_processes", (double)after->processes);
	result("sideband_programs", (double)programs);
	result("sideband_missing", (double)unseen);
	result("sideband_forgotten", (double)counted);
	result("sideband_lost", (double)lost);
	if (memory > after->max_memory)
		die("%" PRIu64 " bytes are taken, and %" PRIu64 " are allowed", memory,
		    after->max_memory);
	if (unseen > counted + lost)
		die("%" PRIu64 " programs are not told of, and %" PRIu64
		    " counted as forgotten, %" PRIu64 " records as lost",
		    unseen, counted, lost);
	return 0;
}

static int measure(struct perfpersist *p, double rate, unsigned seconds)
{
	struct perfpersist_sideband_info before, after;
	uint64_t began = now(CLOCK_MONOTONIC), memory = 0, programs;
	pid_t pids[CPUS_MAX];
	double took;

	before = status_of(p);
	start_workers(pids, began + seconds * 1000000000ULL, rate / (double)n_cpus, true);
	for (unsigned i = 1; i < seconds; i++) {
		pace(began + i * 1000000000ULL);
		memory = MAX(memory, status_of(p).memory);
	}
	programs = end_workers(pids);
	took = (double)(now(CLOCK_MONOTONIC) - began) / 1e9;
	after = take(p);
	return judge(&before, &after, programs, took, MAX(memory, after.memory));
}

int main(int argc, char **argv)
{
	struct perfpersist_create_options opts = {
		.sz = sizeof(opts), .event = "cpu-clock", .period = 100, .flags = PERFPERSIST_FREQ
	};
	unsigned seconds = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
	struct perfpersist *p;
	double rate;

	if (seconds == 0)
		die("usage: bench-sideband INSTANCE SCRATCH SECONDS");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		die("no memory");
	n_cpus = usable_cpus(cpus, CPUS_MAX);
	snprintf(program, sizeof(program), "%s/short-program", argv[2]);
	write_program();
	rate = bare_rate(MAX(seconds / 6, 2U));
	result("sideband_bare_rate", rate);
	p = connect_to(argv[1]);
	if (perfpersist_create(p, NAMESPACE, "sideband", &opts, NULL) < 0)
		die("%s", perfpersist_error(p));
	await_keeping(p);
	measure(p, SHARE * rate, seconds);
	if (perfpersist_delete(p, NAMESPACE, "sideband", NULL) < 0)
		die("%s", perfpersist_error(p));
	perfpersist_free(p);
	return 0;
}
