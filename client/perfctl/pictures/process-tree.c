// SPDX-License-Identifier: LGPL-2.1-or-later
/* Groups processes by their name and their parent's group. */
#include "client/perfctl/pictures/process-tree.h"

#include <string.h>

#include "client/perfctl/pictures/hash.h"
#include "proto/macro.h"

#define DEPTH_MAX 64 /* so a file cannot make a circle */

struct building {
	const struct aggregate *a;
	struct process_tree t;
	struct keytable sums; /* by pid: processes with records */
	struct hash by_name;  /* groups by parent and comm */
};

static int group_of(struct building *b, size_t parent, uint32_t pid, const char *comm, size_t *ret)
{
	uint32_t hash = hash_numbers(parent, hash_bytes(comm, strlen(comm))), i;
	struct process_group *groups = b->t.groups;

	for (size_t pos = hash; hash_next(&b->by_name, hash, &pos, &i);)
		if (groups[i].parent == parent && !strcmp(groups[i].comm, comm)) {
			*ret = i;
			return 0;
		}
	if (!GROW(b->t.groups, b->t.n) || hash_add(&b->by_name, hash, (uint32_t)b->t.n) < 0)
		return -ENOMEM;
	b->t.groups[b->t.n] = (struct process_group){
		.comm = comm,
		.parent = parent,
		.pid = pid,
		.depth = parent == PROCESS_NO_PARENT ? 0 : b->t.groups[parent].depth + 1,
	};
	*ret = b->t.n++;
	return 0;
}

/* One name for a process, whether it is placed for itself or for its children. */
static const char *name_of(const struct building *b, uint32_t pid)
{
	int64_t i = keytable_get(&b->sums, pid);
	const char *comm = i < 0 ? "?" : b->a->processes[i].comm;
	const struct lineage *l = strcmp(comm, "?") ? NULL : aggregate_lineage(b->a, pid);

	return l && l->comm ? l->comm : comm;
}

/* The process's group; all of its parents get theirs first. */
static int place(struct building *b, uint32_t pid, size_t *ret)
{
	uint32_t path[DEPTH_MAX];
	size_t n = 0, group = PROCESS_NO_PARENT;
	int r = 0;

	for (uint32_t at = pid; n < DEPTH_MAX;) {
		int64_t known = keytable_get(&b->t.by_pid, at);
		const struct lineage *l = aggregate_lineage(b->a, at);

		if (known >= 0) {
			group = (size_t)known;
			break;
		}
		path[n++] = at;
		if (!l || !l->ppid)
			break;
		at = l->ppid;
	}
	while (n-- > 0 && r >= 0) {
		r = group_of(b, group, path[n], name_of(b, path[n]), &group);
		if (r >= 0 && keytable_get(&b->t.by_pid, path[n]) < 0) {
			r = keytable_set(&b->t.by_pid, path[n], (uint32_t)group);
			b->t.groups[group].n++;
		}
	}
	*ret = group;
	return r;
}

static int add_process(struct building *b, const struct process_sum *s)
{
	struct process_group *g;
	size_t i;

	if (place(b, s->pid, &i) < 0)
		return -ENOMEM;
	g = &b->t.groups[i];
	g->samples += s->samples;
	g->about += s->about;
	g->run += s->run;
	g->switches += s->switches;
	if (s->n_words > g->n_words) {
		uint64_t *cpus = reallocarray(g->cpus, s->n_words, sizeof(*cpus));

		if (!cpus)
			return -ENOMEM;
		memset(cpus + g->n_words, 0, (s->n_words - g->n_words) * sizeof(*cpus));
		g->cpus = cpus;
		g->n_words = s->n_words;
	}
	for (size_t w = 0; w < s->n_words; w++)
		g->cpus[w] |= s->cpus[w];
	return 0;
}

/* ── Order ── */

/* Parents were made before their children. */
static void sum_up(struct process_tree *t)
{
	for (size_t i = t->n; i-- > 0;) {
		struct process_group *g = &t->groups[i];

		g->all_samples += g->samples;
		g->all_about += g->about;
		g->all_run += g->run;
		if (g->parent == PROCESS_NO_PARENT)
			continue;
		t->groups[g->parent].all_samples += g->all_samples;
		t->groups[g->parent].all_about += g->all_about;
		t->groups[g->parent].all_run += g->all_run;
	}
}

