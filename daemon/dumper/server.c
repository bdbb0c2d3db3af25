// SPDX-License-Identifier: LGPL-2.1-or-later
/* The dumper's loop. Knows jobs and answers, not how a copy is made. */
#include "daemon/dumper/server.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/accept.h"
#include "daemon/copy.h"
#include "daemon/dumper/copy.h"
#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/packet.h"

struct server {
	struct accept_rule broker;
	int listener, connection;
	struct pp_copy_job job;
	struct pp_fds from, to;
};

/* False: the sender is not our broker. */
static bool job_is_sound(const struct server *s, ssize_t size)
{
	return size == sizeof(s->job) && s->job.abi == PP_COPY_ABI && s->job.count > 0 &&
	       s->job.count == s->from.n && s->job.catalog <= 1 && s->job.reserved == 0;
}

static int copy_all(struct server *s)
{
	for (size_t i = 0; i < s->from.n; i++) {
		bool catalog = i == 0 && s->job.catalog;
		int fd = -EBADF;
		int r = (catalog ? copy_catalog : copy_ring)(s->from.fd[i], s->job.size[i], &fd);

		if (r < 0) {
			log_error("Cannot copy a %s of %u bytes: %s.", catalog ? "catalog" : "ring",
				  s->job.size[i], strerror(-r));
			return r;
		}
		s->to.fd[s->to.n++] = fd;
	}
	return 0;
}

static int answer(struct server *s, int error, bool last)
{
	const struct pp_copy_answer answer = {
		.abi = PP_COPY_ABI,
		.error = -error,
		.serial = s->job.serial,
		.count = s->to.n,
		.last = last,
	};

	return pp_packet_send(s->connection, &answer, sizeof(answer), s->to.fd, s->to.n);
}

/* < 0: close the connection. */
static int carry_out(struct server *s)
{
	int error = copy_all(s);
	int err = error < 0 ? 0 : answer(s, 0, false);

	pp_fds_close(&s->from);
	pp_fds_close(&s->to);
	return err < 0 ? err : answer(s, error, true);
}

/* Handles one job, from packet to answer. < 0: close the connection. */
static int serve_job(struct server *s)
{
	ssize_t n =
		pp_packet_receive(s->connection, &s->job, sizeof(s->job), PP_FDS_MAX, &s->from, 0);
	int r = -EBADMSG;

	if (n <= 0)
		return n < 0 ? (int)n : -ECONNRESET;
	if (job_is_sound(s, n)) {
		/* The broker waits no longer than this; a job that hangs ends with the dumper. */
		alarm(PP_COPY_SECONDS);
		r = carry_out(s);
		alarm(0);
	} else {
		log_error("The broker sent an invalid job; its connection is closed.");
	}
	pp_fds_close(&s->from);
	pp_fds_close(&s->to);
	return r;
}

static int serve_once(struct server *s)
{
	struct pollfd fds[] = {
		{ s->listener, POLLIN, 0 }, { s->connection, POLLIN, 0 }, /* < 0: ignored by poll */
	};

	if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		accept_instead(s->listener, &s->broker, &s->connection);
	else if (fds[1].revents && serve_job(s) < 0)
		s->connection = close_fd(s->connection);
	return 0;
}

int serve_copies(int listener, pid_t broker)
{
	struct server s = {
		.broker = { geteuid(), broker },
		.listener = listener,
		.connection = -EBADF,
	};
	int r;

	do
		r = serve_once(&s);
	while (r >= 0);
	close_fd(s.connection);
	return r;
}
