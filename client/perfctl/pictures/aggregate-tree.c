// SPDX-License-Identifier: LGPL-2.1-or-later
/* The trees of call chains: each function, process name and node is stored once. */
#include <string.h>

#include "client/perfctl/pictures/aggregate-parts.h"

const char *keep_comm(struct aggregate_parts *p, const char *comm)
{
	size_t len = strlen(comm);
	uint32_t hash = hash_bytes(comm, len), i;
	char **comms, *copy;

	for (size_t pos = hash; hash_next(&p->comm_hash, hash, &pos, &i);)
		if (!strcmp(p->comms[i], comm))
			return p->comms[i];

	comms = grow(p->comms, p->n_comms, &p->cap_comms, sizeof(*comms));
	if (!comms)
		return NULL;
	p->comms = comms;
	copy = strdup(comm);
	if (!copy || hash_add(&p->comm_hash, hash, (uint32_t)p->n_comms) < 0) {
		free(copy);
		return NULL;
	}
	return p->comms[p->n_comms++] = copy;
}

/* All nameless addresses of a file are one function: otherwise a file could make any number. */
static bool is_unknown(const struct symbol *s)
{
	return !strcmp(s->name, "[unknown]");
}

static bool same_frame(const struct frame *f, const struct symbols_frame *s, uint64_t start)
{
	return f->file == s->symbol.dso && f->start == start && f->kernel == s->kernel &&
	       !strcmp(f->symbol, s->symbol.name);
}

static const struct frame *keep_frame(struct aggregate_parts *p, const struct symbols_frame *s)
{
	struct aggregate *a = &p->a;
	uint64_t start = is_unknown(&s->symbol) ? 0 : s->symbol.start;
	uint32_t hash = hash_numbers((uintptr_t)s->symbol.dso, start << 1 | s->kernel), i;
	struct frame **frames, *f;

	for (size_t pos = hash; hash_next(&p->frame_hash, hash, &pos, &i);)
		if (same_frame(a->frames[i], s, start))
			return a->frames[i];

	frames = grow(a->frames, a->n_frames, &p->cap_frames, sizeof(*frames));
	if (!frames)
		return NULL;
	a->frames = frames;
	f = calloc(1, sizeof(*f));
	if (!f || hash_add(&p->frame_hash, hash, (uint32_t)a->n_frames) < 0) {
		free(f);
		return NULL;
	}
	*f = (struct frame){
		.index = (uint32_t)a->n_frames,
		.symbol = s->symbol.name,
		.dso = s->symbol.dso ? s->symbol.dso->name : "[unknown]",
		.file = s->symbol.dso,
		.start = start,
		.kernel = s->kernel,
	};
	return a->frames[a->n_frames++] = f;
}

static struct flame_node *new_node(struct aggregate_parts *p)
{
	struct aggregate *a = &p->a;
	struct flame_node **nodes, *node;

	nodes = grow(a->nodes, a->n_nodes, &p->cap_nodes, sizeof(*nodes));
	if (!nodes)
		return NULL;
	a->nodes = nodes;
	node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->index = (uint32_t)a->n_nodes;
	return a->nodes[a->n_nodes++] = node;
}

/* The child of parent that is like it; makes a new one. NULL: no memory. */
static struct flame_node *child(struct aggregate_parts *p, struct flame_node *parent,
				const struct flame_node *like)
{
	const void *what = like->frame ? (const void *)like->frame : like->comm;
	uint32_t hash = hash_numbers(parent->index,
				     (uintptr_t)what ^ (like->pid * 31ULL + like->tid)),
		 i;
	struct flame_node *node;

	for (size_t pos = hash; hash_next(&p->node_hash, hash, &pos, &i);) {
		node = p->a.nodes[i];
		if (node->parent == parent && node->comm == like->comm &&
		    node->frame == like->frame && node->pid == like->pid && node->tid == like->tid)
			return node;
	}
	node = new_node(p);
	if (!node || hash_add(&p->node_hash, hash, node->index) < 0)
		return NULL;
	node->comm = like->comm;
	node->frame = like->frame;
	node->pid = like->pid;
	node->tid = like->tid;
	node->parent = parent;
	node->next = parent->children;
	parent->children = node;
	return node;
}

int tree_root(struct aggregate_parts *p, struct flame_node **ret)
{
	*ret = new_node(p);
	return *ret ? 0 : -ENOMEM;
}

int tree_place(struct aggregate_parts *p, struct event_sum *e, const struct trace_record *r,
	       struct flame_node **ret)
{
	struct symbols_frame frames[CHAIN_MAX];
	struct flame_node *node, who = {
		.comm = keep_comm(p, r->comm),
		.pid = p->by_pid ? r->pid : 0,
		.tid = p->by_tid ? r->tid : 0,
	};
	size_t n = 0;

	if (!who.comm)
		return -ENOMEM;
	if (p->symbols)
		n = symbols_chain(p->symbols, trace_processes(p->trace), r, frames, p->max_stack);
	if (n > 1)
		e->has_chains = true;
	node = child(p, e->root, &who);
	while (node && n > 0) {
		const struct frame *f = keep_frame(p, &frames[--n]);

		node = f ? child(p, node, &(struct flame_node){ .frame = f }) : NULL;
	}
	if (!node)
		return -ENOMEM;
	*ret = node;
	return 0;
}

const struct flame_node *flame_next(const struct flame_node *node)
{
	if (node->children)
		return node->children;
	while (node && !node->next)
		node = node->parent;
	return node ? node->next : NULL;
}

void tree_totals(struct aggregate *a)
{
	for (size_t i = 0; i < a->n_nodes; i++)
		a->nodes[i]->total = a->nodes[i]->self;
	/* Parents precede their children. */
	for (size_t i = a->n_nodes; i-- > 0;) {
		const struct flame_node *node = a->nodes[i];

		if (node->parent) {
			node->parent->total.samples += node->total.samples;
			node->parent->total.period += node->total.period;
		}
	}
}

void tree_done(struct aggregate_parts *p)
{
	struct aggregate *a = &p->a;

	for (size_t i = 0; i < a->n_nodes; i++)
		free(a->nodes[i]);
	for (size_t i = 0; i < a->n_frames; i++)
		free(a->frames[i]);
	for (size_t i = 0; i < p->n_comms; i++)
		free(p->comms[i]);
	free(a->nodes);
	free(a->frames);
	free(p->comms);
	hash_done(&p->node_hash);
	hash_done(&p->frame_hash);
	hash_done(&p->comm_hash);
}
