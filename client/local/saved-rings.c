// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens an event from the files of a save. Files are read, not mapped: truncating a file later
 * costs records, not the process. */
#include "client/local/saved-rings.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "client/local/direct.h"
#include "client/local/saved-file.h"
#include "client/public.h"
#include "client/rings/event.h"

struct opening {
	const char *path;
	const struct perfpersist_info *info;
	struct perfpersist_event *e;
};

static int fail(const struct opening *o, const char *name, int error, const char *why)
{
	return client_fail(error, "cannot read %s/%s/%s/%s: %s", o->path, o->info->ns,
			   o->info->name, name, why);
}

/* Checks that the file is as long as its header promises. */
static int check_size(const struct opening *o, const char *name, int fd)
{
	struct pp_ring_header raw, h;
	char why[128];
	uint64_t size;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || (n = pread(fd, &raw, sizeof(raw), 0)) < 0)
		return fail(o, name, -errno, strerror(errno));
	size = sizeof(raw);
	if (n == sizeof(raw)) {
		if (pp_ring_check(&raw, SIZE_MAX, &h) < 0)
			return 0; /* not a ring at all, which opening it will report */
		size = pp_ring_size(h.header_size, h.data_size, h.spill_size);
	}
	if ((uint64_t)st.st_size >= size)
		return 0;
	snprintf(why, sizeof(why), "it is cut off: of %llu bytes %llu are there",
		 (unsigned long long)size, (unsigned long long)st.st_size);
	return fail(o, name, -EBADMSG, why);
}

/* Adds a ring, or (cpu < 0) the catalog. */
static int add_file(const struct opening *o, int dir_fd, const char *name, int cpu)
{
	_cleanup_close_ int fd = saved_file_open(dir_fd, name);
	int r;

	if (fd < 0)
		return fail(o, name, fd, saved_file_error(fd));
	r = cpu < 0 ? 0 : check_size(o, name, fd);
	if (r < 0)
		return r;
	r = cpu < 0 ? client_event_add_catalog(o->e, TAKE_FD(fd), 0)
		    : client_event_add(o->e, TAKE_FD(fd), cpu, 0);
	/* The error message speaks of our descriptors, which mean nothing to the user. */
	if (r == -EBADMSG)
		return fail(
			o, name, r,
			cpu < 0 ? "it is not the catalog of an event, or it is damaged or cut off"
				: "it is not the ring of that CPU, or it is damaged");
	return r;
}

static int add_files(const struct opening *o, DIR *dir)
{
	struct dirent *entry;
	int r = 0;

	while (r >= 0 && (entry = readdir(dir))) {
		int cpu = direct_ring_cpu(entry->d_name);

		if (cpu >= 0 || !strcmp(entry->d_name, "catalog"))
			r = add_file(o, dirfd(dir), entry->d_name, cpu);
	}
	return r < 0 ? r : direct_complete(o->e);
}

int saved_rings_open(const char *path, int dir_fd, const struct perfpersist_info *info,
		     struct perfpersist_event **ret)
{
	_cleanup_(client_event_cleanup) struct perfpersist_event *e = NULL;
	_cleanup_close_ int fd = saved_dir_open(dir_fd, ".");
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct opening o = { .path = path, .info = info };
	int r;

	if (!dir)
		return client_fail(fd < 0 ? fd : -errno, "cannot read %s/%s/%s: %s", path, info->ns,
				   info->name, strerror(fd < 0 ? -fd : errno));
	TAKE_FD(fd);
	r = client_event_new(info, &e);
	if (r < 0)
		return r;
	o.e = e;
	r = add_files(&o, dir);
	if (r < 0)
		return r;
	e->is_copy = true;
	*ret = TAKE_PTR(e);
	return 0;
}
