// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/output/outfile.h"

#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "client/perfctl/perfctl.h"

#define TRIES 100

/* The directory of a path. The caller frees *ret. */
static int directory_of(const char *path, char **ret)
{
	_cleanup_free_ char *copy = strdup(path);

	if (!copy)
		return -ENOMEM;
	*ret = strdup(dirname(copy));
	return *ret ? 0 : -ENOMEM;
}

/* DIRECTORY/.NAME-RANDOM */
static char *hidden_name(const char *directory, const char *path)
{
	const char *slash = strrchr(path, '/');
	unsigned long random = 0;
	char *ret = NULL;

	if (getrandom(&random, sizeof(random), 0) < 0 ||
	    asprintf(&ret, "%s/.%.200s-%016lx", directory, slash ? slash + 1 : path, random) < 0)
		return NULL;
	return ret;
}

static int open_hidden(const char *directory, struct outfile *f)
{
	for (int i = 0; i < TRIES; i++) {
		free(f->hidden);
		f->hidden = hidden_name(directory, f->path);
		if (!f->hidden)
			return -ENOMEM;
		f->fd = open(f->hidden, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (f->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	free(f->hidden);
	f->hidden = NULL;
	return -errno;
}

/* Such as /dev/stdout: it leads to no file, or to one that somebody else reads or writes. */
static int check_link(const char *path)
{
	struct stat to, own;

	if (stat(path, &to) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(to.st_mode))
		return S_ISDIR(to.st_mode) ? -EISDIR : -EEXIST;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fstat(fd, &own) == 0 && own.st_dev == to.st_dev && own.st_ino == to.st_ino)
			return -EEXIST;
	return 0;
}

/* A rename must not replace a pipe or a device: -o FILE does not mean that. */
static int check_place(const char *path)
{
	struct stat st;

	if (!*path)
		return -ENOENT;
	if (path[strlen(path) - 1] == '/')
		return -EISDIR;
	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (S_ISLNK(st.st_mode))
		return check_link(path);
	return S_ISREG(st.st_mode) ? 0 : -EEXIST;
}

int outfile_open(const char *path, struct outfile *ret)
{
	_cleanup_free_ char *directory = NULL;
	struct outfile f = OUTFILE_NONE;
	int r;

	if (!strcmp(path, "-")) {
		if (isatty(STDOUT_FILENO))
			return -ENOTTY;
		f.fd = STDOUT_FILENO;
		*ret = f;
		return 0;
	}
	r = check_place(path);
	if (r >= 0)
		r = directory_of(path, &directory);
	if (r < 0)
		return r;
	f.path = strdup(path);
	if (!f.path)
		return -ENOMEM;
	f.fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (f.fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
		r = open_hidden(directory, &f);
	else if (f.fd < 0)
		r = -errno;
	if (r < 0) {
		free(f.path);
		return r;
	}
	*ret = f;
	return 0;
}

bool outfile_is_stdout(const struct outfile *f)
{
	return f->fd >= 0 && !f->path;
}

void outfile_rename(struct outfile *f, char *path)
{
	free(f->path);
	f->path = path;
}

/* A nameless file first gets a hidden name: linkat(2) does not replace an existing file. */
static int name_it(struct outfile *f)
{
	_cleanup_free_ char *directory = NULL;
	char self[64];
	int r = directory_of(f->path, &directory);

	if (r < 0)
		return r;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
	for (int i = 0; i < TRIES; i++) {
		_cleanup_free_ char *hidden = hidden_name(directory, f->path);

		if (!hidden)
			return -ENOMEM;
		if (linkat(AT_FDCWD, self, AT_FDCWD, hidden, AT_SYMLINK_FOLLOW) == 0) {
			f->hidden = TAKE_PTR(hidden);
			return 0;
		}
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

/* Not every file system can rename without replacing (NFS), nor has every one hard links (FAT). */
static int rename_new(struct outfile *f)
{
	if (link(f->hidden, f->path) == 0) {
		unlink(f->hidden);
		return 0;
	}
	if (errno == EEXIST ||
	    renameat2(AT_FDCWD, f->hidden, AT_FDCWD, f->path, RENAME_NOREPLACE) < 0)
		return -errno;
	return 0;
}

static int commit(struct outfile *f, bool is_new)
{
	int r = 0;

	if (f->fd < 0 || !f->path)
		return 0;
	/* No file exists there: no hidden name is needed, and nobody ever sees one. */
	if (!f->hidden) {
		char self[64];

		snprintf(self, sizeof(self), "/proc/self/fd/%d", f->fd);
		if (linkat(AT_FDCWD, self, AT_FDCWD, f->path, AT_SYMLINK_FOLLOW) == 0)
			goto done;
		r = name_it(f);
	}
	if (r >= 0 && is_new)
		r = rename_new(f);
	else if (r >= 0 && rename(f->hidden, f->path) < 0)
		r = -errno;
	if (r < 0) {
		if (r != -EEXIST || !is_new)
			outfile_done(f);
		return r;
	}
	free(f->hidden);
	f->hidden = NULL;
done:
	/* A file system that writes late reports errors at close(2), if at all. */
	if (close(f->fd) < 0)
		r = -errno;
	f->fd = -EBADF;
	free(f->path);
	f->path = NULL;
	return r;
}

int outfile_commit(struct outfile *f)
{
	return commit(f, false);
}

int outfile_commit_new(struct outfile *f)
{
	return commit(f, true);
}

void outfile_done(struct outfile *f)
{
	if (f->hidden)
		unlink(f->hidden);
	if (f->path)
		close_fd(f->fd);
	free(f->hidden);
	free(f->path);
	*f = OUTFILE_NONE;
}

int outfile_failed(const char *path, int error)
{
	switch (error) {
	case -ENOTTY:
		complain(
			"'-' is stdout, which is a terminal here: the file is not text; redirect it, "
			"or give -o a FILE");
		return EXIT_USAGE;
	case -EISDIR:
		complain("cannot write %s: it is a directory; give a file's name", path);
		break;
	case -EEXIST:
		complain(
			"cannot write %s: something is there that is no file; give another name, or "
			"'-' for stdout",
			path);
		break;
	case -EPIPE:
		complain("cannot write %s: who read it is gone", path);
		break;
	default:
		complain("cannot write %s: %s", path, strerror(-error));
		break;
	}
	return EXIT_FAILED;
}
