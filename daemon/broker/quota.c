// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts connections by user. Must not know what a connection is. */
#include "daemon/broker/quota.h"

#include <assert.h>

#include "proto/macro.h"

static struct quota_user *find(const struct quota *q, uint32_t uid)
{
	for (size_t i = 0; i < q->n_users; i++)
		if (q->users[i].uid == uid)
			return &q->users[i];
	return NULL;
}

static int add_user(struct quota *q, uint32_t uid, struct quota_user **ret)
{
	if (q->n_users == q->room) {
		size_t room = q->room ? q->room * 2 : 16;
		struct quota_user *p = reallocarray(q->users, room, sizeof(*p));

		if (!p)
			return -ENOMEM;
		q->users = p;
		q->room = room;
	}
	q->users[q->n_users] = (struct quota_user){ .uid = uid };
	*ret = &q->users[q->n_users++];
	return 0;
}

int quota_charge(struct quota *q, uint32_t uid)
{
	struct quota_user *user = find(q, uid);
	int err;

	if (uid != 0 && q->connections >= q->max_connections)
		return -EDQUOT;
	if (uid != 0 && user && user->connections >= q->max_per_user)
		return -EDQUOT;
	if (!user) {
		err = add_user(q, uid, &user);
		if (err < 0)
			return err;
	}
	user->connections++;
	q->connections++;
	return 0;
}

void quota_release(struct quota *q, uint32_t uid)
{
	struct quota_user *user = find(q, uid);

	assert(user && user->connections > 0 && q->connections > 0);
	q->connections--;
	if (--user->connections == 0)
		*user = q->users[--q->n_users];
}

void quota_done(struct quota *q)
{
	assert(q->connections == 0 && q->n_users == 0);
	free(q->users);
	*q = (struct quota){ 0 };
}
