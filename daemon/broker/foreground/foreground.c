// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sets up the foreground mode. Must be called as root, before privileges are dropped. */
#include "daemon/broker/foreground/foreground.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "daemon/broker/config/dropins.h"
#include "daemon/broker/foreground/instance.h"
#include "daemon/broker/foreground/keeper-find.h"
#include "daemon/broker/foreground/launcher.h"
#include "daemon/broker/foreground/sockets.h"
#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/places.h"

/* ── what is written ────────────────────────────────────────────────────────────────────── */

/*
 * The folder for --boot: under systemd the unit's StateDirectory=. The broker is an ordinary user
 * and could not create it. The launcher removes it at the end, if it is empty.
 */
static int make_state(const struct foreground_options *o)
{
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX];
	int r = dropin_state_place(o->instance, "", path, sizeof(path));

	if (r < 0)
		return r;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		goto fail;
	r = dropin_state_place(o->instance, "/events.d", path, sizeof(path));
	if (r < 0)
		return r;
	if (mkdir(path, 0755) < 0) {
		if (errno == EEXIST)
			return 0;
		goto fail;
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0755) < 0 || fchown(fd, o->uid, o->gid) < 0)
		goto fail;
	return 0;
fail:
	/* Without the folder everything but --boot works. */
	log_warning("Cannot create %s: %s; events cannot be created with --boot.", path,
		    strerror(errno));
	return 0;
}

/* ── those it runs ──────────────────────────────────────────────────────────────────────── */

/* Beside our own program, as in a build tree; else the installed one. */
static int find_program(const char *what, const char *given, char *buf, size_t size)
{
	char name[64];
	ssize_t n;
	char *slash;

	snprintf(name, sizeof(name), "perfpersist-%s", what);
	if (given) {
		snprintf(buf, size, "%s", given);
	} else {
		n = readlink("/proc/self/exe", buf, size - sizeof(name) - 1);
		buf[MAX(n, 0)] = '\0';
		slash = strrchr(buf, '/');
		if (slash)
			memcpy(slash + 1, name, strlen(name) + 1);
		if (!slash || access(buf, X_OK) < 0)
			snprintf(buf, size, "%s/%s", PP_LIBEXECDIR, name);
	}
	if (access(buf, X_OK) == 0)
		return 0;
	log_error("There is no %s to run at %s: %s; name it with --%s.", what, buf, strerror(errno),
		  what);
	return -ENOENT;
}

struct programs {
	char engine[PATH_MAX], dumper[PATH_MAX], keeper[PATH_MAX];
};

static int find_programs(const struct foreground_options *o, struct programs *p)
{
	int r = find_program("engine", o->engine, p->engine, sizeof(p->engine));

	if (r >= 0)
		r = find_program("dumper", o->dumper, p->dumper, sizeof(p->dumper));
	if (r >= 0)
		r = find_program("keeper", o->keeper, p->keeper, sizeof(p->keeper));
	return r;
}

/* A keeper that an earlier daemon left goes on; otherwise makes a socket, where the launcher starts
 * one on demand. */
static int find_keeper(const struct foreground_options *o, int *ret_found, int *ret_listen)
{
	int found = keeper_find(o->instance);

	if (found == -ENOENT)
		return socket_listen(o->instance, "/keeper", 0600, o->uid, ret_listen);
	if (found < 0) {
		log_error("Cannot look for a keeper of sideband: %s.", strerror(-found));
		return found;
	}
	*ret_found = found;
	return 0;
}

static int launch(const struct foreground_options *o, const struct programs *programs, int lock,
		  struct foreground *f)
{
	_cleanup_close_ int orders = -EBADF, copies = -EBADF, keep = -EBADF, found = -EBADF;
	struct launcher_options options = {
		.engine = programs->engine,
		.dumper = programs->dumper,
		.keeper = programs->keeper,
		.instance = o->instance,
		.broker = o->uid,
		.group = o->gid,
		.lock = lock,
	};
	int r;

	r = socket_listen(o->instance, "/engine", 0600, o->uid, &orders);
	if (r < 0)
		return r;
	r = socket_listen(o->instance, "/dumper", 0600, o->uid, &copies);
	if (r < 0)
		return r;
	r = find_keeper(o, &found, &keep);
	if (r < 0)
		return r;
	options.engine_listen = orders;
	options.dumper_listen = copies;
	options.keeper_listen = keep;
	options.keeper_found = found;
	r = launcher_start(&options, &f->launcher, &f->alive);
	if (r < 0)
		log_error("Cannot start the launcher of engine, dumper and keeper: %s.",
			  strerror(-r));
	return r;
}

int foreground_start(const struct foreground_options *options, struct foreground *ret)
{
	struct foreground f = FOREGROUND_NONE;
	_cleanup_close_ int lock = -EBADF;
	struct programs programs;
	int r;

	r = find_programs(options, &programs);
	if (r < 0)
		return r;
	r = instance_take(options->instance, &lock);
	if (r < 0)
		return r;
	r = make_state(options);
	if (r < 0)
		return r;
	r = launch(options, &programs, lock, &f);
	if (r < 0)
		return r;
	/* After the fork: a launcher that outlives us must not hold the socket that clients connect
	 * to. */
	r = socket_listen(options->instance, "/control", 0666, 0, &f.control);
	if (r < 0) {
		foreground_done(&f);
		return r;
	}
	f.lock = TAKE_FD(lock);
	*ret = f;
	return 0;
}

void foreground_done(struct foreground *f)
{
	f->alive = close_fd(f->alive);
	f->control = close_fd(f->control);
	if (f->launcher > 0)
		waitpid(f->launcher, NULL, 0);
	f->launcher = 0;
	f->lock = close_fd(f->lock);
}
