// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts by user, by namespace and in total. Must not know the meaning of the counts. */
#include "daemon/broker/state/quota.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/macro.h"

/* ── accounts ───────────────────────────────────────────────────────────────────────────── */

static int compare(const struct quota_account *a, uint32_t uid, const char *ns)
{
	if (ns)
		return strcmp(a->ns, ns);
	return (a->uid > uid) - (a->uid < uid);
}

/* Index of the first account that is not before this namespace or, if that is NULL, this user. */
static size_t place_of(const struct quota_accounts *accounts, uint32_t uid, const char *ns)
{
	size_t low = 0, high = accounts->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&accounts->all[middle], uid, ns) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct quota_account *find(const struct quota_accounts *accounts, uint32_t uid,
				  const char *ns)
{
	size_t i = place_of(accounts, uid, ns);

	if (i == accounts->n || compare(&accounts->all[i], uid, ns) != 0)
		return NULL;
	return &accounts->all[i];
}

/* Finds or creates the account. */
static int have(struct quota_accounts *accounts, uint32_t uid, const char *ns,
		struct quota_account **ret)
{
	size_t i = place_of(accounts, uid, ns);
	struct quota_account *a;

	if (i < accounts->n && compare(&accounts->all[i], uid, ns) == 0) {
		*ret = &accounts->all[i];
		return 0;
	}
	if (accounts->n == accounts->room) {
		size_t room = accounts->room ? accounts->room * 2 : 16;

		a = reallocarray(accounts->all, room, sizeof(*a));
		if (!a)
			return -ENOMEM;
		accounts->all = a;
		accounts->room = room;
	}
	a = &accounts->all[i];
	memmove(a + 1, a, (accounts->n - i) * sizeof(*a));
	accounts->n++;
	*a = (struct quota_account){ .uid = uid };
	snprintf(a->ns, sizeof(a->ns), "%s", ns ? ns : "");
	*ret = a;
	return 0;
}

static void drop_if_empty(struct quota_accounts *accounts, struct quota_account *a)
{
	size_t i = a - accounts->all;

	for (enum quota_kind k = 0; k < QUOTA_KINDS; k++)
		if (a->used[k])
			return;
	assert(!a->held);
	if (a->limited)
		return;
	accounts->n--;
	memmove(a, a + 1, (accounts->n - i) * sizeof(*a));
}

const struct quota_account *quota_user(const struct quota *q, uint32_t uid)
{
	return find(&q->users, uid, NULL);
}

const struct quota_account *quota_namespace(const struct quota *q, const char *ns)
{
	return find(&q->namespaces, 0, ns);
}

/* ── limits ─────────────────────────────────────────────────────────────────────────────── */

uint64_t quota_max_of_user(const struct quota *q, enum quota_kind kind, uint32_t uid)
{
	return uid == 0 ? q->root.max[kind] : q->per_user.max[kind];
}

static uint64_t left(const struct quota_account *a, enum quota_kind kind, uint64_t max)
{
	uint64_t used = a ? a->used[kind] : 0;

	return used < max ? max - used : 0;
}

uint64_t quota_left(const struct quota *q, enum quota_kind kind, uint32_t uid)
{
	uint64_t user = left(quota_user(q, uid), kind, quota_max_of_user(q, kind, uid));

	return MIN(user, left(&q->sum, kind, q->total.max[kind]));
}

static bool has_own_limit(const struct quota *q, enum quota_kind kind, const char *ns)
{
	const struct quota_account *a = quota_namespace(q, ns);

	return a && a->limited && a->limits.max[kind] != QUOTA_UNLIMITED;
}

uint64_t quota_max_of_namespace(const struct quota *q, enum quota_kind kind, const char *ns)
{
	if (has_own_limit(q, kind, ns))
		return quota_namespace(q, ns)->limits.max[kind];
	return q->per_namespace.max[kind];
}

uint64_t quota_left_of_namespace(const struct quota *q, enum quota_kind kind, const char *ns)
{
	return left(quota_namespace(q, ns), kind, quota_max_of_namespace(q, kind, ns));
}

bool quota_has_room(const struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
		    uint64_t user_amount, uint64_t ns_amount)
{
	return user_amount <= left(quota_user(q, uid), kind, quota_max_of_user(q, kind, uid)) &&
	       ns_amount <= left(quota_namespace(q, ns), kind, quota_max_of_namespace(q, kind, ns));
}

