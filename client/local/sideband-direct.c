// SPDX-License-Identifier: LGPL-2.1-or-later
/* Talks to the keeper (proto/keep.h): its identity and its sideband. */
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "client/local/sideband-direct.h"
#include "client/public.h"
#include "proto/keep.h"
#include "proto/macro.h"
#include "proto/packet.h"

#define PATIENCE_SECONDS 30

struct keeper {
	int fd;
	struct sockaddr_un address;
	struct pp_keep_request request;
	struct pp_keep_answer answer;
};

static int cannot_ask(const struct keeper *k, int error)
{
	if (error == -EAGAIN)
		return client_fail(error,
				   "cannot ask the keeper at %s for sideband: it has not answered "
				   "for %d seconds",
				   k->address.sun_path, PATIENCE_SECONDS);
	return client_fail(error == -ECONNRESET || error == -EPIPE || error == 0 ? -EAGAIN : error,
			   "cannot ask the keeper at %s for sideband: %s", k->address.sun_path,
			   error ? strerror(-error) : "it has ended; try again");
}

/* The keeper's socket is beside the registry. */
static int find_address(const char *registry, struct sockaddr_un *ret)
{
	const char *slash = strrchr(registry, '/');
	size_t n = slash ? (size_t)(slash - registry) : 0;
	int length;

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	length = snprintf(ret->sun_path, sizeof(ret->sun_path), "%.*s%skeeper", (int)n, registry,
			  slash ? "/" : "");
	if (length < 0 || (size_t)length >= sizeof(ret->sun_path))
		return client_fail(-ENAMETOOLONG, "the path of the registry %s is too long",
				   registry);
	return 0;
}

/* 0; -ENOENT, -ECONNREFUSED: no keeper runs; another -errno. */
static int connect_keeper(struct keeper *k)
{
	const struct timeval patience = { .tv_sec = PATIENCE_SECONDS };

	k->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (k->fd < 0 ||
	    setsockopt(k->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(k->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return -errno;
	while (connect(k->fd, (const struct sockaddr *)&k->address, sizeof(k->address)) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* An answer of another version has another size: only that is reported. */
static int ask(struct keeper *k, struct pp_fds *fds)
{
	ssize_t n;
	int r;

	k->request.abi = PP_KEEP_ABI;
	k->request.serial++;
	r = pp_packet_send(k->fd, &k->request, sizeof(k->request), NULL, 0);
	if (r < 0)
		return cannot_ask(k, r);
	do
		n = pp_packet_receive(k->fd, &k->answer, sizeof(k->answer), 1, fds, 0);
	while (n == -EINTR);
	if (n == 0 || (n < 0 && n != -EBADMSG))
		return cannot_ask(k, (int)n);
	if (n != sizeof(k->answer) || k->answer.abi != PP_KEEP_ABI ||
	    k->answer.serial != k->request.serial)
		return client_fail(-EAGAIN,
				   "the keeper at %s is of another version than this program; "
				   "perfpersistd of this version will begin another one",
				   k->address.sun_path);
	return 0;
}

static void fill(const struct pp_keep_answer *a, struct pp_msg_sideband_reply *ret)
{
	pp_keep_describe(a, ret);
	ret->why = ret->keeping ? PP_SIDEBAND_FIRST : PP_SIDEBAND_NOTHING;
}

static int take(struct keeper *k, const struct pp_msg_sideband_request *request, struct answer *ret)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	int r;

	k->request.type = PP_KEEP_TAKE;
	k->request.since = request->since;
	k->request.until = request->until;
	r = ask(k, &fds);
	if (r < 0 || k->answer.error == ENODATA)
		return r;
	if (k->answer.error)
		return cannot_ask(k, -k->answer.error);
	if (fds.n != 1 || !k->answer.size)
		return client_fail(-EBADMSG, "the keeper at %s sent no sideband",
				   k->address.sun_path);
	fill(&k->answer, &ret->sideband);
	ret->fd = TAKE_FD(fds.fd[0]);
	fds.n = 0;
	return 0;
}

static int converse(struct keeper *k, const struct pp_msg_sideband_request *request,
		    struct answer *ret)
{
	_cleanup_(pp_fds_close) struct pp_fds none = { .n = 0 };
	int r = connect_keeper(k);

	ret->sideband = (struct pp_msg_sideband_reply){ .why = PP_SIDEBAND_NOTHING };
	if (r == -ENOENT || r == -ECONNREFUSED)
		return 0;
	if (r < 0)
		return cannot_ask(k, r);
	k->request.type = PP_KEEP_HELLO;
	r = ask(k, &none);
	if (r < 0)
		return r;
	fill(&k->answer, &ret->sideband);
	if (!ret->sideband.keeping || request->flags & PP_SIDEBAND_STATUS)
		return 0;
	return take(k, request, ret);
}

int sideband_direct(const char *registry, const struct pp_msg_sideband_request *request,
		    struct answer *ret)
{
	struct keeper *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return client_fail(-ENOMEM, "cannot ask for sideband: out of memory");
	k->fd = -EBADF;
	r = find_address(registry, &k->address);
	if (r >= 0)
		r = converse(k, request, ret);
	close_fd(k->fd);
	free(k);
	return r;
}
