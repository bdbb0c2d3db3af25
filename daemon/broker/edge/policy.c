// SPDX-License-Identifier: LGPL-2.1-or-later
/* Decides on rights. Must not know requests, and never asks the peer. */
#include "daemon/broker/edge/policy.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/macro.h"

static int compare_gids(const void *a, const void *b)
{
	gid_t x = *(const gid_t *)a, y = *(const gid_t *)b;

	return (x > y) - (x < y);
}

static int read_groups(int socket, gid_t **ret, size_t *ret_n)
{
	socklen_t size = 64 * sizeof(gid_t);
	_cleanup_free_ gid_t *groups = NULL;

	for (;;) {
		gid_t *p = realloc(groups, MAX(size, sizeof(gid_t)));

		if (!p)
			return -ENOMEM;
		groups = p;
		/* If the buffer is too small, the kernel returns ERANGE and sets the size it
		 * needs. */
		if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
			break;
		if (errno != ERANGE)
			return -errno;
	}
	qsort(groups, size / sizeof(gid_t), sizeof(gid_t), compare_gids);
	*ret_n = size / sizeof(gid_t);
	*ret = TAKE_PTR(groups);
	return 0;
}

int credentials_read(int socket, struct credentials *ret)
{
	struct credentials c = { 0 };
	struct ucred peer;
	socklen_t size = sizeof(peer);
	int r;

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	c.pid = peer.pid;
	c.uid = peer.uid;
	c.gid = peer.gid;
	r = read_groups(socket, &c.groups, &c.n_groups);
	if (r < 0)
		return r;
	*ret = c;
	return 0;
}

void credentials_done(struct credentials *c)
{
	free(c->groups);
	*c = (struct credentials){ 0 };
}

bool credentials_in_group(const struct credentials *c, gid_t group)
{
	return c->gid == group || (c->n_groups > 0 && bsearch(&group, c->groups, c->n_groups,
							      sizeof(gid_t), compare_gids));
}

/* The process that saves tapes, or another of ours; our user is no person's. */
static bool is_us(const struct credentials *c)
{
	return c->uid == getuid();
}

bool policy_allows(const struct credentials *c, const struct namespace *ns, enum pp_right right)
{
	uint32_t bits;

	if (c->uid == 0 || (right == PP_RIGHT_R && is_us(c)))
		return true;
	/* The first class that matches decides, even if a later one grants more. */
	if (c->uid == ns->owner)
		bits = ns->mode >> 6;
	else if (credentials_in_group(c, ns->group))
		bits = ns->mode >> 3;
	else
		bits = ns->mode;
	return (bits & right) == right;
}

bool policy_may(const struct credentials *c, enum policy_who who, gid_t group)
{
	if (c->uid == 0)
		return true;
	switch (who) {
	case POLICY_ROOT:
		return false;
	case POLICY_GROUP:
		return credentials_in_group(c, group);
	case POLICY_ALL:
		return true;
	}
	return false;
}

bool policy_may_fire(const struct credentials *c, const struct namespace *ns)
{
	if (policy_allows(c, ns, PP_RIGHT_W))
		return true;
	switch (ns->fire) {
	case NAMESPACE_FIRE_WRITERS:
		return false;
	case NAMESPACE_FIRE_GROUP:
		return c->uid == ns->owner || credentials_in_group(c, ns->group);
	case NAMESPACE_FIRE_READERS:
		return policy_allows(c, ns, PP_RIGHT_R);
	case NAMESPACE_FIRE_ALL:
		return true;
	}
	return false;
}

bool policy_may_release(const struct credentials *c, const struct namespace *ns)
{
	return is_us(c) || policy_allows(c, ns, PP_RIGHT_W);
}

bool policy_may_resize(const struct credentials *c, uid_t creator)
{
	return c->uid == 0 || c->uid == creator;
}

bool policy_may_adopt(const struct credentials *c, bool is_tracepoint)
{
	return c->uid == 0 || !is_tracepoint;
}

bool policy_may_claim(const struct credentials *c, uid_t creator, bool is_adopted,
		      bool is_tracepoint)
{
	return c->uid == 0 || (c->uid == creator && is_adopted && !is_tracepoint);
}

bool policy_may_have_sideband(const struct credentials *c, struct namespace *const *namespaces,
			      size_t n)
{
	if (c->uid == 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (namespaces[i]->n_events > 0 && policy_allows(c, namespaces[i], PP_RIGHT_R))
			return true;
	return false;
}

bool policy_may_hold_rings(const struct credentials *c, const struct namespace *ns,
			   bool unprivileged_bpf)
{
	if (c->uid == 0 || is_us(c))
		return true;
	if (unprivileged_bpf)
		return false;
	switch (ns->live) {
	case NAMESPACE_LIVE_NOBODY:
		return false;
	case NAMESPACE_LIVE_OWNER:
		return c->uid == ns->owner;
	case NAMESPACE_LIVE_GROUP:
		return c->uid == ns->owner || credentials_in_group(c, ns->group);
	case NAMESPACE_LIVE_READERS:
		return true;
	}
	return false;
}
