// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes and removes single files of events.d. Must not know events or clients. */
#include "daemon/broker/config/boot-file.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/broker/config/dropin-file.h"
#include "daemon/broker/config/dropins.h"
#include "daemon/broker/config/keys.h"
#include "proto/io.h"
#include "proto/macro.h"

#define FILE_NAME_SIZE (2 * PP_NAME_SIZE + sizeof("..conf"))

static void name_file(char buf[FILE_NAME_SIZE], const char *ns, const char *name)
{
	snprintf(buf, FILE_NAME_SIZE, "%.*s.%.*s.conf", PP_NAME_SIZE - 1, ns, PP_NAME_SIZE - 1,
		 name);
}

/* ── the text ───────────────────────────────────────────────────────────────────────────── */

static void print_namespace(FILE *f, const struct namespace *ns)
{
	struct config_namespace keys;

	keys_default(&namespace_keys, &keys);
	keys.owner = ns->owner;
	keys.group = ns->group;
	keys.mode = ns->mode;
	keys.live = ns->live;
	fprintf(f,
		"# (Counts only while no other file has a section for this namespace.)\n"
		"[namespace %s]\n",
		ns->name);
	keys_print(f, &namespace_keys, &keys);
	fputc('\n', f);
}

/* Returns the section to write. NULL: no memory. */
static struct dropin_draft *draft_of(const struct boot_file *b)
{
	struct dropin_draft *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	keys_default(&event_keys, d);
	d->event.creator = b->creator;
	d->request = *b->request;
	d->request.flags &= ~PP_EVENT_BOOT;
	return d;
}

static int print_file(const struct boot_file *b, const struct dropin_draft *d, char **ret,
		      size_t *ret_size)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	fprintf(f,
		"# Written by perfpersistd for `perfctl create --boot`; `perfctl delete %s/%s` "
		"removes it.\n\n",
		b->request->ns, b->request->name);
	if (b->ns)
		print_namespace(f, b->ns);
	fprintf(f, "[event %s/%s]\n", b->request->ns, b->request->name);
	keys_print(f, &event_keys, d);
	if (fclose(f) != 0)
		return -ENOMEM;
	*ret = TAKE_PTR(text);
	*ret_size = size;
	return 0;
}

/*
 * The client chose the texts. A line break in a filter, say, must not let a user who may create an
 * event write sections of their own. The file that is read back must be exactly the request.
 */
static bool says_it(const struct boot_file *b, const struct dropin_draft *wanted, const char *text,
		    size_t size)
{
	struct config config = { 0 };
	struct dropins d = { 0 };
	_cleanup_fclose_ FILE *complaints = fopen("/dev/null", "we");
	bool good = complaints &&
		    dropin_parse(&d, &config, "", true, text, size, complaints) == 0 &&
		    d.faults == 0 && d.n == 1 && config.n_namespaces == (b->ns ? 1 : 0);
	const struct dropin_event *e =
		good ? dropins_event(&d, b->request->ns, b->request->name) : NULL;

	good = e && e->enabled && !e->optional && e->creator == b->creator &&
	       dropin_is_request(e, &wanted->request);
	free(config.namespaces);
	dropins_done(&d);
	return good;
}

/* ── the file ───────────────────────────────────────────────────────────────────────────── */

static int open_folder(const char *path, bool make)
{
	int fd;

	if (make && mkdir(path, 0755) == 0 && chmod(path, 0755) < 0)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Writes under a name that is not read (it begins with a dot), then renames: one atomic step. */
static int write_file(int folder, const char *name, const char *text, size_t size)
{
	_cleanup_close_ int fd = -EBADF;
	char temporary[FILE_NAME_SIZE + 1];
	int r;

	snprintf(temporary, sizeof(temporary), ".%s", name);
	if (unlinkat(folder, temporary, 0) < 0 && errno != ENOENT)
		return -errno;
	fd = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = pp_write_all(fd, text, size);
	if (r >= 0 && (fchmod(fd, 0644) < 0 || fsync(fd) < 0 ||
		       renameat(folder, temporary, folder, name) < 0 || fsync(folder) < 0))
		r = -errno;
	if (r < 0)
		unlinkat(folder, temporary, 0);
	return r;
}

/* Files beyond this number are not read at the next start: other users' events would not return.
 * 1: there is room for `name`; 0; -errno. */
static int has_room(int folder, const char *path, const char *name)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	const struct dirent *entry;
	size_t n = 0;

	if (faccessat(folder, name, F_OK, 0) == 0)
		return 1;
	if (!dir)
		return -errno;
	while (errno = 0, (entry = readdir(dir)))
		n += dropin_is_named_so(entry->d_name);
	return errno ? -errno : n < DROPINS_FILES_MAX;
}

int boot_file_write(const struct boot_file *b, char *sentence, size_t size)
{
	_cleanup_close_ int folder = -EBADF;
	_cleanup_free_ struct dropin_draft *d = draft_of(b);
	_cleanup_free_ char *text = NULL;
	char name[FILE_NAME_SIZE];
	size_t n;
	int r;

	name_file(name, b->request->ns, b->request->name);
	r = d ? print_file(b, d, &text, &n) : -ENOMEM;
	if (r >= 0 && !says_it(b, d, text, n)) {
		snprintf(sentence, size,
			 "%s/%s cannot be created with --boot, because its texts have blanks or "
			 "line breaks where a file cannot; leave these out.",
			 b->request->ns, b->request->name);
		return -EINVAL;
	}
	if (r >= 0)
		r = folder = open_folder(b->folder, true);
	if (r >= 0)
		r = has_room(folder, b->folder, name);
	if (r == 0) {
		snprintf(sentence, size,
			 "%s/%s cannot be created with --boot: %s has %d files, and no more are "
			 "read; delete events there, or create it without --boot.",
			 b->request->ns, b->request->name, b->folder, DROPINS_FILES_MAX);
		return -ENOSPC;
	}
	if (r > 0)
		r = write_file(folder, name, text, n);
	if (r < 0)
		snprintf(sentence, size,
			 "%s/%s cannot be created with --boot: %s/%s: %s. Let perfpersistd's user "
			 "write there, or create it without --boot.",
			 b->request->ns, b->request->name, b->folder, name, strerror(-r));
	return MIN(r, 0);
}

int boot_file_remove(const char *path, const char *ns, const char *event, bool durable,
		     char *sentence, size_t size)
{
	_cleanup_close_ int folder = open_folder(path, false);
	char name[FILE_NAME_SIZE];
	int r;

	name_file(name, ns, event);
	if (folder == -ENOENT || folder == -ENOTDIR)
		return 0;
	r = folder;
	if (r >= 0)
		r = unlinkat(folder, name, 0) < 0 ? -errno : 0;
	if (r == -ENOENT)
		return 0;
	if (r >= 0 && durable && fsync(folder) < 0)
		r = -errno;
	if (r < 0)
		snprintf(sentence, size,
			 "%s/%s is deleted, but will return after a reboot: %s/%s cannot be "
			 "removed: %s. Remove it by hand.",
			 ns, event, path, name, strerror(-r));
	return r;
}
