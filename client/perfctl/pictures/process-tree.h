/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The processes of an aggregate as a tree, children below their parents, in which processes of one
 * name and one parent are one group: thousands of short programs of a loop are one line. Parents
 * without records of their own are in it, because of their children.
 */
#pragma once

#include "client/perfctl/pictures/aggregate.h"
#include "client/perfctl/trace/process-table.h"

#define PROCESS_NO_PARENT SIZE_MAX

struct process_group {
	const char *comm;
	size_t parent; /* index; PROCESS_NO_PARENT: at the top, or the parent is not known */
	unsigned depth;
	uint32_t pid; /* of one of them; UINT32_MAX: of tasks that had exited */
	uint64_t n;   /* processes */
	uint64_t samples, about, run, switches;
	uint64_t all_samples, all_about, all_run; /* with all groups below */
	uint64_t *cpus;				  /* one bit for each CPU with samples */
	size_t n_words;				  /* of cpus */
	bool shown;				  /* among the heaviest */
};

struct process_tree {
	struct process_group *groups; /* by the tree's order: parents before children, the heaviest
				       * first */
	size_t n;
	struct keytable by_pid; /* before the groups were put in order */
	size_t *places;		/* where each is since */
};

/* top: so many of the heaviest groups, by what they have with all below, are marked as shown; then so
 * are their parents. a: finished. -ENOMEM. */
int process_tree_new(const struct aggregate *a, size_t top, struct process_tree *ret);
void process_tree_done(struct process_tree *t);

/* The index of a process's group; PROCESS_NO_PARENT: it has none. */
size_t process_tree_group(const struct process_tree *t, uint32_t pid);
