// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measures what options add to the cost of recording raw_syscalls:sys_enter, per event: filters, a
 * rate limit, several sources in one ring, an armed trigger, concurrent readers.
 *
 *   bench-options INSTANCE ROUNDS
 *
 * variants.h explains the method. Each run checks how many events passed its filter.
 */
#include "tests/bench/recording.h"
#include "tests/bench/variants.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BUFFER (512 << 10)
#define LOW_RATE 1000
#define HIGH_RATE 1000000000
#define POLL_NS 10000000
#define PAIRS 50 /* of an armed event and one that is not */

static const char *instance;
static int cpus[CPUS_MAX], cpu, other_cpu;
static struct perfpersist *daemon_connection;
static struct recording recording;

/* ── events ─────────────────────────────────────────────────────────────────────────────── */

struct how {
	const char *event, *filter;
	bool generic;
	uint64_t max_rate;
};

static void begin(struct how how)
{
	const struct perfpersist_create_options opts = {
		.sz = sizeof(opts),
		.event = how.event ?: "raw_syscalls:sys_enter",
		.filter = how.filter,
		.buffer = BUFFER,
		.max_rate = how.max_rate,
		.flags = how.generic ? PERFPERSIST_GENERIC : 0,
	};

	recording_begin(&recording, daemon_connection, "options", cpu,
			how.generic ? PERFPERSIST_RECORDER_GENERIC : PERFPERSIST_RECORDER_TP_BTF,
			&opts);
}

static void end(void)
{
	recording_end(&recording, 1, daemon_connection);
}

static void check_all(void)
{
	recording_check(&recording, CALLS, 0);
}

static void check_both(void)
{
	recording_check(&recording, 2 * (uint64_t)CALLS, 0);
}

static void check_none(void)
{
	if (recording_stat(&recording).records != recording.before.records)
		die("a filter passed events that it must drop");
}

static void check_limited(void)
{
	recording_check(&recording, CALLS, CALLS - CALLS / 10);
}

/* The measured calls, and calls that nobody makes. */
static const char *only(long call_number)
{
	static char filter[64];

	snprintf(filter, sizeof(filter), "id == %ld", call_number);
	return filter;
}

static void tp_btf(void)
{
	begin((struct how){ 0 });
}

static void tp_btf_all(void)
{
	begin((struct how){ .filter = only(SYS_close) });
}

static void tp_btf_none(void)
{
	begin((struct how){ .filter = only(-5) });
}

static void tp_btf_high_rate(void)
{
	begin((struct how){ .max_rate = HIGH_RATE });
}

static void tp_btf_low_rate(void)
{
	begin((struct how){ .max_rate = LOW_RATE });
}

static void generic(void)
{
	begin((struct how){ .generic = true });
}

static void generic_all(void)
{
	begin((struct how){ .generic = true, .filter = only(SYS_close) });
}

static void generic_none(void)
{
	begin((struct how){ .generic = true, .filter = only(-5) });
}

static void generic_low_rate(void)
{
	begin((struct how){ .generic = true, .max_rate = LOW_RATE });
}

/* Two events record two records per call. */
static void two_sources(void)
{
	begin((struct how){ .event = "raw_syscalls:sys_enter,raw_syscalls:sys_exit" });
}

/* ── a trigger that never fires ─────────────────────────────────────────────────────────── */

static void arm(void)
{
	const struct perfpersist_create_options event = {
		.sz = sizeof(event),
		.event = "signal:signal_generate",
		.filter = "sig == 63",
		.buffer = 64 << 10,
	};
	const struct perfpersist_trigger_options opts = {
		.sz = sizeof(opts),
		.targets = "options",
		.event = &event,
	};
	struct perfpersist_trigger *triggers;
	unsigned armed = 0;
	size_t n;

	if (perfpersist_trigger_add(daemon_connection, NAMESPACE, "never", &opts, NULL) < 0)
		die("%s", perfpersist_error(daemon_connection));
	for (int waits = 0; !armed; waits++) {
		if (waits == 10000)
			die("the trigger's target is not armed within 10 s; the daemon says why");
		usleep(1000);
		if (perfpersist_triggers(daemon_connection, NAMESPACE, &triggers, &n) < 0)
			die("%s", perfpersist_error(daemon_connection));
		armed = n ? triggers[0].n_armed : 0;
		free(triggers);
	}
}

static bool has_tape(void)
{
	char path[256];

	snprintf(path, sizeof(path), "/run/perfpersist-%s/registry/" NAMESPACE "/options/tape",
		 instance);
	return access(path, F_OK) == 0;
}

static void disarm(void)
{
	if (perfpersist_delete(daemon_connection, NAMESPACE, "never", NULL) < 0)
		die("%s", perfpersist_error(daemon_connection));
	while (has_tape())
		usleep(1000);
}

#define WARM_SLICES 3
#define ARMED_SLICES 9

/* Arming and disarming load programs on this CPU, too, and some of that goes on for a moment: what comes next is
 * 2 to 3 ns slower for tens of milliseconds, also if the trigger is armed on another event. */
static double run_settled(void)
{
	double ns[ARMED_SLICES];

	usleep(10000);
	for (int i = 0; i < WARM_SLICES; i++)
		run_slice();
	for (int i = 0; i < ARMED_SLICES; i++)
		ns[i] = run_slice();
	return median(ns, ARMED_SLICES);
}

/* What a trigger adds to an event that it could freeze: the same event, armed and not, by turns. Two events
 * differ by more than that, by where their memory lies. */
