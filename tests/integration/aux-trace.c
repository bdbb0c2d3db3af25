// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * aux-trace FILE [BYTES]: checks the traces in a perf.data file, of the pattern that
 * tests/vm/aux-pattern writes: every word is in its place, in one piece, up to the end that the
 * kernel's record of it says. Prints for each: CPU, bytes, offset of its first byte, and of its end. The
 * stream's offsets are the words' own, so nothing here is believed of the file but where its records
 * are. With BYTES the same of the part of so many bytes in samples, instead: CPU, time, offset of the
 * first byte, and of the end; zeroes in front are what had not been traced yet.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/perf-file.h"

#define CPU_SHIFT 48

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	exit(1);
}

static void check_trace(const struct perf_file_auxtrace_data *t, const uint8_t *bytes)
{
	uint64_t first = 0, word, n = t->size / 8;

	if (t->size % 8 || n == 0)
		die("a trace of %" PRIu64 " bytes", t->size);
	for (uint64_t i = 0; i < n; i++) {
		memcpy(&word, bytes + 8 * i, sizeof(word));
		if (word >> CPU_SHIFT != t->cpu)
			die("a word of CPU %" PRIu64 " in the trace of CPU %u", word >> CPU_SHIFT,
			    t->cpu);
		word &= (1ULL << CPU_SHIFT) - 1;
		if (i == 0)
			first = word;
		if (word != first + 8 * i)
			die("CPU %u: at byte %" PRIu64 " the word of %#" PRIx64 ", not %#" PRIx64,
			    t->cpu, 8 * i, word, first + 8 * i);
	}
	/* An offset in the area is the same modulo its size. */
	if ((t->offset - first) & (t->size - 1) && t->offset != first)
		die("CPU %u: the record says %#" PRIx64 ", the trace begins with %#" PRIx64, t->cpu,
		    t->offset, first);
	printf("%u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", t->cpu, t->size, first, first + t->size);
}

/* As client/perfdata/perfdata-attr.c has it, with whatever follows; the part of the trace is last. */
struct sample {
	struct perf_event_header header;
	uint64_t id, ip;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, reserved;
	uint64_t period;
};

static void check_sample(const uint8_t *record, uint64_t bytes)
{
	uint64_t size, first = 0, word = 0, at = 0;
	struct sample s;

	memcpy(&s, record, sizeof(s));
	if (s.header.size < sizeof(s) + sizeof(size) + bytes)
		return;
	memcpy(&size, record + s.header.size - bytes - sizeof(size), sizeof(size));
	if (size != bytes)
		return;
	record += s.header.size - bytes;
	for (; at < bytes && !word; at += 8)
		memcpy(&word, record + at, sizeof(word));
	at -= 8;
	for (uint64_t i = at; i < bytes && word; i += 8) {
		memcpy(&word, record + i, sizeof(word));
		if (word >> CPU_SHIFT != s.cpu)
			die("a word of CPU %" PRIu64 " in a sample of CPU %u", word >> CPU_SHIFT,
			    s.cpu);
		word &= (1ULL << CPU_SHIFT) - 1;
		if (i == at)
			first = word;
		if (word != first + (i - at))
			die("CPU %u: at byte %" PRIu64 " of a sample the word of %#" PRIx64
			    ", not %#" PRIx64,
			    s.cpu, i, word, first + (i - at));
	}
	printf("%u %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", s.cpu, s.time, first,
	       word ? first + (bytes - at) : 0);
}

int main(int argc, char **argv)
{
	uint64_t bytes = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
	int fd = argc == 2 || bytes ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct perf_file_header header;
	struct perf_event_header h;
	const uint8_t *file;
	uint64_t at, end;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < (off_t)sizeof(header))
		die("cannot read the file");
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		die("cannot map the file");
	memcpy(&header, file, sizeof(header));
	end = header.data.offset + header.data.size;
	if (header.magic != PERF_FILE_MAGIC || end > (uint64_t)st.st_size)
		die("not a perf.data file");
	for (at = header.data.offset; at + sizeof(h) <= end; at += h.size) {
		memcpy(&h, file + at, sizeof(h));
		if (h.size < sizeof(h))
			die("a record of %u bytes at %" PRIu64, h.size, at);
		if (h.type == PERF_RECORD_SAMPLE && bytes)
			check_sample(file + at, bytes);
		if (h.type == PERF_FILE_AUXTRACE) {
			struct perf_file_auxtrace_data t;

			memcpy(&t, file + at, sizeof(t));
			if (at + h.size + t.size > end)
				die("a trace is cut off");
			if (!bytes)
				check_trace(&t, file + at + h.size);
			at += t.size;
		}
	}
	return 0;
}
