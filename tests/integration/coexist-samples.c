// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Measures how many samples of a cpu-clock event survive on a CPU that only makes system calls:
 *
 *   coexist-samples INSTANCE NAMESPACE/EVENT CPU MILLISECONDS LEAST
 *
 * The event's counts, recorded and missed, are true as of its newest record. So the true count is
 * the time between the newest record at the beginning and the newest at the end, divided by the
 * period, whenever this program itself runs. A perf event of the same period, which no BPF program
 * shuts out, has a ring of its own. (Where the hypervisor takes the CPU away, it has fewer samples
 * than periods.)
 *
 * Expects that recorded + missed is within 2 % of the true count, except for late samples; that
 * each record weighs one period, as perf's samples do, even after missed ones; that no sample
 * counts as idle, because the CPU never idles; and that the event has at least LEAST percent of
 * perf's number of samples. Exit 0, 1 or 2 (could not run).
 */
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "tests/integration/observe.h"

#define RING_PAGES 128

/* perf's own sampling event. */
struct sampler {
	int fd;
	struct perf_event_mmap_page *page;
};

static struct sampler open_sampler(int cpu, uint64_t period)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_TIME,
		.disabled = 1,
	};
	long size = sysconf(_SC_PAGESIZE);
	struct sampler s;

	s.fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (s.fd < 0)
		die("perf_event_open of cpu-clock: %m");
	s.page = mmap(NULL, (size_t)(size * (1 + RING_PAGES)), PROT_READ | PROT_WRITE, MAP_SHARED,
		      s.fd, 0);
	if (s.page == MAP_FAILED)
		die("mmap of perf's ring: %m");
	return s;
}

/* The ring is large enough: this test does not cover lost records. */
static uint64_t count_samples(const struct sampler *s)
{
	const char *data = (const char *)s->page + s->page->data_offset;
	uint64_t head = __atomic_load_n(&s->page->data_head, __ATOMIC_ACQUIRE), at = 0, n = 0;

	while (at < head) {
		struct perf_event_header h;

		memcpy(&h, data + at, sizeof(h));
		if (h.type == PERF_RECORD_SAMPLE)
			n++;
		else if (h.type == PERF_RECORD_LOST)
			die("perf's own ring is too small");
		at += h.size;
	}
	return n;
}

/* The event's counts, and the time of its newest record. */
struct edge {
	struct perfpersist_ring_stat told;
	uint64_t time;
};

static struct edge read_edge(struct perfpersist_event *e, size_t ring)
{
	struct edge edge;

	do {
		edge.told = ring_stat(e, ring);
		edge.time = now();
	} while (ring_stat(e, ring).records != edge.told.records);
	return edge;
}

/* Adds the periods of the records after the newest one of the beginning, up to the newest of the
 * end, and the time between these two. */
static uint64_t add_periods(struct perfpersist_event *e, size_t ring, uint64_t begin, uint64_t end,
			    uint64_t *ret_time)
{
	struct perfpersist_snapshot *s = snapshot_of(e);
	struct perfpersist_cursor *c;
	struct perfpersist_sample sample;
	uint64_t sum = 0, last = 0;
	int r;

	if (perfpersist_cursor_new(s, ring, &c) < 0)
		die("%s", perfpersist_error(NULL));
	/* The newest comes first. */
	while ((r = perfpersist_cursor_next(c, &sample)) > 0 && sample.time > begin) {
		if (sample.time > end)
			continue;
		last = last ? last : sample.time;
		sum += sample.period;
	}
	if (r <= 0 || !last)
		die("the ring does not hold the records of all that time");
	*ret_time = last - sample.time;
	perfpersist_cursor_free(c);
	perfpersist_snapshot_free(s);
	return sum;
}

/* Full speed: only the cheapest system call. */
static void call_forever(int cpu, atomic_bool *ret_there)
{
	pin_to(cpu);
	atomic_store(ret_there, true);
	for (;;)
		syscall(SYS_close, -1L);
}

static bool within(uint64_t value, uint64_t truth, double share)
{
	double difference = (double)value - (double)truth;

	return difference <= share * (double)truth && difference >= -share * (double)truth;
}

/* A sample that is late by more than half a period looks like a missed one before it. */
static bool accounted(uint64_t recorded, uint64_t missed, uint64_t truth)
{
	return within(recorded + missed, truth, 0.02) ||
	       (recorded + missed > truth && recorded + missed - truth <= missed / 2);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

int main(int argc, char **argv)
{
	const struct perf_event_attr *attr;
	struct edge begin, end;
	struct perfpersist_event *e;
	struct perfpersist *p;
	struct sampler sampler;
	uint64_t period, truth, perf, ours, missed, periods, length, time;
	size_t attr_size, ring;
	atomic_bool *there;
	double least;
	int cpu, failed = 0;
	pid_t child;

	if (argc != 6)
		die("usage: coexist-samples INSTANCE NAMESPACE/EVENT CPU MILLISECONDS LEAST");
	cpu = (int)parse_count(argv[3]);
	length = parse_count(argv[4]) * 1000000;
	least = (double)parse_count(argv[5]);
	p = connect_to(argv[1]);
	e = open_event(p, argv[2]);
	ring = ring_of_cpu(e, cpu);
	attr = perfpersist_event_attr(e, &attr_size);
	period = attr->freq ? NS_PER_S / attr->sample_freq : attr->sample_period;
	sampler = open_sampler(cpu, period);

	there = mmap(NULL, sizeof(*there), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (there == MAP_FAILED)
		die("mmap: %m");
	child = fork_helper();
	if (child == 0)
		call_forever(cpu, there);

	/* The window begins with the first sample after the CPU has stopped idling, and ends after
	 * the given time. */
	while (!atomic_load(there))
		usleep(1000);
	begin = read_edge(e, ring);
	while (ring_stat(e, ring).records == begin.told.records)
		usleep(1000);
	begin = read_edge(e, ring);
	ioctl(sampler.fd, PERF_EVENT_IOC_ENABLE, 0);
	while (now() - begin.time < length)
		usleep(10000);
	ioctl(sampler.fd, PERF_EVENT_IOC_DISABLE, 0);
	end = read_edge(e, ring);
	periods = add_periods(e, ring, begin.time, end.time, &time);
	end_helper(child);

	truth = time / period;
	perf = count_samples(&sampler);
	ours = end.told.records - begin.told.records;
	missed = end.told.missed - begin.told.missed;
	printf("%s: %" PRIu64 " periods by the clock, %" PRIu64 " samples by perf, "
	       "%" PRIu64 " records (%.2f %% of perf's), %" PRIu64 " missed; recorded + missed "
	       "%" PRIu64 " (%+.2f %%), the records weigh %" PRIu64 " periods\n",
	       argv[2], truth, perf, ours, percent(ours, perf), missed, ours + missed,
	       percent(ours + missed, truth) - 100, periods / period);
	fflush(stdout);

	if (!accounted(ours, missed, truth) && ++failed)
		fprintf(stderr, "recorded + missed is not within 2 %% of the truth\n");
	if (periods != ours * period && ++failed)
		fprintf(stderr, "the records do not weigh a period each\n");
	if (end.told.idle != begin.told.idle && ++failed)
		fprintf(stderr, "%" PRIu64 " missed periods count as idle\n",
			end.told.idle - begin.told.idle);
	if (percent(ours, perf) < least && ++failed)
		fprintf(stderr, "less than %.0f %% of the samples have survived\n", least);
	perfpersist_event_free(e);
	perfpersist_free(p);
	return failed ? 1 : 0;
}
