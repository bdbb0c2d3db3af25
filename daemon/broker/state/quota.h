/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The quota: charges and their limits. Each thing that a user can make the daemon or the kernel
 * hold is charged in advance: to the user, to its namespace, and to the total. This file only knows
 * numbers; others know their meaning.
 *
 * Root is exempt from connection and request limits; the total's limits on memory, events and
 * copies still apply.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/protocol.h"

enum quota_kind {
	QUOTA_CONNECTIONS,
	QUOTA_REQUESTS, /* unanswered requests */
	QUOTA_EVENTS,
	QUOTA_MEMORY,	/* bytes of rings and catalogs */
	QUOTA_COPIES,	/* bytes of copies of rings */
	QUOTA_PROGRAMS, /* that record: one for each source of an event */
	QUOTA_SAMPLES,	/* per second and CPU, of events that sample by the clock */
	QUOTA_KINDS,
};

#define QUOTA_UNLIMITED UINT64_MAX

struct quota_limits {
	uint64_t max[QUOTA_KINDS];
};

/* The charges of one user, of one namespace, or of all together. */
struct quota_account {
	uint64_t used[QUOTA_KINDS];
	uint64_t held;	       /* part of the memory: orphan rings */
	uint32_t uid;	       /* for a user's account */
	char ns[PP_NAME_SIZE]; /* for a namespace's account */
	bool limited;	       /* a namespace with limits of its own: also kept without charges */
	struct quota_limits limits; /* if limited */
};

/* Sorted; accounts with charges or with limits of their own. */
struct quota_accounts {
	struct quota_account *all;
	size_t n, room;
};

/* The last refused charge. */
struct quota_refusal {
	enum quota_kind kind;
	enum pp_limit_scope scope;
	uint32_t uid;
	char ns[PP_NAME_SIZE];
	uint64_t used, max, amount;
	bool own; /* the limit is set for this namespace */
};

/* Empty: all zeroes, then quota_init sets the limits. */
struct quota {
	struct quota_limits total, per_namespace, per_user, root;
	struct quota_account sum;
	struct quota_accounts users, namespaces;
	struct quota_refusal refused;
	/* Limits on programs on one tracepoint, which the engine counts: for a user, and for all
	 * users together. Root is exempt. */
	uint64_t on_tracepoint_of_user, on_tracepoint;
};

/* Empty, and without any limit. */
void quota_init(struct quota *q);

/* Nothing may be charged after this. */
void quota_done(struct quota *q);

/*
 * Charges the amount to uid, to ns (NULL: none) and to the total, or nothing at all. 0; -EDQUOT
 * (quota_sentence explains the limit); -ENOMEM.
 */
int quota_charge(struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
		 uint64_t amount);

/* The same regardless of limits, for what exists already. 0; -ENOMEM (never if the account has
 * charges). */
int quota_take(struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
	       uint64_t amount);

void quota_release(struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
		   uint64_t amount);

/* Marks charged memory as orphan rings, or as an event's again. */
void quota_hold(struct quota *q, uint32_t uid, const char *ns, uint64_t amount);
void quota_unhold(struct quota *q, uint32_t uid, const char *ns, uint64_t amount);

/*
 * Sets a namespace's own limits, until limits NULL removes them. QUOTA_UNLIMITED in them:
 * per_namespace applies. 0; -ENOMEM.
 */
int quota_limit(struct quota *q, const char *ns, const struct quota_limits *limits);

uint64_t quota_max_of_user(const struct quota *q, enum quota_kind kind, uint32_t uid);
uint64_t quota_max_of_namespace(const struct quota *q, enum quota_kind kind, const char *ns);

/* What a namespace's limit leaves, regardless of the total. */
uint64_t quota_left_of_namespace(const struct quota *q, enum quota_kind kind, const char *ns);

/* Whether the limits of this user and this namespace permit the amount, regardless of the total. */
bool quota_has_room(const struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
		    uint64_t user_amount, uint64_t ns_amount);

/* The amount that may still be charged to this user. */
uint64_t quota_left(const struct quota *q, enum quota_kind kind, uint32_t uid);

/* An account with charges; NULL: it has none. */
const struct quota_account *quota_user(const struct quota *q, uint32_t uid);
const struct quota_account *quota_namespace(const struct quota *q, const char *ns);

/* One sentence about the last refused charge. */
void quota_sentence(const struct quota *q, char *buf, size_t size);
