// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Takes the input as one of the files of a save, which is listed, shown and opened. The first byte
 * chooses the file; the other files are valid. fuzz-ring covers rings.
 */
#include <fcntl.h>
#include <linux/limits.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfpersist.h"
#include "proto/catalog.h"
#include "proto/macro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_INFO 0
#define INPUT_INFO_LINES 1 /* follows the part that every info has */
#define INPUT_STAT 2
#define INPUT_RING 3
#define INPUT_CATALOG 4
#define INPUTS 5

static const char info[] = "id=1\nnamespace=space\nname=name\ncpus=0\nsources=2\n";
static const char info_end[] = "\nsaved_mono=1\nsaved=2\n";
static const char counts[] = "total records=1 bytes=2 limited=3 missed=4\n";
static char save[] = "/dev/shm/perfpersist-saved-XXXXXX";
static int event_dir = -EBADF;
static volatile uint64_t sink;

static void make_save(void)
{
	char path[PATH_MAX];

	if (!mkdtemp(save))
		abort();
	snprintf(path, sizeof(path), "%s/space", save);
	if (mkdir(path, 0755) < 0)
		abort();
	strcat(path, "/name");
	if (mkdir(path, 0755) < 0)
		abort();
	event_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (event_dir < 0)
		abort();
}

static void remove_save(void)
{
	char path[PATH_MAX];
	static const char *const leaves[] = { "/space/name/info",
					      "/space/name/stat",
					      "/space/name/cpu0",
					      "/space/name/catalog",
					      "/space/name",
					      "/space",
					      "" };

	for (size_t i = 0; i < ARRAY_SIZE(leaves); i++) {
		snprintf(path, sizeof(path), "%s%s", save, leaves[i]);
		remove(path);
	}
}

static int new_file(const char *name)
{
	int fd = openat(event_dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		abort();
	return fd;
}

static void put(int fd, const void *bytes, size_t n)
{
	if (write(fd, bytes, n) != (ssize_t)n)
		abort();
}

static void write_texts(unsigned input, const uint8_t *data, size_t size)
{
	_cleanup_close_ int info_fd = new_file("info"), stat_fd = new_file("stat");

	if (input == INPUT_INFO) {
		put(info_fd, data, size);
	} else {
		put(info_fd, info, sizeof(info) - 1);
		if (input == INPUT_INFO_LINES)
			put(info_fd, data, size);
		put(info_fd, info_end, sizeof(info_end) - 1);
	}
	if (input == INPUT_STAT)
		put(stat_fd, data, size);
	put(stat_fd, counts, sizeof(counts) - 1);
}

static void write_ring(unsigned input, const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = new_file("cpu0");
	struct pp_ring_header h = {
		.magic = PP_RING_MAGIC,
		.version = PP_RING_VERSION,
		.header_size = PP_RING_PAGE,
		.data_size = PP_DATA_SIZE_MIN,
		.spill_size = 64,
		.event_id = 1,
		.n_sources = input == INPUT_CATALOG ? 2 : 1,
		.sample_type = 1U << 16,
		.live = { .head = -64UL, .reserve = -64UL },
	};

	if (input == INPUT_RING) {
		put(fd, data, size);
		return;
	}
	put(fd, &h, sizeof(h));
	if (ftruncate(fd, (off_t)pp_ring_size(h.header_size, h.data_size, h.spill_size)) < 0)
		abort();
}

static void write_catalog(unsigned input, const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = -EBADF;

	unlinkat(event_dir, "catalog", 0);
	if (input != INPUT_CATALOG)
		return;
	fd = new_file("catalog");
	put(fd, data, size);
}

static void look(const struct perfpersist_info *i)
{
	if (strnlen(i->ns, sizeof(i->ns)) == sizeof(i->ns) ||
	    strnlen(i->name, sizeof(i->name)) == sizeof(i->name) ||
	    strnlen(i->event, sizeof(i->event)) == sizeof(i->event) ||
	    strnlen(i->filter, sizeof(i->filter)) == sizeof(i->filter) ||
	    strnlen(i->cpus, sizeof(i->cpus)) == sizeof(i->cpus) || !i->saved)
		abort();
	for (const char *c = i->cpus; *c; c++) /* a reader prints it unchanged */
		if (*c < ' ' || *c > '~')
			abort();
	sink += i->id;
}

static void read_event(struct perfpersist *p)
{
	struct perfpersist_info i = { .sz = sizeof(i) };
	struct perfpersist_event *e = NULL;
	struct perfpersist_snapshot *s;

	if (perfpersist_open(p, "space", "name", &e) < 0)
		return;
	if (perfpersist_event_info(e, &i) < 0 || perfpersist_snapshot_new(e, &s) < 0 ||
	    perfpersist_snapshot_take(s) < 0)
		abort();
	sink += perfpersist_event_realtime(e, 1) + perfpersist_event_sources(e);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perfpersist_options options = { .sz = sizeof(options), .saved = save };
	struct perfpersist_info i = { .sz = sizeof(i) }, *infos = NULL;
	struct perfpersist *p = NULL;
	unsigned input;
	size_t n = 0;

	if (size < 1)
		return 0;
	if (event_dir < 0) {
		make_save();
		atexit(remove_save);
	}
	input = *data++ % INPUTS;
	size--;
	write_texts(input, data, size);
	write_ring(input, data, size);
	write_catalog(input, data, size);
	if (perfpersist_connect(&options, &p) < 0)
		abort();
	if (perfpersist_list(p, NULL, &infos, &n) == 0)
		for (size_t k = 0; k < n; k++)
			look(&infos[k]);
	free(infos);
	if (perfpersist_show(p, "space", "name", &i) == 0)
		look(&i);
	read_event(p);
	perfpersist_free(p);
	return 0;
}
