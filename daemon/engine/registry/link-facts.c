// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads what the iterator of links writes. See link-facts.h. */
#include "daemon/engine/registry/link-facts.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/engine/registry/iterators.h"
#include "proto/macro.h"

static int open_iterator(uid_t broker)
{
	const struct iterators_bpf *skeleton;
	_cleanup_close_ int link = -EBADF;
	int tasks, r = iterators_load(broker, &skeleton, &tasks);

	if (r < 0 || tasks < 0)
		return r < 0 ? r : tasks;
	link = bpf_link_create(bpf_program__fd(skeleton->progs.pp_links), 0, BPF_TRACE_ITER, NULL);
	if (link < 0)
		return link;
	return bpf_iter_create(link);
}

/* More links are not looked at, since anybody who has a program can make links. */
#define FACTS_MAX 65536

/* The kernel may cut anywhere. */
static int read_all(int fd, char **ret, size_t *ret_size)
{
	_cleanup_free_ char *buf = NULL;
	size_t size = 0, room = 0;
	ssize_t n;

	do {
		if (room - size < 4096) {
			char *more = realloc(buf, room = MAX(2 * room, (size_t)16384));

			if (!more)
				return -ENOMEM;
			buf = more;
		}
		n = read(fd, buf + size, room - size);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		size += n > 0 ? (size_t)n : 0;
		if (size > FACTS_MAX * sizeof(struct link_fact))
			return -E2BIG;
	} while (n != 0);
	*ret = TAKE_PTR(buf);
	*ret_size = size;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct link_fact *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

int link_facts_read(uid_t broker, struct link_fact **ret, size_t *ret_n)
{
	_cleanup_close_ int fd = open_iterator(broker);
	_cleanup_free_ char *buf = NULL;
	size_t size = 0;
	int r = fd < 0 ? fd : read_all(fd, &buf, &size);

	if (r < 0)
		return r;
	*ret_n = size / sizeof(**ret);
	*ret = (void *)TAKE_PTR(buf);
	qsort(*ret, *ret_n, sizeof(**ret), by_id);
	return 0;
}

const struct link_fact *link_facts_find(const struct link_fact *facts, size_t n, unsigned id)
{
	const struct link_fact key = { .id = id };

	return n ? bsearch(&key, facts, n, sizeof(*facts), by_id) : NULL;
}
