// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names and rights: the links and modes of the registry. See pins.h. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/engine/registry/pins-internal.h"
#include "proto/macro.h"

/* ── directories ────────────────────────────────────────────────────────────────────────── */

/*
 * The namespace's r permission allows listing its directories; everyone may pass through, since the
 * broker must and has no privileges; the files inside have modes of their own.
 */
int pins_grant_directory(const char *path, gid_t group, mode_t mode)
{
	mode = 0711 | (mode & 040) | (mode & 004);
	if (chmod(path, mode) < 0 || chown(path, 0, group) < 0)
		return -errno;
	return 0;
}

static int make_namespace(const char *ns, gid_t group, mode_t mode)
{
	if (mkdir(ns, 0700) < 0)
		return errno == EEXIST ? 0 : -errno;
	return pins_grant_directory(ns, group, mode);
}

/* ── symlinks ───────────────────────────────────────────────────────────────────────────── */

static bool is_symlink(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
}

static bool points_to(const char *link, const char *target)
{
	char is[PINS_PATH_SIZE];
	ssize_t n = readlink(link, is, sizeof(is) - 1);

	if (n < 0)
		return false;
	is[n] = 0;
	return !strcmp(is, target);
}

/* Makes `link` the symlink "../path". 0; -EEXIST: it is something else; -errno. */
static int point(const char *link, const char *path)
{
	char target[PINS_PATH_SIZE];

	if (pins_join(target, "..", path) < 0)
		return -ENAMETOOLONG;
	if (symlink(target, link) == 0 || (errno == EEXIST && points_to(link, target)))
		return 0;
	if (errno != EEXIST || !is_symlink(link))
		return -errno;
	/* It leads elsewhere: rename() replaces it atomically. */
	unlink(SPARE_LINK);
	if (symlink(target, SPARE_LINK) < 0 || rename(SPARE_LINK, link) < 0)
		return -errno;
	return 0;
}

int pins_link(const struct pp_spec *name, const char *path)
{
	char link[PINS_PATH_SIZE];
	int r;

	if (pins_join(link, name->ns, name->name) < 0)
		return -ENAMETOOLONG;
	r = make_namespace(name->ns, name->group, name->mode);
	if (r >= 0)
		r = point(link, path);
	if (r < 0)
		rmdir(name->ns); /* only succeeds if it is empty, so if it was made here */
	return r;
}

int pins_unlink(const char *name)
{
	char ns[PINS_PATH_SIZE];

	if (is_symlink(name) && unlink(name) < 0)
		return -errno;
	snprintf(ns, sizeof(ns), "%.*s", (int)strcspn(name, "/"), name);
	rmdir(ns); /* the last name takes its namespace's directory with it */
	return 0;
}

int pins_move(const char *name, uint64_t id)
{
	char path[PINS_PATH_SIZE];
	int r;

	/* The link leads to itself until it has the name's place, and to the event from then on. */
	pins_event(id, path);
	r = point(path, path);
	if (r < 0)
		return r;
	return renameat2(AT_FDCWD, name, AT_FDCWD, path, RENAME_EXCHANGE) < 0 ? -errno : 0;
}

/* ── rights ─────────────────────────────────────────────────────────────────────────────── */

int pins_grant_namespace(const struct pp_spec *rights)
{
	return pins_grant_directory(rights->ns, rights->group, rights->mode);
}

/* A text file. root owns it for a moment, because chmod of another user's file needs CAP_FOWNER.
 * The next start repairs it if the engine dies in between. */
static int grant_file(const char *path, const char *leaf, uid_t broker,
		      const struct pp_spec *rights)
{
	mode_t mode = 0400 | (rights->mode & 040) | (rights->mode & 04);
	char file[PINS_PATH_SIZE];
	struct stat st;

	if (pins_join(file, path, leaf) < 0)
		return -ENAMETOOLONG;
	if (lstat(file, &st) < 0)
		return -errno;
	if (st.st_uid == broker && st.st_gid == rights->group && (st.st_mode & 07777) == mode)
		return 0;
	if (chown(file, 0, -1) < 0 || chmod(file, mode) < 0 ||
	    chown(file, broker, rights->group) < 0)
		return -errno;
	return 0;
}

int pins_grant(const char *path, uid_t broker, const struct pp_spec *rights)
{
	int r;

	r = grant_file(path, "info", broker, rights);
	if (r >= 0)
		r = grant_file(path, "stat", broker, rights);
	if (r >= 0)
		r = pins_grant_directory(path, rights->group, rights->mode);
	return r;
}
