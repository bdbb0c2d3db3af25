/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The quota of connections: each is charged to its user before anything is spent on it, so
 * that no user can keep the others out. Root is counted, and never refused.
 */
#ifndef PP_BROKER_QUOTA_H
#define PP_BROKER_QUOTA_H

#include <stddef.h>
#include <stdint.h>

struct quota_user {
	uint32_t uid;
	size_t connections;
};

struct quota {
	size_t max_connections, max_per_user;
	size_t connections;
	struct quota_user *users; /* those with connections, in no order */
	size_t n_users, room;
};

/* 0; -EDQUOT (this user's limit, or everybody's); -ENOMEM. */
int quota_charge(struct quota *q, uint32_t uid);
void quota_release(struct quota *q, uint32_t uid);

/* Nothing may be charged any more. */
void quota_done(struct quota *q);

#endif