int quota_limit(struct quota *q, const char *ns, const struct quota_limits *limits)
{
	struct quota_account *a = find(&q->namespaces, 0, ns);
	int r;

	if (!a && !limits)
		return 0;
	if (!a) {
		r = have(&q->namespaces, 0, ns, &a);
		if (r < 0)
			return r;
	}
	a->limited = limits != NULL;
	if (limits)
		a->limits = *limits;
	else
		drop_if_empty(&q->namespaces, a);
	return 0;
}

/* Whether the total limits root, too: a limit must not lock the administrator out. */
static bool binds_root(enum quota_kind kind)
{
	return kind != QUOTA_CONNECTIONS && kind != QUOTA_REQUESTS;
}

static int check(struct quota *q, struct quota_refusal wanted, const struct quota_account *a,
		 uint64_t max)
{
	wanted.used = a ? a->used[wanted.kind] : 0;
	wanted.max = max;
	if (wanted.used <= max && wanted.amount <= max - wanted.used)
		return 0;
	q->refused = wanted;
	return -EDQUOT;
}

static int check_all(struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
		     uint64_t amount)
{
	struct quota_refusal refusal = { .kind = kind, .uid = uid, .amount = amount };
	int r;

	if (uid == 0 && !binds_root(kind))
		return 0;
	snprintf(refusal.ns, sizeof(refusal.ns), "%s", ns ? ns : "");
	/* The total first: for root it is the only limit, on memory, events and copies. */
	refusal.scope = PP_LIMIT_TOTAL;
	r = check(q, refusal, &q->sum, q->total.max[kind]);
	if (r < 0)
		return r;
	refusal.scope = PP_LIMIT_USER;
	r = check(q, refusal, quota_user(q, uid), quota_max_of_user(q, kind, uid));
	if (r < 0 || !ns)
		return r;
	refusal.scope = PP_LIMIT_NAMESPACE;
	refusal.own = has_own_limit(q, kind, ns);
	return check(q, refusal, quota_namespace(q, ns), quota_max_of_namespace(q, kind, ns));
}

/* ── charging ───────────────────────────────────────────────────────────────────────────── */

int quota_take(struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns, uint64_t amount)
{
	struct quota_account *user, *in_ns = NULL;
	int r;

	if (amount == 0)
		return 0;
	r = have(&q->users, uid, NULL, &user);
	if (r < 0)
		return r;
	r = ns ? have(&q->namespaces, 0, ns, &in_ns) : 0;
	if (r < 0) {
		drop_if_empty(&q->users, user);
		return r;
	}
	user->used[kind] += amount;
	if (in_ns)
		in_ns->used[kind] += amount;
	q->sum.used[kind] += amount;
	return 0;
}

int quota_charge(struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
		 uint64_t amount)
{
	int r = check_all(q, kind, uid, ns, amount);

	return r < 0 ? r : quota_take(q, kind, uid, ns, amount);
}

void quota_release(struct quota *q, enum quota_kind kind, uint32_t uid, const char *ns,
		   uint64_t amount)
{
	struct quota_account *user, *namespace;

	if (amount == 0)
		return;
	user = find(&q->users, uid, NULL);
	namespace = ns ? find(&q->namespaces, 0, ns) : NULL;
	assert(user && user->used[kind] >= amount && q->sum.used[kind] >= amount);
	assert(!ns || (namespace && namespace->used[kind] >= amount));
	q->sum.used[kind] -= amount;
	user->used[kind] -= amount;
	drop_if_empty(&q->users, user);
	if (!namespace)
		return;
	namespace->used[kind] -= amount;
	drop_if_empty(&q->namespaces, namespace);
}

void quota_hold(struct quota *q, uint32_t uid, const char *ns, uint64_t amount)
{
	struct quota_account *user = find(&q->users, uid, NULL);
	struct quota_account *namespace = find(&q->namespaces, 0, ns);

	if (amount == 0)
		return;
	assert(user && namespace);
	assert(user->used[QUOTA_MEMORY] - user->held >= amount);
	assert(namespace->used[QUOTA_MEMORY] - namespace->held >= amount);
	q->sum.held += amount;
	user->held += amount;
	namespace->held += amount;
}

void quota_unhold(struct quota *q, uint32_t uid, const char *ns, uint64_t amount)
{
	struct quota_account *user = find(&q->users, uid, NULL);
	struct quota_account *namespace = find(&q->namespaces, 0, ns);

	if (amount == 0)
		return;
	assert(user && namespace && user->held >= amount && namespace->held >= amount);
	q->sum.held -= amount;
	user->held -= amount;
	namespace->held -= amount;
}