static int heaviest_first(const void *left, const void *right, void *arg)
{
	const struct process_group *groups = arg;
	size_t i = *(const size_t *)left, k = *(const size_t *)right;
	const struct process_group *l = &groups[i], *r = &groups[k];

	if (l->all_run != r->all_run)
		return l->all_run > r->all_run ? -1 : 1;
	if (l->all_samples != r->all_samples)
		return l->all_samples > r->all_samples ? -1 : 1;
	if (l->all_about != r->all_about)
		return l->all_about > r->all_about ? -1 : 1;
	return i < k ? -1 : i > k; /* parents before their only child */
}

/* The children of each group in a list, in the order of `by_weight`. */
struct links {
	size_t first, last, next;
};

static void link_all(const struct process_tree *t, const size_t *by_weight, struct links *links)
{
	for (size_t i = 0; i <= t->n; i++)
		links[i] = (struct links){ t->n, t->n, t->n };
	for (size_t k = 0; k < t->n; k++) {
		size_t i = by_weight[k], parent = t->groups[i].parent;
		struct links *of = &links[parent == PROCESS_NO_PARENT ? t->n : parent];

		if (of->first == t->n)
			of->first = i;
		else
			links[of->last].next = i;
		of->last = i;
	}
}

/* Depth first; the old index of each group. */
static void walk(const struct process_tree *t, const struct links *links, size_t *order)
{
	size_t at = links[t->n].first;

	for (size_t n = 0; n < t->n;) {
		order[n++] = at;
		if (links[at].first < t->n) {
			at = links[at].first;
			continue;
		}
		while (at < t->n && links[at].next == t->n)
			at = MIN(t->groups[at].parent, t->n);
		if (at < t->n)
			at = links[at].next;
	}
}

static void reorder(struct process_tree *t, const size_t *order, struct process_group *groups)
{
	for (size_t n = 0; n < t->n; n++) {
		groups[n] = t->groups[order[n]];
		t->places[order[n]] = n;
	}
	for (size_t n = 0; n < t->n; n++)
		if (groups[n].parent != PROCESS_NO_PARENT)
			groups[n].parent = t->places[groups[n].parent];
}

static int sort_tree(struct process_tree *t, size_t top)
{
	_cleanup_free_ struct process_group *groups = calloc(t->n + 1, sizeof(*groups));
	_cleanup_free_ size_t *by_weight = calloc(t->n + 1, sizeof(*by_weight));
	_cleanup_free_ size_t *order = calloc(t->n + 1, sizeof(*order));
	_cleanup_free_ struct links *links = calloc(t->n + 1, sizeof(*links));

	t->places = calloc(t->n + 1, sizeof(*t->places));
	if (!groups || !by_weight || !order || !links || !t->places)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		by_weight[i] = i;
	qsort_r(by_weight, t->n, sizeof(*by_weight), heaviest_first, t->groups);
	/* A group has no more than its parent, and comes after it. */
	for (size_t i = 0; i < MIN(top, t->n); i++)
		t->groups[by_weight[i]].shown = true;
	link_all(t, by_weight, links);
	walk(t, links, order);
	reorder(t, order, groups);
	free(t->groups);
	t->groups = TAKE_PTR(groups);
	return 0;
}

int process_tree_new(const struct aggregate *a, size_t top, struct process_tree *ret)
{
	struct building b = { .a = a };
	int r = 0;

	for (size_t i = 0; i < a->n_processes && r >= 0; i++)
		r = keytable_set(&b.sums, a->processes[i].pid, (uint32_t)i);
	for (size_t i = 0; i < a->n_processes && r >= 0; i++)
		r = add_process(&b, &a->processes[i]);
	keytable_done(&b.sums);
	hash_done(&b.by_name);
	sum_up(&b.t);
	if (r >= 0)
		r = sort_tree(&b.t, top);
	if (r < 0)
		process_tree_done(&b.t);
	else
		*ret = b.t;
	return r;
}

void process_tree_done(struct process_tree *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->groups[i].cpus);
	free(t->groups);
	free(t->places);
	keytable_done(&t->by_pid);
	*t = (struct process_tree){};
}

size_t process_tree_group(const struct process_tree *t, uint32_t pid)
{
	int64_t i = keytable_get(&t->by_pid, pid);

	return i < 0 ? PROCESS_NO_PARENT : t->places[i];
}
