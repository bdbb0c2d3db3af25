// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads tracepoints from tracefs; libtraceevent parses their formats. See tracefs.h. */
#include "daemon/engine/kernel/tracefs.h"

#include <event-parse.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "daemon/engine/kernel/detached.h"
#include "daemon/filter.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/io.h"
#include "proto/macro.h"

#define FORMAT_MAX (256 * 1024)
#define LIST_MAX (4 * 1024 * 1024)

static const char *const places[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

static bool is_tracefs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) >= 0 && (unsigned long)fs.f_type == TRACEFS_MAGIC;
}

/*
 * Opens tracefs where it is mounted; otherwise mounts one and keeps it for the engine's life. (In a
 * mount namespace of its own the engine would also keep other file systems busy.)
 */
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
		detached = detached_mount("tracefs");
		if (detached < 0) {
			log_debug("Cannot mount tracefs: %s.", strerror(-detached));
			return -ENOMEDIUM;
		}
		log_notice("Tracefs is not mounted; the engine has mounted it for itself alone.");
	}
	fd = fcntl(detached, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

/* tracefs files have size 0, so this reads to their end. A NUL follows the content. */
static int read_file(int root, const char *path, size_t max, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = -EBADF;
	_cleanup_free_ char *buf = malloc(max + 1);
	ssize_t used;
	char *fitting;

	if (!buf)
		return -ENOMEM;
	fd = openat(root, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	used = pp_read_all(fd, buf, max);
	if (used < 0)
		return (int)used;
	if (used == 0 || (size_t)used == max)
		return -EBADMSG;
	buf[used] = 0;
	fitting = realloc(buf, used + 1);
	if (fitting)
		buf = fitting;
	*ret = TAKE_PTR(buf);
	*ret_size = used;
	return 0;
}

/* Whether the format prints the field as bytes, not as text. */
static bool is_printed_as_bytes(const struct tracepoint *tp, const char *name)
{
	char words[128];
	int n = snprintf(words, sizeof(words), "__print_dynamic_array(%s,", name);

	return n < (int)sizeof(words) && memmem(tp->format, tp->format_size, words, (size_t)n);
}

/*
 * Since 6.19 syscalls:sys_enter_* end in fields `__ARGUMENT_val`. If such a field holds bytes, the
 * argument behind the address is their number: true for all calls of which the kernel copies bytes
 * (check_faultable_syscall() in kernel/trace/trace_syscalls.c, 7.2).
 */
static void take_user_copy(const struct tracepoint *tp, struct tp_field *f)
{
	size_t n = strlen(f->name);

	if (!f->is_data_loc || strcmp(tp->system, "syscalls") || n < 7 ||
	    n - 6 >= sizeof(f->name) || strncmp(f->name, "__", 2) ||
	    strcmp(f->name + n - 4, "_val"))
		return;
	f->is_user_copy = true;
	for (size_t i = 0; i < tp->n_fields; i++) {
		const struct tp_field *argument = &tp->fields[i];

		if (strlen(argument->name) != n - 6 ||
		    strncmp(argument->name, f->name + 2, n - 6) || argument->size != 8)
			continue;
		f->user_address = argument->offset;
		if (is_printed_as_bytes(tp, f->name) && i + 1 < tp->n_fields)
			f->user_size = tp->fields[i + 1].offset;
	}
}

static int take_field(struct tracepoint *tp, const struct tep_format_field *from)
{
	struct tp_field *f = &tp->fields[tp->n_fields];
	bool dynamic = from->flags & TEP_FIELD_IS_DYNAMIC;

	/* An array field's name has no brackets here; the kernel has no longer names. */
	if (snprintf(f->name, sizeof(f->name), "%s", from->name) >= (int)sizeof(f->name))
		return -EBADMSG;
	if (from->offset < 0 || from->size < 0 || from->offset > 8192 || from->size > 8192)
		return -EBADMSG;
	f->offset = from->offset;
	f->size = from->size;
	f->is_signed = from->flags & TEP_FIELD_IS_SIGNED;
	/* By words in the type, like ftrace's filters (filter_assign_type()). */
	f->is_array = dynamic || from->flags & TEP_FIELD_IS_ARRAY;
	f->is_text = f->is_array && strstr(from->type, "char");
	f->is_pointer = !strcmp(from->type, "char *") || !strcmp(from->type, "const char *");
	f->is_rel_loc = dynamic && (from->flags & TEP_FIELD_IS_RELATIVE);
	f->is_data_loc = dynamic && !f->is_rel_loc;
	if (dynamic && f->size != 4)
		return -EBADMSG;
	take_user_copy(tp, f);
	tp->has_dynamic |= dynamic;
	tp->fixed_size = MAX(tp->fixed_size, f->offset + f->size);
	if (!f->is_user_copy)
		tp->given_size = MAX(tp->given_size, f->offset + f->size);
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

/*
 * The format without its print part: nobody here prints, and for some tracepoints libtraceevent
 * cannot parse that part, and leaks memory. *ret is the caller's.
 */
static int take_declarations(const struct tracepoint *tp, char **ret, size_t *ret_size)
{
	static const char print[] = "\nprint fmt:", nothing[] = "\nprint fmt: \"\"\n";
	const char *end = memmem(tp->format, tp->format_size, print, strlen(print));
	size_t size = end ? (size_t)(end - tp->format) : tp->format_size;
	char *text = malloc(size + sizeof(nothing));

	if (!text)
		return -ENOMEM;
	memcpy(text, tp->format, size);
	memcpy(text + size, nothing, sizeof(nothing));
	*ret = text;
	*ret_size = size + strlen(nothing);
	return 0;
}

static int parse_format(struct tracepoint *tp)
{
	_cleanup_free_ char *text = NULL;
	struct tep_handle *tep;
	struct tep_event *event;
	int r = -EBADMSG;
	size_t size;

	if (take_declarations(tp, &text, &size) < 0)
		return -ENOMEM;
	tep = tep_alloc();
	if (!tep)
		return -ENOMEM;
	tep_set_loglevel(TEP_LOG_NONE);
	tep_set_long_size(tep, sizeof(long));
	tep_parse_event(tep, text, size, tp->system);
	event = tep_find_event_by_name(tep, tp->system, tp->name);
	if (event && event->id > 0) {
		tp->id = event->id;
		r = take_fields(tp, event);
	}
	tep_free(tep);
	return r;
}

/* Takes ownership of format. */
static int make_tracepoint(const char *system, const char *name, char *format, size_t size,
			   struct tracepoint *ret)
{
	struct tracepoint tp = { .format = format, .format_size = size };
	int r = -ENOENT;

	if (snprintf(tp.system, sizeof(tp.system), "%s", system) < (int)sizeof(tp.system) &&
	    snprintf(tp.name, sizeof(tp.name), "%s", name) < (int)sizeof(tp.name))
		r = parse_format(&tp);
	if (r < 0) {
		tracepoint_done(&tp);
		return r;
	}
	*ret = tp;
	return 0;
}

int tracepoint_read(const char *system, const char *name, struct tracepoint *ret)
{
	_cleanup_close_ int root = -EBADF;
	char path[512], *format;
	size_t size;
	int r;

	r = open_root(&root);
	if (r < 0)
		return r;
	if (snprintf(path, sizeof(path), "events/%s/%s/format", system, name) >= (int)sizeof(path))
		return -ENOENT;
	r = read_file(root, path, FORMAT_MAX, &format, &size);
	return r < 0 ? r : make_tracepoint(system, name, format, size, ret);
}

int tracepoint_parse(const char *system, const char *name, const char *format, size_t size,
		     struct tracepoint *ret)
{
	char *copy;

	if (size == 0 || size > FORMAT_MAX)
		return -EBADMSG;
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, format, size);
	return make_tracepoint(system, name, copy, size, ret);
}

/* ── lists ──────────────────────────────────────────────────────────────────────────────── */

static int compare_names(const void *a, const void *b)
{
	const struct tracepoint_name *x = a, *y = b;
	int r = strcmp(x->system, y->system);

	return r ? r : strcmp(x->name, y->name);
}

/* A line "SYSTEM:NAME"; others are ignored. */
static bool take_name(char *line, const char *system, const char *name, struct tracepoint_name *ret)
{
	char *colon = strchr(line, ':');
	struct tracepoint_name tp;

	if (!colon)
		return false;
	*colon = 0;
	if (snprintf(tp.system, sizeof(tp.system), "%s", line) >= (int)sizeof(tp.system) ||
	    snprintf(tp.name, sizeof(tp.name), "%s", colon + 1) >= (int)sizeof(tp.name) ||
	    !pp_tp_name_is_valid(tp.system) || !pp_tp_name_is_valid(tp.name) ||
	    !pp_glob_match(system, tp.system) || !pp_glob_match(name, tp.name))
		return false;
	*ret = tp;
	return true;
}

static int take_names(char *text, const char *system, const char *name,
		      struct tracepoint_name **ret, size_t *ret_n)
{
	_cleanup_free_ struct tracepoint_name *names = NULL;
	size_t n = 0, cap = 0;

	for (char *save, *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (n == cap) {
			size_t more = MAX(cap * 2, (size_t)64);
			void *bigger = reallocarray(names, more, sizeof(*names));

			if (!bigger)
				return -ENOMEM;
			names = bigger;
			cap = more;
		}
		n += take_name(line, system, name, &names[n]);
	}
	if (n)
		qsort(names, n, sizeof(*names), compare_names);
	*ret = n ? TAKE_PTR(names) : NULL;
	*ret_n = n;
	return 0;
}

/*
 * Tracefs has more directories (`ftrace`): those describe ftrace's own records and cannot be
 * attached to. This list leaves them out.
 */
int tracepoint_list(const char *system, const char *name, struct tracepoint_name **ret,
		    size_t *ret_n)
{
	_cleanup_close_ int root = -EBADF;
	_cleanup_free_ char *text = NULL;
	size_t size;
	int r;

	r = open_root(&root);
	if (r >= 0)
		r = read_file(root, "available_events", LIST_MAX, &text, &size);
	return r < 0 ? r : take_names(text, system, name, ret, ret_n);
}

void tracepoint_done(struct tracepoint *tp)
{
	free(tp->format);
	free(tp->fields);
	*tp = (struct tracepoint){};
}