/* ── telling ────────────────────────────────────────────────────────────────────────────── */

static const struct {
	const char *what, *remedy, *total, *user, *namespace, *own;
} words[QUOTA_KINDS] = {
	[QUOTA_CONNECTIONS] = { "connections", "end some",
				"MaxConnections=", "MaxConnectionsPerUser=", "", "" },
	[QUOTA_REQUESTS] = { "unanswered requests", "wait for some",
			     "MaxRequestsPerUser=", "MaxRequestsPerUser=", "", "" },
	[QUOTA_EVENTS] = { "events", "delete some", "MaxEvents=", "MaxEventsPerUser=",
			   "MaxEventsPerNamespace=", "MaxEvents=" },
	[QUOTA_MEMORY] = { "of memory for rings",
			   "ask for smaller ones or fewer CPUs, delete "
			   "events, close those that are open and deleted",
			   "MaxMemory=", "MaxMemoryPerUser=", "MaxMemoryPerNamespace=",
			   "MaxMemory=" },
	[QUOTA_COPIES] = { "of copies of rings", "close some", "MaxCopies=", "MaxCopies=", "", "" },
	[QUOTA_PROGRAMS] = { "programs that record", "delete events",
			     "MaxPrograms=", "MaxProgramsPerUser=", "", "" },
	[QUOTA_SAMPLES] = { "samples a second", "sample less often (-F, -c), delete events",
			    "MaxSampleRatePerUser=", "MaxSampleRatePerUser=", "", "" },
};

/* 12 or, for bytes, 12.5 MiB. */
static void format_amount(enum quota_kind kind, uint64_t amount, char *buf, size_t size)
{
	static const char units[] = "KMGTPE";
	uint64_t scale = 1024;
	size_t i = 0;

	if (kind != QUOTA_MEMORY && kind != QUOTA_COPIES) {
		snprintf(buf, size, "%" PRIu64, amount);
		return;
	}
	for (; i < sizeof(units) - 2 && amount / scale >= 1024; i++)
		scale *= 1024;
	snprintf(buf, size, "%.4g %ciB", (double)amount / scale, units[i]);
}

void quota_sentence(const struct quota *q, char *buf, size_t size)
{
	const struct quota_refusal *refusal = &q->refused;
	char who[PP_NAME_SIZE + 32], key[PP_NAME_SIZE + 64], used[32], max[32], amount[32];

	snprintf(who, sizeof(who), "This daemon");
	snprintf(key, sizeof(key), "%s", words[refusal->kind].total);
	if (refusal->scope == PP_LIMIT_USER) {
		snprintf(who, sizeof(who), "User %u", refusal->uid);
		snprintf(key, sizeof(key), "%s", words[refusal->kind].user);
	} else if (refusal->scope == PP_LIMIT_NAMESPACE) {
		snprintf(who, sizeof(who), "The namespace %s", refusal->ns);
		snprintf(key, sizeof(key), "%s", words[refusal->kind].namespace);
	}
	if (refusal->own)
		snprintf(key, sizeof(key), "the %s of its section", words[refusal->kind].own);
	format_amount(refusal->kind, refusal->used, used, sizeof(used));
	format_amount(refusal->kind, refusal->max, max, sizeof(max));
	format_amount(refusal->kind, refusal->amount, amount, sizeof(amount));
	snprintf(buf, size,
		 "%s has %s %s, and %s more would be over the limit of %s; %s, or have %s raised.",
		 who, used, words[refusal->kind].what, amount, max, words[refusal->kind].remedy,
		 key);
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

void quota_init(struct quota *q)
{
	*q = (struct quota){ 0 };
	for (enum quota_kind k = 0; k < QUOTA_KINDS; k++)
		q->total.max[k] = q->per_namespace.max[k] = q->per_user.max[k] = q->root.max[k] =
			QUOTA_UNLIMITED;
	q->on_tracepoint_of_user = q->on_tracepoint = QUOTA_UNLIMITED;
}

void quota_done(struct quota *q)
{
	for (enum quota_kind k = 0; k < QUOTA_KINDS; k++)
		assert(q->sum.used[k] == 0);
	assert(q->sum.held == 0 && q->users.n == 0);
	free(q->users.all);
	free(q->namespaces.all); /* namespaces with limits of their own remain, without charges */
	*q = (struct quota){ 0 };
}
