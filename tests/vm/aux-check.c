// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * aux-check MODE PAGES BYTES WRAPS [CPU]: records the PMU aux_pattern into an AUX area of so many
 * pages, at BYTES a millisecond, until it has been filled WRAPS times, and checks every word.
 * Modes:
 *
 *   overwrite   the area overwrites itself, and is read while the event is stopped
 *   modulo      the same, where aux_head is an offset in the area
 *   stream      each portion is read, and makes room
 *   hold        records nothing, and has the PMU until it is killed, as soon as nobody else has it
 *   pause       starts paused, and records nothing until another event of its group resumes it
 *
 * Exit 77: this kernel cannot pause.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MODULO (1ULL << 63)
#define INTERVAL (1000ULL << 32) /* us */
#define DATA_PAGES 8
/* Bits of a word that older headers call reserved. */
#define AUX_START_PAUSED 1
#define AUX_RESUME 4

struct area {
	struct perf_event_mmap_page *page;
	const uint64_t *words;
	uint64_t size, cpu;
};

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(1);
}

/* By the name that the module has given it. */
static uint32_t pmu_type(void)
{
	const char *name = getenv("AUX_PMU");
	char path[256];
	unsigned type;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/event_source/devices/%s/type",
		 name ? name : "aux_pattern");
	f = fopen(path, "re");
	if (!f || fscanf(f, "%u", &type) != 1)
		die("no %s: is the module loaded?", path);
	fclose(f);
	return type;
}

static int open_event(struct perf_event_attr *attr, int cpu, int group)
{
	attr->size = sizeof(*attr);
	return (int)syscall(SYS_perf_event_open, attr, -1, cpu, group, PERF_FLAG_FD_CLOEXEC);
}

static void map(int fd, uint64_t size, bool overwrite, int cpu, struct area *ret)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), data = (1 + DATA_PAGES) * page;
	struct perf_event_mmap_page *control =
		mmap(NULL, data, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void *aux;

	if (control == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	control->aux_offset = data;
	control->aux_size = size;
	aux = mmap(NULL, size, overwrite ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		   (off_t)data);
	if (aux == MAP_FAILED)
		die("mmap of the AUX area: %s", strerror(errno));
	*ret = (struct area){ control, aux, size, (uint64_t)cpu << 48 };
}

/* Enables the event for some milliseconds. */
static void run(int fd)
{
	const struct timespec some = { .tv_nsec = 20000000 };

	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) < 0)
		die("enable: %s", strerror(errno));
	nanosleep(&some, NULL);
	if (ioctl(fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP) < 0)
		die("disable: %s", strerror(errno));
}

static uint64_t head_of(const struct area *a)
{
	return __atomic_load_n(&a->page->aux_head, __ATOMIC_ACQUIRE);
}

static uint64_t word_at(const struct area *a, uint64_t at)
{
	return a->words[at % a->size / 8];
}

static void check(const struct area *a, uint64_t from, uint64_t until)
{
	for (uint64_t at = from; at < until; at += 8)
		if (word_at(a, at) != (a->cpu | at))
			die("at %#llx the word is %#llx", (unsigned long long)at,
			    (unsigned long long)word_at(a, at));
}

static void check_overwrite(int fd, const struct area *a, uint64_t wraps, bool modulo)
{
	uint64_t head = 0;

	while (head < wraps * a->size) {
		run(fd);
		head = head_of(a);
		if (modulo && head >= a->size)
			die("aux_head is %#llx", (unsigned long long)head);
		if (modulo)
			head = (word_at(a, head + a->size - 8) & ~(0xffffULL << 48)) + 8;
		check(a, head > a->size ? head - a->size : 0, head);
	}
	printf("%llu bytes in an area of %llu, each in its place\n", (unsigned long long)head,
	       (unsigned long long)a->size);
}

static void check_stream(int fd, const struct area *a, uint64_t wraps)
{
	uint64_t tail = 0, head;

	while (tail < wraps * a->size) {
		run(fd);
		head = head_of(a);
		if (head - tail > a->size)
			die("overwritten");
		check(a, tail, head);
		tail = head;
		__atomic_store_n(&a->page->aux_tail, tail, __ATOMIC_RELEASE);
	}
	printf("%llu bytes through an area of %llu, all of them\n", (unsigned long long)tail,
	       (unsigned long long)a->size);
}

static void check_pause(int fd, const struct area *a, int cpu)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_period = 1000000 };
	int other;

	run(fd);
	if (head_of(a) != 0)
		die("it recorded %llu bytes while it was paused", (unsigned long long)head_of(a));
	attr.__reserved_3 = AUX_RESUME;
	other = open_event(&attr, cpu, fd);
	if (other < 0)
		die("an event that resumes: %s", strerror(errno));
	for (int i = 0; i < 500 && head_of(a) == 0; i++)
		run(fd);
	if (head_of(a) == 0)
		die("nothing resumed it");
	check(a, head_of(a) > a->size ? head_of(a) - a->size : 0, head_of(a));
	printf("paused it records nothing; resumed it goes on\n");
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = { .disabled = 1 };
	const char *mode = argc > 4 ? argv[1] : "";
	bool modulo = !strcmp(mode, "modulo"), stream = !strcmp(mode, "stream"),
	     pause = !strcmp(mode, "pause"), hold = !strcmp(mode, "hold");
	int cpu = argc > 5 ? atoi(argv[5]) : 0, fd;
	struct area area;

	if (!modulo && !stream && !pause && !hold && strcmp(mode, "overwrite") != 0)
		die("usage: aux-check MODE PAGES BYTES WRAPS [CPU]");
	attr.type = pmu_type();
	attr.config = strtoull(argv[3], NULL, 0) | INTERVAL | (modulo ? MODULO : 0);
	attr.__reserved_3 = pause ? AUX_START_PAUSED : 0;
	fd = open_event(&attr, cpu, -1);
	while (fd < 0 && hold && errno == EBUSY)
		fd = open_event(&attr, cpu, -1);
	if (fd >= 0 && hold)
		for (;;)
			sleep(1);
	if (fd < 0 && pause && (errno == EINVAL || errno == EOPNOTSUPP || errno == E2BIG))
		return 77;
	if (fd < 0)
		die("perf_event_open: %s", strerror(errno));
	map(fd, strtoull(argv[2], NULL, 0) * (uint64_t)sysconf(_SC_PAGESIZE), !stream, cpu, &area);
	if (stream)
		check_stream(fd, &area, strtoull(argv[4], NULL, 0));
	else if (pause)
		check_pause(fd, &area, cpu);
	else
		check_overwrite(fd, &area, strtoull(argv[4], NULL, 0), modulo);
	return 0;
}
