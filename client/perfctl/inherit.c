// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * `reopen NAME -- CMD` and `claim NAME -- CMD`: executes CMD, which inherits the rings as sd_listen_fds(3)
 * expects them, and with `claim` what else keeps the event alive. The kernel lets CMD only read rings.
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/perfctl.h"

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */

/* What CMD inherits. */
struct inheritance {
	int *fds; /* of which the process's end is the end */
	size_t n;
	char *names; /* "cpu0:cpu1:…" */
};

static void inheritance_done(struct inheritance *i)
{
	free(i->fds);
	free(i->names);
}

/* Out of the way of FIRST_FD and up: placing them must close none that is still needed. */
static int move_up(struct inheritance *it)
{
	for (size_t i = 0; i < it->n; i++) {
		int fd = fcntl(it->fds[i], F_DUPFD_CLOEXEC, FIRST_FD + (int)it->n);

		if (fd < 0)
			return -errno;
		it->fds[i] = fd;
	}
	return 0;
}

/* To FIRST_FD and up, without CLOEXEC. Closes the descriptors that were there. */
static int place(const struct inheritance *it)
{
	for (size_t i = 0; i < it->n; i++)
		if (dup2(it->fds[i], FIRST_FD + (int)i) < 0)
			return -errno;
	return 0;
}

/* e's rings; up to `readable` its catalog, if it has one; then those that keep them. */
static int name_all(struct perfpersist_event *e, size_t readable, size_t all, char **ret)
{
	size_t size, n = perfpersist_event_rings(e);
	char *names = NULL;
	FILE *f = open_memstream(&names, &size);

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%scpu%d", i ? ":" : "", perfpersist_ring_cpu(e, i));
	for (size_t i = n; i < all; i++)
		fputs(i < readable ? ":catalog" : ":kept", f);
	if (fclose(f)) {
		free(names);
		return -ENOMEM;
	}
	*ret = names;
	return 0;
}

static int set_environment(const struct inheritance *it, const char *ns, const char *name)
{
	char number[24], event[136];

	if (setenv("LISTEN_FDNAMES", it->names, 1))
		return -errno;
	snprintf(number, sizeof(number), "%zu", it->n);
	if (setenv("LISTEN_FDS", number, 1))
		return -errno;
	snprintf(number, sizeof(number), "%d", (int)getpid());
	if (setenv("LISTEN_PID", number, 1))
		return -errno;
	snprintf(event, sizeof(event), "%s/%s", ns, name);
	return setenv("PERFPERSIST_EVENT", event, 1) ? -errno : 0;
}

static int cannot_run(const char *command, int r)
{
	complain("cannot run %s: %s", command, strerror(r));
	return r == ENOENT ? 127 : 126;
}

static int cannot_pass(const char *ns, const char *name, const char *command, int r)
{
	complain("cannot pass the rings of %s/%s to %s: %s", ns, name, command, strerror(-r));
	return EXIT_FAILED;
}

/* All that can fail before CMD is executed. made: what making the inheritance has returned. */
static int prepare(int made, struct inheritance *it, const char *ns, const char *name,
		   const char *command)
{
	int r = made;

	fflush(NULL);
	if (r >= 0)
		r = set_environment(it, ns, name);
	if (r >= 0)
		r = move_up(it);
	return r < 0 ? cannot_pass(ns, name, command, r) : EXIT_OK;
}

static int execute(const struct inheritance *it, const char *ns, const char *name, char **command)
{
	int r = place(it);

	if (r < 0)
		return cannot_pass(ns, name, command[0], r);
	execvp(command[0], command);
	return cannot_run(command[0], errno);
}

int run_with_rings(struct perfpersist_event *e, const char *ns, const char *name, char **command)
{
	size_t rings = perfpersist_event_rings(e);
	int catalog = perfpersist_catalog_fd(e);
	_cleanup_(inheritance_done) struct inheritance it = { .n = rings + (catalog >= 0) };
	int r = name_all(e, it.n, it.n, &it.names);

	it.fds = calloc(it.n + 1, sizeof(*it.fds));
	for (size_t i = 0; it.fds && i < rings; i++)
		it.fds[i] = perfpersist_ring_fd(e, i);
	if (it.fds && catalog >= 0)
		it.fds[rings] = catalog;
	r = prepare(it.fds ? r : -ENOMEM, &it, ns, name, command[0]);
	return r ? r : execute(&it, ns, name, command);
}

static int make_claimed(const int *fds, size_t n, size_t rings, struct inheritance *ret)
{
	_cleanup_(cleanup_event) struct perfpersist_event *e = NULL;
	int r = perfpersist_open_fds(fds, rings, &e);

	if (r < 0)
		return r;
	ret->n = n;
	ret->fds = calloc(n, sizeof(*fds));
	if (!ret->fds)
		return -ENOMEM;
	memcpy(ret->fds, fds, n * sizeof(*fds));
	return name_all(e, rings, n, &ret->names);
}

int run_with_claimed(struct perfpersist *p, const int *fds, size_t n, size_t rings,
		     const struct perfpersist_info *info, char **command)
{
	_cleanup_(inheritance_done) struct inheritance it = {};
	int r = make_claimed(fds, n, rings, &it);

	r = prepare(r, &it, info->ns, info->name, command[0]);
	if (r)
		return r;
	r = perfpersist_claim_end(p, info);
	if (r < 0)
		return call_failed(p, r);
	if (r > 0)
		complain("%s; %s has all of it, and the event goes on with it",
			 perfpersist_error(p), command[0]);
	return execute(&it, info->ns, info->name, command);
}

/* The path of a command in a directory of $PATH, of which an empty one is the current directory. 0: it can be
 * executed; an errno value. */
static int check_file(const char *directory, size_t n, const char *command)
{
	char path[PATH_MAX];
	struct stat st;

	if (snprintf(path, sizeof(path), "%.*s%s%s", (int)n, directory, n ? "/" : "", command) >=
	    (int)sizeof(path))
		return ENAMETOOLONG;
	if (access(path, X_OK) < 0 || stat(path, &st) < 0)
		return errno;
	return S_ISREG(st.st_mode) ? 0 : EACCES;
}

/* As execvp(3) looks. */
static int find_in(const char *path, const char *command)
{
	int r, error = ENOENT;
	size_t n;

	for (;; path += n + 1) {
		n = strcspn(path, ":");
		r = check_file(path, n, command);
		if (r == EACCES)
			error = r;
		if (!r || !path[n])
			return r ? error : 0;
	}
}

int check_command(char **command)
{
	int r = strchr(command[0], '/') ? check_file("", 0, command[0])
					: find_in(getenv("PATH") ?: "/bin:/usr/bin", command[0]);

	return r ? cannot_run(command[0], r) : EXIT_OK;
}
