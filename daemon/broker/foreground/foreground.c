// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sets the foreground up. Must be called by root, before rights are given up. */
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
 * Where --boot writes: under systemd the unit's StateDirectory=. The broker is an ordinary user and
 * could not make it. The launcher removes it at the end, if it is empty.
 */
static int make_state(const struct foreground_options *o)
{
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX];
	int err = dropin_state_place(o->instance, "", path, sizeof(path));

	if (err < 0)
		return err;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		goto fail;
	err = dropin_state_place(o->instance, "/events.d", path, sizeof(path));
	if (err < 0)
		return err;
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
	/* Without it all but --boot works. */
	log_warning("Cannot make %s: %s; nothing can be created to be there after a reboot.", path,
		    strerror(errno));
	return 0;
}

/* ── those it runs ──────────────────────────────────────────────────────────────────────── */

/* Beside our own program, as in a build tree; else where it is installed. */
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
	int err = find_program("engine", o->engine, p->engine, sizeof(p->engine));

	if (err >= 0)
		err = find_program("dumper", o->dumper, p->dumper, sizeof(p->dumper));
	if (err >= 0)
		err = find_program("keeper", o->keeper, p->keeper, sizeof(p->keeper));
	return err;
}

/* One that an earlier daemon has left goes on; else a socket, at which one is started. */
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
	int err;

	err = socket_listen(o->instance, "/engine", 0600, o->uid, &orders);
	if (err < 0)
		return err;
	err = socket_listen(o->instance, "/dumper", 0600, o->uid, &copies);
	if (err < 0)
		return err;
	err = find_keeper(o, &found, &keep);
	if (err < 0)
		return err;
	options.engine_listen = orders;
	options.dumper_listen = copies;
	options.keeper_listen = keep;
	options.keeper_found = found;
	err = launcher_start(&options, &f->launcher, &f->alive);
	if (err < 0)
		log_error("Cannot start the launcher of engine, dumper and keeper: %s.",
			  strerror(-err));
	return err;
}

int foreground_start(const struct foreground_options *options, struct foreground *ret)
{
	struct foreground f = FOREGROUND_NONE;
	_cleanup_close_ int lock = -EBADF;
	struct programs programs;
	int err;

	err = find_programs(options, &programs);
	if (err < 0)
		return err;
	err = instance_take(options->instance, &lock);
	if (err < 0)
		return err;
	err = make_state(options);
	if (err < 0)
		return err;
	err = launch(options, &programs, lock, &f);
	if (err < 0)
		return err;
	/* After the fork: a launcher that outlives us must not seem to answer clients. */
	err = socket_listen(options->instance, "/control", 0666, 0, &f.control);
	if (err < 0) {
		foreground_done(&f);
		return err;
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