static void measure_armed(const char *key, void (*create)(void))
{
	double ns[PAIRS], plain, armed;

	create();
	plain = run_settled();
	for (size_t i = 0; i < PAIRS; i++) {
		arm();
		armed = run_settled();
		disarm();
		ns[i] = armed - plain / 2;
		plain = run_settled();
		ns[i] -= plain / 2;
	}
	check_all();
	end();
	print_result(key, ns, PAIRS);
}

/* ── a concurrent reader ────────────────────────────────────────────────────────────────── */

static pid_t reader = -1;

/* The child follows the event on a CPU of its own. */
__attribute__((noreturn)) static void follow(uint64_t pause, int ready)
{
	const struct timespec t = { .tv_nsec = (long)pause };
	struct perfpersist_sample sample;
	struct perfpersist_follow *f;
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	stay_on(other_cpu);
	if (perfpersist_follow_new(recording.event, 0, &f) < 0)
		die("%s", perfpersist_error(NULL));
	if (write(ready, "", 1) != 1)
		exit(1);
	for (;;) {
		while ((r = perfpersist_follow_next(f, &sample)) > 0)
			;
		if (r < 0)
			die("the reader: %s", strerror(-r));
		if (pause)
			nanosleep(&t, NULL);
	}
}

/* The child asks for copies, like a reader without access to the rings. The dumper, which makes the
 * copies, runs on any CPU. */
__attribute__((noreturn)) static void ask_for_copies(uint64_t pause, int ready)
{
	const struct timespec t = { .tv_nsec = (long)pause };
	struct perfpersist_event *e;
	struct perfpersist *p;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	stay_on(other_cpu);
	p = connect_to(instance);
	if (perfpersist_open_copy(p, NAMESPACE, recording.name, &e) < 0)
		die("%s", perfpersist_error(p));
	if (write(ready, "", 1) != 1)
		exit(1);
	for (;;) {
		if (perfpersist_event_refresh(e, p) < 0)
			die("the reader of copies: %s", perfpersist_error(p));
		if (pause)
			nanosleep(&t, NULL);
	}
}

static void begin_reader(void (*read_it)(uint64_t pause, int ready), uint64_t pause)
{
	char byte;
	int fds[2];

	tp_btf();
	if (pipe(fds) < 0)
		die("cannot make a pipe: %m");
	reader = fork();
	if (reader < 0)
		die("cannot start a reader: %m");
	if (reader == 0)
		read_it(pause, fds[1]);
	close(fds[1]);
	if (read(fds[0], &byte, 1) != 1)
		die("the reader has ended");
	close(fds[0]);
}

static void polled(void)
{
	begin_reader(follow, POLL_NS);
}

static void read_at_full_speed(void)
{
	begin_reader(follow, 0);
}

static void copied(void)
{
	begin_reader(ask_for_copies, POLL_NS);
}

static void copied_at_full_speed(void)
{
	begin_reader(ask_for_copies, 0);
}

static void end_reader(void)
{
	int status;

	if (waitpid(reader, &status, WNOHANG) != 0)
		die("the reader has ended");
	kill(reader, SIGKILL);
	waitpid(reader, NULL, 0);
	reader = -1;
	end();
}

/* ── measuring ──────────────────────────────────────────────────────────────────────────── */

/* key, events per call, begin, check, end */
static struct variant variants[] = {
	{ "options_bare_ns", 1, NULL, NULL, NULL, { 0 } },
	{ "plain_ns", 1, tp_btf, check_all, end, { 0 } },
	{ "filter_all_ns", 1, tp_btf_all, check_all, end, { 0 } },
	{ "filter_none_ns", 1, tp_btf_none, check_none, end, { 0 } },
	{ "high_rate_ns", 1, tp_btf_high_rate, check_all, end, { 0 } },
	{ "low_rate_ns", 1, tp_btf_low_rate, check_limited, end, { 0 } },
	{ "two_sources_ns", 2, two_sources, check_both, end, { 0 } },
	{ "generic_plain_ns", 1, generic, check_all, end, { 0 } },
	{ "generic_filter_all_ns", 1, generic_all, check_all, end, { 0 } },
	{ "generic_filter_none_ns", 1, generic_none, check_none, end, { 0 } },
	{ "generic_low_rate_ns", 1, generic_low_rate, check_limited, end, { 0 } },
	{ "polled_ns", 1, polled, check_all, end_reader, { 0 } },
	{ "busy_reader_ns", 1, read_at_full_speed, check_all, end_reader, { 0 } },
	{ "copied_ns", 1, copied, check_all, end_reader, { 0 } },
	{ "busy_copier_ns", 1, copied_at_full_speed, check_all, end_reader, { 0 } },
};

int main(int argc, char **argv)
{
	size_t rounds, n;

	if (argc != 3)
		die("usage: bench-options INSTANCE ROUNDS");
	instance = argv[1];
	rounds = strtoul(argv[2], NULL, 10);
	if (rounds < 1 || rounds > ROUNDS_MAX)
		die("rounds: from 1 to %d", ROUNDS_MAX);
	n = usable_cpus(cpus, CPUS_MAX);
	cpu = cpus[n - 1];
	other_cpu = cpus[0];
	stay_on(cpu);
	daemon_connection = connect_to(instance);
	measure(variants, ARRAY_SIZE(variants), rounds);
	rounds = drop_disturbed(variants, ARRAY_SIZE(variants), rounds);
	measure_armed("armed_added_ns", tp_btf);
	measure_armed("generic_armed_added_ns", generic);
	print_added(variants, ARRAY_SIZE(variants), rounds);
	perfpersist_free(daemon_connection);
	return 0;
}
