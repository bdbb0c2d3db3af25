// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which tracepoints of this kernel does a command fire?
 *
 *   payload-survey TRACEFS INSTANCE COMMAND…
 *
 * Enables all tracepoints in a tracefs instance of its own while COMMAND runs, counts the records
 * in its buffers, and removes it. Prints "COUNT SYSTEM:NAME SHAPE" for each that fired. Reads the
 * pages of the kernel's ring buffer, and knows only the layout in `header_page` and `header_event`.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "proto/macro.h"
#include "tests/integration/tp-format.h"

#define PAGE 4096
#define PAGE_HEADER 16 /* time, then the number of used bytes in the page */
#define USED_MASK 0xfffff
#define BUFFER_KB "16384"
#define IDS_MAX 65536

/* The lowest five bits of an event; smaller numbers are its length in words. */
enum {
	TYPE_LENGTH_FOLLOWS = 0,
	TYPE_PADDING = 29,
	TYPE_TIME_EXTEND = 30,
	TYPE_TIME_STAMP = 31,
};

static long counts[IDS_MAX];

/*
 * Of all events, one that perf has open as a probe cannot be enabled besides: EINTR, and all others are enabled
 * (Linux 6.18, probe_event_enable() and __ftrace_set_clr_event_nolock()).
 */
static int write_to(const char *dir, const char *file, const char *text)
{
	_cleanup_close_ int fd = -EBADF;
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || (write(fd, text, strlen(text)) < 0 && errno != EINTR)) {
		fprintf(stderr, "%s: %m\n", path);
		return -1;
	}
	return 0;
}

static int run(char **command)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execvp(command[0], command);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status) {
		fprintf(stderr, "%s did not end as it should\n", command[0]);
		return -1;
	}
	return 0;
}

static void count_page(const uint8_t *page)
{
	uint64_t used;
	size_t at = PAGE_HEADER;

	memcpy(&used, page + 8, sizeof(used));
	used = MIN((used & USED_MASK) + PAGE_HEADER, PAGE);
	while (at + 8 <= used) {
		uint32_t word, length;
		uint16_t id;

		memcpy(&word, page + at, sizeof(word));
		memcpy(&length, page + at + 4, sizeof(length));
		switch (word & 31) {
		case TYPE_PADDING:
			at += 4 + length;
			if (word >> 5 == 0)
				return;
			continue;
		case TYPE_TIME_EXTEND:
		case TYPE_TIME_STAMP:
			at += 8;
			continue;
		case TYPE_LENGTH_FOLLOWS:
			memcpy(&id, page + at + 8, sizeof(id));
			at += 4 + ALIGN_TO(length, 4U);
			break;
		default:
			memcpy(&id, page + at + 4, sizeof(id));
			at += 4 + (word & 31) * 4;
		}
		counts[id]++;
	}
}

static int count_cpus(const char *instance)
{
	char path[1024];
	uint8_t page[PAGE];

	snprintf(path, sizeof(path), "%s/per_cpu", instance);

	_cleanup_closedir_ DIR *dir = opendir(path);

	for (struct dirent *d; dir && (d = readdir(dir));) {
		_cleanup_close_ int fd = -EBADF;

		if (strncmp(d->d_name, "cpu", 3))
			continue;
		snprintf(path, sizeof(path), "%s/per_cpu/%s/trace_pipe_raw", instance, d->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		while (read(fd, page, sizeof(page)) == sizeof(page))
			count_page(page);
	}
	return dir ? 0 : -1;
}

static bool read_format(const char *path, struct tp_format *ret)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	static char text[65536];

	return file && tp_format_parse(text, fread(text, 1, sizeof(text), file), ret);
}

/* Prints those that fired and that perf can open: each has an `id`. */
static int print_counts(void)
{
	_cleanup_closedir_ DIR *systems = opendir("events");
	char path[1024];

	for (struct dirent *s; systems && (s = readdir(systems));) {
		snprintf(path, sizeof(path), "events/%s", s->d_name);

		_cleanup_closedir_ DIR *events = s->d_name[0] == '.' ? NULL : opendir(path);

		for (struct dirent *e; events && (e = readdir(events));) {
			_cleanup_fclose_ FILE *file = NULL;
			struct tp_format format;
			unsigned id;

			snprintf(path, sizeof(path), "events/%s/%s/id", s->d_name, e->d_name);
			file = fopen(path, "re");
			if (!file || fscanf(file, "%u", &id) != 1 || id >= IDS_MAX || !counts[id])
				continue;
			snprintf(path, sizeof(path), "events/%s/%s/format", s->d_name, e->d_name);
			if (!read_format(path, &format))
				continue;
			snprintf(path, sizeof(path), "%s:%s", s->d_name, e->d_name);
			printf("%ld %s ", counts[id], path);
			tp_format_print_shape(&format, path);
			putchar('\n');
		}
	}
	return systems ? 0 : -1;
}

static int survey(const char *instance, char **command)
{
	int r;

	/* Switching them on and off itself fires a thousand IPI events. */
	if (write_to(instance, "tracing_on", "0") < 0 ||
	    write_to(instance, "buffer_size_kb", BUFFER_KB) < 0 ||
	    write_to(instance, "events/enable", "1") < 0 ||
	    write_to(instance, "tracing_on", "1") < 0)
		return -1;
	r = run(command);
	if (write_to(instance, "tracing_on", "0") < 0 ||
	    write_to(instance, "events/enable", "0") < 0)
		return -1;
	return r < 0 ? -1 : count_cpus(instance);
}

int main(int argc, char **argv)
{
	char instance[256];
	int r;

	if (argc < 4 || chdir(argv[1]) < 0) {
		fprintf(stderr, "usage: payload-survey TRACEFS INSTANCE COMMAND…\n");
		return 2;
	}
	snprintf(instance, sizeof(instance), "instances/%.200s", argv[2]);
	if (mkdir(instance, 0700) < 0) {
		fprintf(stderr, "%s: %m\n", instance);
		return 1;
	}
	r = survey(instance, argv + 3);
	if (rmdir(instance) < 0) {
		fprintf(stderr, "%s: %m\n", instance);
		return 1;
	}
	return r == 0 && print_counts() == 0 ? 0 : 1;
}
