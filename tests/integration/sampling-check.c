// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Does on one CPU what a sampling event samples, and checks that the samples of this process match
 * its work.
 *
 *   sampling-check INSTANCE NAMESPACE/EVENT CPU chains N     N samples on this CPU, ours
 *                                                            in a known chain of functions
 *   sampling-check INSTANCE NAMESPACE/EVENT CPU faults N     N pages touched for the first time
 *   sampling-check INSTANCE NAMESPACE/EVENT CPU periods N    the same, with a longer period
 *   sampling-check INSTANCE NAMESPACE/EVENT CPU switches N   N times waited for another process
 *
 * The event for faults and switches has a period of 1: recorded must equal the kernel's count for
 * this task, or that count must be at most recorded + missed. Two reads cannot happen at the same
 * time: the test repeats them until nothing has happened in between, or reads before and after.
 * Exit 0, 1 or 2 (could not run).
 */
#include <fcntl.h>
#include <sys/resource.h>

#include "tests/integration/observe.h"

/*
 * A function whose address range is known: it has a section of its own and a frame pointer, because
 * it reads the frame's address; it is never inlined and never left by a jump.
 */
#define KNOWN(name) __attribute__((noinline, section("pp_" #name)))
#define FRAME() __asm__ volatile("" : : "r"(__builtin_frame_address(0)) : "memory")
#define DECLARE_RANGE(name) extern const char __start_pp_##name[], __stop_pp_##name[]
#define WITHIN(ip, name) \
	((ip) >= (uintptr_t)__start_pp_##name && (ip) < (uintptr_t)__stop_pp_##name)

DECLARE_RANGE(outer);
DECLARE_RANGE(middle);
DECLARE_RANGE(compute);
DECLARE_RANGE(enter);
DECLARE_RANGE(touch);

struct checked {
	struct perfpersist_event *e;
	size_t ring;
	uint64_t buffer;
};

static int failed;

static _printf_(1, 2) void fail(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	failed = 1;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

/* Calls f for each record of this process in that range of time; returns how many there were. */
static uint64_t each_of_ours(const struct checked *c, uint64_t since, uint64_t until,
			     void (*f)(const struct perfpersist_sample *sample, void *userdata),
			     void *userdata)
{
	struct perfpersist_snapshot *s = snapshot_of(c->e);
	struct perfpersist_cursor *cursor;
	struct perfpersist_sample sample;
	uint32_t self = (uint32_t)getpid();
	uint64_t n = 0;
	int r;

	if (perfpersist_cursor_new(s, c->ring, &cursor) < 0)
		die("%s", perfpersist_error(NULL));
	while ((r = perfpersist_cursor_next(cursor, &sample)) > 0 && sample.time >= since) {
		if (sample.tid != self || sample.time > until)
			continue;
		if (f)
			f(&sample, userdata);
		n++;
	}
	if (r < 0)
		die("the ring is damaged");
	if (r == 0 && ring_stat(c->e, c->ring).bytes > c->buffer)
		die("the ring was too small for the other activity on this CPU");
	perfpersist_cursor_free(cursor);
	perfpersist_snapshot_free(s);
	return n;
}

/* ── chains ─────────────────────────────────────────────────────────────────────────────── */

struct chains {
	uint64_t samples;
	uint64_t compute, compute_whole; /* in compute(), called by middle() and outer() */
	uint64_t kernel, kernel_whole;	 /* in a system call of enter(), called likewise */
	uint64_t from_syscall;		 /* with the kernel's system call entry in it */
	uint64_t interrupts;		 /* in the kernel, but not called by this process */
	uint64_t other;			 /* elsewhere: before and after the work */
	uint64_t syscall_begin, syscall_end;
};

KNOWN(compute) static void compute(void)
{
	FRAME();
	for (volatile int i = 0; i < 400000; i++)
		;
}

KNOWN(enter) static void enter(int zero, void *buf, size_t size)
{
	FRAME();
	if (syscall(SYS_read, zero, buf, size) < 0)
		die("cannot read /dev/zero: %m");
	FRAME();
}

KNOWN(middle) static void middle(int zero, void *buf, size_t size)
{
	FRAME();
	compute();
	for (int i = 0; i < 40; i++)
		enter(zero, buf, size);
	FRAME();
}

KNOWN(outer) static void outer(int zero, void *buf, size_t size)
{
	FRAME();
	middle(zero, buf, size);
	FRAME();
}

/* The range of the kernel's C entry of system calls; both 0 if unknown. */
static void find_syscall_entry(uint64_t *ret_begin, uint64_t *ret_end)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/kallsyms", "re");
	uint64_t address, begin = 0, end = UINT64_MAX;
	char name[256];

	while (f && fscanf(f, "%" SCNx64 " %*c %255s%*[^\n]", &address, name) == 2)
		if (!strcmp(name, "do_syscall_64") || !strcmp(name, "do_el0_svc"))
			begin = address;
	if (!begin)
		return;
	rewind(f);
	while (fscanf(f, "%" SCNx64 " %*c %255s%*[^\n]", &address, name) == 2)
		if (address > begin && address < end)
			end = address;
	*ret_begin = begin;
	*ret_end = end;
}

/* One half of a chain: the addresses after that mark. NULL: it has no such half. */
static const uint64_t *half(const struct perfpersist_sample *sample, uint64_t mark, size_t *ret_n)
{
	const uint64_t *begin = NULL;
	size_t n = 0;

	for (size_t i = 0; i < sample->n_callchain; i++) {
		uint64_t ip = load_u64(sample->callchain + i);

		if (begin && ip >= (uint64_t)PERF_CONTEXT_MAX)
			break;
		if (begin)
			n++;
		else if (ip == mark)
			begin = sample->callchain + i + 1;
	}
	*ret_n = n;
	return begin;
}

/* Did outer() call middle(), and middle() the function before it? */
static bool called_by_us(const uint64_t *ips, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		if (WITHIN(load_u64(ips + i), middle) && WITHIN(load_u64(ips + i + 1), outer))
			return true;
	return false;
}

static bool in_known_function(uint64_t ip)
{
	return WITHIN(ip, outer) || WITHIN(ip, middle) || WITHIN(ip, compute) || WITHIN(ip, enter);
}

static void check_chain(const struct perfpersist_sample *sample, void *userdata)
{
	struct chains *t = userdata;
	size_t n_user, n_kernel;
	const uint64_t *user = half(sample, (uint64_t)PERF_CONTEXT_USER, &n_user);
	const uint64_t *kernel = half(sample, (uint64_t)PERF_CONTEXT_KERNEL, &n_kernel);
	bool in_kernel = (int64_t)sample->ip < 0;

	t->samples++;
	if (!user || !n_user)
		fail("a sample without a user chain");
	else if (in_kernel && (!kernel || !n_kernel))
		fail("a sample of the kernel without a kernel chain");
	else if (in_kernel ? load_u64(kernel) != sample->ip : load_u64(user) != sample->ip)
		fail("a chain that does not begin with the sample's ip");
	else if (!in_kernel && kernel && n_kernel)
		fail("a sample of user space with a kernel chain");
	if (failed)
		return;

	if (in_kernel && in_known_function(load_u64(user))) {
		t->interrupts++;
	} else if (in_kernel) {
		t->kernel++;
		t->kernel_whole += called_by_us(user, n_user);
		for (size_t i = 0; i < n_kernel; i++)
			if (load_u64(kernel + i) >= t->syscall_begin &&
			    load_u64(kernel + i) < t->syscall_end) {
				t->from_syscall++;
				break;
			}
	} else if (WITHIN(sample->ip, compute)) {
		t->compute++;
		t->compute_whole += n_user > 2 && called_by_us(user + 1, 2);
	} else if (!in_known_function(sample->ip)) {
		t->other++;
	}
}

/* Nine of ten: a sample may hit the first instructions of a function, before it has set up its
 * frame, or an interrupt, or the loop around it. */
static void most(const char *what, uint64_t part, uint64_t whole)
{
	printf("  %s: %" PRIu64 " of %" PRIu64 "\n", what, part, whole);
	if (part < whole * 9 / 10 || !whole)
		fail("too few");
}

#define OURS_MIN 100

static void check_chains(const struct checked *c, uint64_t n)
{
	size_t size = 256 << 10;
	_cleanup_free_ void *buf = malloc(size);
	_cleanup_close_ int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct chains t = {};
	uint64_t since, begin;

	if (!buf || zero < 0)
		die("cannot open /dev/zero: %m");
	memset(buf, 1, size);
	find_syscall_entry(&t.syscall_begin, &t.syscall_end);
	/* Only some of the CPU's samples are ours; under load, few. */
	do {
		since = now();
		begin = ring_stat(c->e, c->ring).records;
		while (ring_stat(c->e, c->ring).records - begin < n)
			outer(zero, buf, size);
		each_of_ours(c, since, now(), check_chain, &t);
	} while (t.samples < OURS_MIN && !failed);
	printf("%" PRIu64 " samples, %" PRIu64 " of them outside of the known functions, %" PRIu64
	       " in interrupts\n",
	       t.samples, t.other, t.interrupts);
	most("in compute(), called by middle(), called by outer()", t.compute_whole, t.compute);
	most("in a system call, called by middle(), called by outer()", t.kernel_whole, t.kernel);
	if (t.syscall_begin)
		most("in a system call, through the entry of the kernel", t.from_syscall, t.kernel);
	if (t.other > t.samples / 2)
		fail("most samples are elsewhere");
}

/* ── an exact number ────────────────────────────────────────────────────────────────────── */

static void compare(const struct checked *c, const char *what, uint64_t truth, uint64_t recorded,
		    uint64_t missed_before)
{
	uint64_t missed = ring_stat(c->e, c->ring).missed - missed_before;

	printf("%" PRIu64 " %s counted by the kernel: %" PRIu64 " records, %" PRIu64
	       " missed on this CPU meanwhile\n",
	       truth, what, recorded, missed);
	if (recorded > truth || recorded + missed < truth)
		fail("that does not fit");
}

KNOWN(touch) static void touch(volatile char *pages, uint64_t n, size_t page)
{
	for (uint64_t i = 0; i < n; i++)
		pages[i * page] = 1;
}

static char *new_pages(uint64_t n, size_t page)
{
	char *pages =
		mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || madvise(pages, n * page, MADV_NOHUGEPAGE) < 0)
		die("mmap: %m");
	return pages;
}

