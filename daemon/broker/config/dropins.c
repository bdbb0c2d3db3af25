// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the files, in the order that counts. Must not know their contents. */
#include "daemon/broker/config/dropins.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "daemon/broker/config/settings.h"
#include "proto/macro.h"
#include "proto/places.h"

#define STATE_ROOT "/var/lib"

/* ── folders ────────────────────────────────────────────────────────────────────────────── */

/* root + "/perfpersist[-INSTANCE]" + leaf. */
static int place(const char *root, const char *instance, const char *leaf, char *buf, size_t size)
{
	char run[256];
	int n, r = pp_place(instance, "", run, sizeof(run));

	if (r < 0)
		return r;
	/* The part after the last slash of the run directory is the instance's name. */
	n = snprintf(buf, size, "%s%s%s", root, strrchr(run, '/'), leaf);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

int dropin_state_place(const char *instance, const char *leaf, char *buf, size_t size)
{
	return place(STATE_ROOT, instance, leaf, buf, size);
}

int dropin_places(const char *instance, const char *config, struct dropin_places *ret)
{
	static const char *const roots[] = { PP_SYSCONFDIR, "/run", PP_VENDORDIR, STATE_ROOT };
	size_t size = sizeof(ret->folders[0]);
	int r;

	if (config) {
		int n = snprintf(ret->folders[0], size, "%s.d", config);

		if (n < 0 || (size_t)n >= size)
			return -ENAMETOOLONG;
		ret->n = 2;
		ret->written = 1;
		return dropin_state_place(instance, "/events.d", ret->folders[1], size);
	}
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		r = place(roots[i], instance, "/events.d", ret->folders[i], size);
		if (r < 0)
			return r;
	}
	ret->n = ARRAY_SIZE(roots);
	ret->written = 3; /* last: clients choose these files' names and must not hide others */
	return 0;
}

/* ── files ──────────────────────────────────────────────────────────────────────────────── */

struct file {
	char *name;
	size_t folder;
};

struct search {
	const struct dropin_places *places;
	struct dropins *dropins;
	FILE *complaints;
	struct file *files;
	size_t n, room;
};

static void complain(struct search *s, const char *folder, const char *name, const char *why)
{
	fprintf(s->complaints, "%s%s%s: %s\n", folder, name ? "/" : "", name ? name : "", why);
	s->dropins->faults++;
	s->dropins->incomplete = true;
}

bool dropin_is_named_so(const char *name)
{
	size_t n = strlen(name);

	return n > 5 && name[0] != '.' && strcmp(name + n - 5, ".conf") == 0;
}

static int add_file(struct search *s, const char *name, size_t folder)
{
	struct file f = { .folder = folder };

	if (s->n == s->room) {
		size_t room = s->room ? s->room * 2 : 16;
		struct file *p = reallocarray(s->files, room, sizeof(*p));

		if (!p)
			return -ENOMEM;
		s->files = p;
		s->room = room;
	}
	f.name = strdup(name);
	if (!f.name)
		return -ENOMEM;
	s->files[s->n++] = f;
	return 0;
}

static int list_folder(struct search *s, size_t folder)
{
	const char *path = s->places->folders[folder];
	_cleanup_closedir_ DIR *dir = opendir(path);
	const struct dirent *entry;
	size_t before = s->n;
	int r = 0;

	if (!dir && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!dir) {
		complain(s, path, NULL,
			 "The folder cannot be read; make it readable for perfpersistd's user.");
		return 0;
	}
	while (errno = 0, (entry = readdir(dir))) {
		if (!dropin_is_named_so(entry->d_name))
			continue;
		if (s->n - before == DROPINS_FILES_MAX) {
			complain(s, path, NULL,
				 "There are too many files; put several events into one.");
			return 0;
		}
		r = add_file(s, entry->d_name, folder);
		if (r < 0)
			return r;
	}
	if (errno)
		complain(s, path, NULL, "Part of the folder cannot be read.");
	return 0;
}

/* By name; files of one name by folder. */
static int compare(const void *a, const void *b)
{
	const struct file *f = a, *g = b;
	int c = strcmp(f->name, g->name);

	return c ? c : (f->folder > g->folder) - (f->folder < g->folder);
}

/* 0; 1 (the file counts as missing); -errno. */
static int read_file(const char *path, char **ret, size_t *ret_size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
		return 1;
	r = settings_read(fd, ret, ret_size);
	return r < 0 ? r : *ret_size == 0;
}

static const char *reason(int err)
{
	switch (err) {
	case -EINVAL:
		return "This is no regular file; remove it, or make it a file or a symlink to one.";
	case -EFBIG:
		return "The file is larger than 1 MiB, and is left out; make several of it.";
	case -EACCES:
		return "The file may not be read, and is left out; make it readable for "
		       "perfpersistd's user.";
	case -ENOENT:
		return "The symlink leads nowhere, and is left out; let it name a file, or "
		       "/dev/null "
		       "to have none of this name.";
	default:
		return strerror(-err);
	}
}

static int take_file(struct search *s, const struct file *f, struct config *config)
{
	const char *folder = s->places->folders[f->folder];
	_cleanup_free_ char *text = NULL;
	char path[PATH_MAX];
	size_t size;
	int n = snprintf(path, sizeof(path), "%s/%s", folder, f->name);
	int r = n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG : read_file(path, &text, &size);

	if (r == 1 || r == -ENOMEM)
		return MIN(r, 0);
	if (r < 0) {
		complain(s, folder, f->name, reason(r));
		return 0;
	}
	return dropin_parse(s->dropins, config, path, f->folder == s->places->written, text, size,
			    s->complaints);
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static void cleanup_search(struct search *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->files[i].name);
	free(s->files);
}

int dropins_load(const struct dropin_places *places, struct config *config, FILE *complaints,
		 struct dropins **ret)
{
	_cleanup_(cleanup_dropins) struct dropins *d = calloc(1, sizeof(*d));
	_cleanup_(cleanup_search) struct search s = {
		.places = places,
		.dropins = d,
		.complaints = complaints,
	};
	int r;

	if (!d)
		return -ENOMEM;
	for (size_t i = 0; i < places->n; i++) {
		r = list_folder(&s, i);
		if (r < 0)
			return r;
	}
	if (s.n > 0)
		qsort(s.files, s.n, sizeof(*s.files), compare);
	for (size_t i = 0; i < s.n; i++) {
		if (i > 0 && strcmp(s.files[i].name, s.files[i - 1].name) == 0)
			continue;
		r = take_file(&s, &s.files[i], config);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < d->n; i++)
		pp_window_complete(&d->events[i]->trigger);
	*ret = TAKE_PTR(d);
	return 0;
}
