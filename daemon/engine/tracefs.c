// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads tracepoints from tracefs; libtraceevent parses their formats. See tracefs.h. */
#include "daemon/engine/tracefs.h"

#include <event-parse.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "daemon/log.h"
#include "proto/macro.h"

#define FORMAT_MAX (256 * 1024)

static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

static bool is_tracefs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) >= 0 && (unsigned long)fs.f_type == TRACEFS_MAGIC;
}

/*
 * A mount of our own that is attached nowhere: what other processes see is theirs to decide.
 * (In a mount namespace of its own the engine would keep whatever else is mounted busy, too.)
 */
static int mount_detached(void)
{
	_cleanup_close_ int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
			  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Where the machine has it mounted; else our own, which is kept for the engine's life. */
static int open_root(int *ret)
{
	static int detached = -EBADF;
	int fd;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (is_tracefs(places[i])) {
			fd = open(places[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
			if (fd < 0)
				return -errno;
			*ret = fd;
			return 0;
		}
	if (detached < 0) {
		detached = mount_detached();
		if (detached < 0) {
			log_debug("mounting tracefs: %s", strerror(-detached));
			return -ENOMEDIUM;
		}
		log_notice("tracefs is not mounted; mounted it for this process alone");
	}
	fd = fcntl(detached, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

/* tracefs files say they are empty, so read to the end. */
static int read_format(int root, const char *path, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *buf = malloc(FORMAT_MAX);
	size_t used = 0;

	if (!buf)
		return -ENOMEM;
	fd = openat(root, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	while (used < FORMAT_MAX) {
		ssize_t n = read(fd, buf + used, FORMAT_MAX - used);

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		used += n;
	}
	if (used == 0 || used == FORMAT_MAX)
		return -EBADMSG;
	*ret = TAKE_PTR(buf);
	*ret_size = used;
	return 0;
}

static int take_field(struct tracepoint *tp, const struct tep_format_field *from)
{
	struct tp_field *f = &tp->fields[tp->n_fields];
	bool dynamic = from->flags & TEP_FIELD_IS_DYNAMIC;

	/* An array field's name carries no brackets here; nothing longer exists in the kernel. */
	if (snprintf(f->name, sizeof(f->name), "%s", from->name) >= (int)sizeof(f->name))
		return -EBADMSG;
	if (from->offset < 0 || from->size < 0 || from->offset > 8192 || from->size > 8192)
		return -EBADMSG;
	f->offset = from->offset;
	f->size = from->size;
	f->is_signed = from->flags & TEP_FIELD_IS_SIGNED;
	f->is_rel_loc = dynamic && (from->flags & TEP_FIELD_IS_RELATIVE);
	f->is_data_loc = dynamic && !f->is_rel_loc;
	if (dynamic && f->size != 4)
		return -EBADMSG;
	tp->has_dynamic |= dynamic;
	tp->fixed_size = MAX(tp->fixed_size, f->offset + f->size);
	tp->n_fields++;
	return 0;
}

static int take_fields(struct tracepoint *tp, const struct tep_event *event)
{
	int r;

	tp->fields = calloc(event->format.nr_common + event->format.nr_fields, sizeof(*tp->fields));
	if (!tp->fields)
		return -ENOMEM;
	for (struct tep_format_field *f = event->format.common_fields; f; f = f->next) {
		r = take_field(tp, f);
		if (r < 0)
			return r;
	}
	for (struct tep_format_field *f = event->format.fields; f; f = f->next) {
		r = take_field(tp, f);
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse_format(struct tracepoint *tp)
{
	struct tep_handle *tep = tep_alloc();
	struct tep_event *event;
	int r = -EBADMSG;

	if (!tep)
		return -ENOMEM;
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_long_size(tep, sizeof(long));
	/* A print format that the library cannot read is no reason to refuse: the fields count. */
	tep_parse_event(tep, tp->format, tp->format_size, tp->system);
	event = tep_find_event_by_name(tep, tp->system, tp->name);
	if (event && event->id > 0) {
		tp->id = event->id;
		r = take_fields(tp, event);
	}
	tep_free(tep);
	return r;
}

int tracepoint_read(const char *system, const char *name, struct tracepoint *ret)
{
	struct tracepoint tp = {};
	_cleanup_close_ int root = -EBADF;
	char path[512];
	int r;

	r = open_root(&root);
	if (r < 0)
		return r;
	if (snprintf(path, sizeof(path), "events/%s/%s/format", system, name) >=
		    (int)sizeof(path) ||
	    snprintf(tp.system, sizeof(tp.system), "%s", system) >= (int)sizeof(tp.system) ||
	    snprintf(tp.name, sizeof(tp.name), "%s", name) >= (int)sizeof(tp.name))
		return -ENOENT;
	r = read_format(root, path, &tp.format, &tp.format_size);
	if (r >= 0)
		r = parse_format(&tp);
	if (r < 0) {
		tracepoint_done(&tp);
		return r;
	}
	*ret = tp;
	return 0;
}

void tracepoint_done(struct tracepoint *tp)
{
	free(tp->format);
	free(tp->fields);
	*tp = (struct tracepoint){};
}