static void check_fault(const struct perfpersist_sample *sample, void *userdata)
{
	uint64_t *elsewhere = userdata;

	*elsewhere += !WITHIN(sample->ip, touch);
}

static void check_faults(const struct checked *c, uint64_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int counter = open_counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, -1);
	uint64_t missed = ring_stat(c->e, c->ring).missed, since, until, before, after, recorded;
	uint64_t elsewhere = 0;
	char *pages =
		mmap(NULL, n * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || madvise(pages, n * page, MADV_NOHUGEPAGE) < 0)
		die("mmap: %m");
	/* A fault between the two reads would be in only one of the counts. */
	do {
		before = read_counter(counter);
		since = now();
	} while (read_counter(counter) != before);
	touch(pages, n, page);
	do {
		after = read_counter(counter);
		until = now();
	} while (read_counter(counter) != after);
	recorded = each_of_ours(c, since, until, check_fault, &elsewhere);
	if (after - before < n)
		fail("%" PRIu64 " pages, but %" PRIu64 " faults", n, after - before);
	compare(c, "page faults", after - before, recorded, missed);
	if (elsewhere > after - before - n)
		fail("%" PRIu64 " of the faults are not where the pages were touched", elsewhere);
}

static uint64_t periods_told(struct perfpersist_ring_stat end, struct perfpersist_ring_stat begin)
{
	return end.records - begin.records + end.missed - begin.missed;
}

