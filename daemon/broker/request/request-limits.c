// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * LIMITS: the charges, one line each, a page at a time: the total, then the namespaces that the
 * peer may read, then its user, or for root all users.
 */
#include <string.h>

#include "daemon/broker/request/request-internal.h"
#include "proto/macro.h"

/* The page being filled. */
struct page {
	struct request *request;
	struct pp_msg_limits_reply *reply;
	uint32_t skip; /* lines before the page */
};

/* The next line, or NULL: the line is outside the page. */
static struct pp_msg_limit *next_line(struct page *p)
{
	struct pp_msg_limit *line;

	if (p->skip > 0) {
		p->skip--;
		return NULL;
	}
	if (p->reply->count == PP_LIMITS_MAX) {
		p->reply->more = 1;
		return NULL;
	}
	line = &p->reply->limits[p->reply->count++];
	*line = (struct pp_msg_limit){ 0 };
	return line;
}

static void fill_used(struct pp_msg_limit *line, const struct quota_account *a)
{
	if (!a)
		return;
	line->memory = a->used[QUOTA_MEMORY];
	line->held = a->held;
	line->events = a->used[QUOTA_EVENTS];
	line->connections = a->used[QUOTA_CONNECTIONS];
	line->requests = a->used[QUOTA_REQUESTS];
	line->copies = a->used[QUOTA_COPIES];
	line->programs = a->used[QUOTA_PROGRAMS];
	line->sample_rate = a->used[QUOTA_SAMPLES];
}

static void fill_max(struct pp_msg_limit *line, const uint64_t *max)
{
	line->max_memory = max[QUOTA_MEMORY];
	line->max_events = max[QUOTA_EVENTS];
	line->max_connections = max[QUOTA_CONNECTIONS];
	line->max_requests = max[QUOTA_REQUESTS];
	line->max_copies = max[QUOTA_COPIES];
	line->max_programs = max[QUOTA_PROGRAMS];
	line->max_on_tracepoint = UINT64_MAX;
	line->max_sample_rate = max[QUOTA_SAMPLES];
}

static void put_total(struct page *p, const struct quota *q)
{
	struct pp_msg_limit *line = next_line(p);

	if (!line)
		return;
	line->scope = PP_LIMIT_TOTAL;
	fill_used(line, &q->sum);
	fill_max(line, q->total.max);
	line->max_on_tracepoint = q->on_tracepoint;
}

static void put_namespace(struct page *p, const struct quota *q, const char *ns)
{
	struct pp_msg_limit *line = next_line(p);
	uint64_t max[QUOTA_KINDS];

	if (!line)
		return;
	for (enum quota_kind k = 0; k < QUOTA_KINDS; k++)
		max[k] = quota_max_of_namespace(q, k, ns);
	line->scope = PP_LIMIT_NAMESPACE;
	memcpy(line->ns, ns, sizeof(line->ns));
	fill_used(line, quota_namespace(q, ns));
	fill_max(line, max);
}

static void put_user(struct page *p, const struct quota *q, uint32_t uid)
{
	struct pp_msg_limit *line = next_line(p);
	uint64_t max[QUOTA_KINDS];

	if (!line)
		return;
	for (enum quota_kind k = 0; k < QUOTA_KINDS; k++)
		max[k] = quota_max_of_user(q, k, uid);
	line->scope = PP_LIMIT_USER;
	line->uid = uid;
	fill_used(line, quota_user(q, uid));
	fill_max(line, max);
	if (uid != 0)
		line->max_on_tracepoint = q->on_tracepoint_of_user;
}

/* Includes namespaces with nothing but orphan rings: only root may read those. */
static void put_namespaces(struct page *p, const struct quota *q)
{
	const struct registry *r = &p->request->service->lifecycle->registry;
	const struct credentials *c = peer_credentials(p->request->peer);

	for (size_t i = 0; i < r->n_namespaces; i++)
		if (policy_allows(c, r->namespaces[i], PP_RIGHT_R))
			put_namespace(p, q, r->namespaces[i]->name);
	if (c->uid != 0)
		return;
	for (size_t i = 0; i < q->namespaces.n; i++)
		if (!registry_namespace(r, q->namespaces.all[i].ns))
			put_namespace(p, q, q->namespaces.all[i].ns);
}

void request_limits(struct request *r, const struct pp_msg_limits_request *request)
{
	const struct quota *q = r->service->lifecycle->charges.quota;
	const struct credentials *c = peer_credentials(r->peer);
	struct page p = {
		.request = r,
		.reply = &r->service->reply.limits_reply,
		.skip = request->first,
	};

	if (!request_is_synced(r))
		return;
	if (request->reserved) {
		refuse(r, EINVAL,
		       "The request has fields that this version does not know; use a "
		       "client of the same version.");
		return;
	}
	p.reply->count = p.reply->more = 0;
	put_total(&p, q);
	put_namespaces(&p, q);
	for (size_t i = 0; c->uid == 0 && i < q->users.n; i++)
		put_user(&p, q, q->users.all[i].uid);
	if (c->uid != 0)
		put_user(&p, q, c->uid);
	peer_reply(r->peer, r->header, p.reply, NULL, 0);
}
