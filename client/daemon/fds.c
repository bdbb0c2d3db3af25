// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens events from descriptors that came without a connection. */
#include <fcntl.h>
#include <string.h>

#include "client/public.h"
#include "client/rings/event.h"

/* Adds a ring, or else the catalog. The error for anything else is that of a ring. */
static int add_any(struct perfpersist_event *e, int fd)
{
	_cleanup_close_ int other = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	char why[CLIENT_SENTENCE_SIZE];
	int error, r;

	if (other < 0) {
		error = -errno;
		close_fd(fd);
		return client_fail(error, "cannot duplicate a descriptor: %s", strerror(-error));
	}
	error = client_event_add(e, fd, CLIENT_ANY_CPU, 0);
	if (error != -EBADMSG)
		return error;
	snprintf(why, sizeof(why), "%s", client_sentence());
	r = client_event_add_catalog(e, TAKE_FD(other), 0);
	return r == -EBADMSG ? client_fail(error, "%s", why) : r;
}

static int add_fds(struct perfpersist_event *e, const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int fd = fcntl(fds[i], F_DUPFD_CLOEXEC, 3), error;

		if (fd < 0)
			return client_fail(-errno, "cannot use descriptor %d as a ring: %m",
					   fds[i]);
		error = add_any(e, fd);
		if (error < 0)
			return error == -ESTALE ? -EINVAL : error;
	}
	if (e->n == 0)
		return client_fail(-EINVAL, "cannot open an event: there is no ring among the "
					    "descriptors that were given");
	return client_event_complete(e);
}

_public_ int perfpersist_open_fds(const int *fds, size_t n, struct perfpersist_event **ret)
{
	_cleanup_(client_event_cleanup) struct perfpersist_event *e = NULL;
	int r;

	if (n == 0)
		return client_fail(-EINVAL, "cannot open an event: no descriptors were given");
	r = client_event_new(NULL, &e);
	if (r >= 0)
		r = add_fds(e, fds, n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < e->n; i++) {
		e->is_copy |= e->rings[i].is_file;
		e->base.memory += e->rings[i].header.header_size + e->rings[i].header.data_size +
				  e->rings[i].header.spill_size;
	}
	*ret = TAKE_PTR(e);
	return 0;
}
