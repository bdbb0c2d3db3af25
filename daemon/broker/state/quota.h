/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The quota: what is charged to whom, and how much may be. Each thing that a user can make the
 * daemon or the kernel hold is charged before it is spent: to the user, to the namespace it
 * belongs to, and to the total. Numbers only: what they stand for, others know.
 *
 * Root is counted like anybody, and never refused a connection or a request; memory, events and
 * copies it is refused as others are, by the total.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/protocol.h"

enum quota_kind {
	QUOTA_CONNECTIONS,
	QUOTA_REQUESTS, /* not yet answered */
	QUOTA_EVENTS,
	QUOTA_MEMORY,	/* bytes of rings and catalogs */
	QUOTA_COPIES,	/* bytes of copies of rings */
	QUOTA_PROGRAMS, /* that record: one for each source of an event */
	QUOTA_SAMPLES,	/* a second and CPU, of events that sample by the clock */
	QUOTA_KINDS,
};

#define QUOTA_UNLIMITED UINT64_MAX

struct quota_limits {
	uint64_t max[QUOTA_KINDS];
};

/* What one user, one namespace, or all together have. */
struct quota_account {
	uint64_t used[QUOTA_KINDS];
	uint64_t held;		    /* of the memory: rings that belong to no event any more */
	uint32_t uid;		    /* of a user */
	char ns[PP_NAME_SIZE];	    /* of a namespace */
	bool limited;		    /* a namespace with limits of its own: is kept at zero, too */
	struct quota_limits limits; /* of such a one */
};

/* Sorted, those with charges or limits of their own. */
struct quota_accounts {
	struct quota_account *all;
	size_t n, room;
};

/* The charge that was refused last. */
struct quota_refusal {
	enum quota_kind kind;
	enum pp_limit_scope scope;
	uint32_t uid;
	char ns[PP_NAME_SIZE];
	uint64_t used, max, amount;
	bool own; /* the limit is the namespace's own */
};

/* Empty: all zeroes, and then limits; see quota_init. */
struct quota {
	struct quota_limits total, per_namespace, per_user, root;
	struct quota_account sum;
	struct quota_accounts users, namespaces;
	struct quota_refusal refused;
	/* Programs on one tracepoint, which are the engine's to count: of a user, and of all before
	 * a user is refused; root is not. */
	uint64_t on_tracepoint_of_user, on_tracepoint;
};

/* Empty, and without any limit. */
void quota_init(struct quota *q);

/* Nothing may be charged any more. */
void quota_done(struct quota *q);

/*
 * Charges so much of it to uid, to ns (NULL: to none) and to the total, or nothing at all.
 * 0; -EDQUOT (quota_sentence says which limit it was); -ENOMEM.
 */
int quota_charge(struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
		 uint64_t amount);

/* The same for what is there already, over any limit. 0; -ENOMEM (never where the account has
 * something). */
int quota_take(struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
	       uint64_t amount);

void quota_release(struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
		   uint64_t amount);

/* So much of the memory that is charged belongs to no event any more, or to one again. */
void quota_hold(struct quota *q, uint32_t uid, const char *ns, uint64_t amount);
void quota_unhold(struct quota *q, uint32_t uid, const char *ns, uint64_t amount);

/*
 * Limits of its own for a namespace, which last until they are taken back (limits NULL).
 * QUOTA_UNLIMITED in them: as per_namespace says. 0; -ENOMEM.
 */
int quota_limit(struct quota *q, const char *ns, const struct quota_limits *limits);

/* What there may be of it. */
uint64_t quota_max_of_user(const struct quota *q, enum quota_kind kind, uint32_t uid);
uint64_t quota_max_of_namespace(const struct quota *q, enum quota_kind kind, const char *ns);

/* Whether so much more of it is within the limits of this user and this namespace, whatever that of
 * all is. */
bool quota_has_room(const struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
		    uint64_t user_amount, uint64_t ns_amount);

/* How much more of it may be charged to this user now. */
uint64_t quota_left(const struct quota *q, enum quota_kind kind, uint32_t uid);

/* An account that has something; NULL: nothing is charged there. */
const struct quota_account *quota_user(const struct quota *q, uint32_t uid);
const struct quota_account *quota_namespace(const struct quota *q, const char *ns);

/* One sentence about the charge that was refused last. */
void quota_sentence(const struct quota *q, char *buf, size_t size);