/* Faults of all processes on this CPU: one record per period. */
static void check_periods(const struct checked *c, int cpu, uint64_t n)
{
	size_t attr_size, page = (size_t)sysconf(_SC_PAGESIZE);
	const struct perf_event_attr *attr = perfpersist_event_attr(c->e, &attr_size);
	int counter = open_counter(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, -1, cpu);
	struct perfpersist_ring_stat before_begin, begin, end, behind_end;
	uint64_t faults, period = attr->sample_period, least, most;

	before_begin = ring_stat(c->e, c->ring);
	faults = read_counter(counter);
	begin = ring_stat(c->e, c->ring);
	touch(new_pages(n, page), n, page);
	end = ring_stat(c->e, c->ring);
	faults = read_counter(counter) - faults;
	behind_end = ring_stat(c->e, c->ring);
	least = periods_told(end, begin) * period;
	most = periods_told(behind_end, before_begin) * period;
	printf("%" PRIu64 " page faults on this CPU: %" PRIu64 " records and %" PRIu64
	       " missed, of %" PRIu64 " each\n",
	       faults, end.records - begin.records, end.missed - begin.missed, period);
	if (least > faults + 2 * period || most + 2 * period < faults)
		fail("that does not fit");
}

static uint64_t switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
}

static void check_switches(const struct checked *c, uint64_t n)
{
	uint64_t missed = ring_stat(c->e, c->ring).missed, since, until, before, after;
	int there[2], back[2];
	pid_t child;
	char byte = 0;

	if (pipe2(there, O_CLOEXEC) < 0 || pipe2(back, O_CLOEXEC) < 0)
		die("pipe: %m");
	child = fork_helper();
	while (child == 0)
		if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
			_exit(1);

	/* A switch between the reads of clock and count would be in only one of them: then read
	 * again. */
	do {
		before = switches();
		since = now();
	} while (switches() != before);
	for (uint64_t i = 0; i < n; i++)
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			die("the other process is gone");
	do {
		after = switches();
		until = now();
	} while (switches() != after);
	end_helper(child);
	if (after - before < n)
		fail("%" PRIu64 " rounds, but %" PRIu64 " switches", n, after - before);
	compare(c, "context switches", after - before, each_of_ours(c, since, until, NULL, NULL),
		missed);
}

int main(int argc, char **argv)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct checked c = {};
	struct perfpersist *p;
	int cpu;
	uint64_t n;

	if (argc != 6)
		die("usage: sampling-check INSTANCE NAMESPACE/EVENT CPU "
		    "chains|faults|periods|switches N");
	p = connect_to(argv[1]);
	c.e = open_event(p, argv[2]);
	cpu = (int)parse_count(argv[3]);
	c.ring = ring_of_cpu(c.e, cpu);
	if (perfpersist_event_info(c.e, &info) < 0)
		die("%s", perfpersist_error(NULL));
	c.buffer = info.buffer;
	n = parse_count(argv[5]);
	pin_to(cpu);
	printf("%s: ", argv[2]);
	if (!strcmp(argv[4], "chains"))
		check_chains(&c, n);
	else if (!strcmp(argv[4], "faults"))
		check_faults(&c, n);
	else if (!strcmp(argv[4], "periods"))
		check_periods(&c, cpu, n);
	else if (!strcmp(argv[4], "switches"))
		check_switches(&c, n);
	else
		die("%s is nothing to check", argv[4]);
	perfpersist_event_free(c.e);
	perfpersist_free(p);
	return failed;
}
