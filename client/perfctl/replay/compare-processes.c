// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Processes that began, from sideband. One counts under the name that it has at its end (or the end
 * of the records): a shell that forks has no other name for what it is about to run.
 */
#include "client/perfctl/replay/compare-records-parts.h"

static int new_birth(struct compare_records *r, uint32_t *ret)
{
	if (r->free_birth) {
		*ret = r->free_birth - 1;
		r->free_birth = r->births[*ret].parent;
		return 0;
	}
	if (!GROW(r->births, r->n_births))
		return -ENOMEM;
	*ret = (uint32_t)r->n_births++;
	return 0;
}

static int begin(struct compare_records *r, const struct trace_record *record)
{
	uint32_t parent, i;
	int failed = compare_command(r, record->ppid, record->ppid, "?", &parent);

	if (failed)
		return MIN(failed, 0);
	if (new_birth(r, &i) < 0)
		return -ENOMEM;
	r->births[i] = (struct compare_birth){ record->pid, parent, record->time };
	return keytable_set(&r->birth_of, record->pid, i);
}

static int count(struct compare_records *r, struct compare_birth *b)
{
	struct compare_birth ended = *b;
	struct compare_item *item;
	uint32_t comm;
	int failed = compare_command(r, b->pid, b->pid, "?", &comm);

	b->pid = 0;
	b->parent = r->free_birth;
	r->free_birth = (uint32_t)(b - r->births) + 1;
	if (failed)
		return MIN(failed, 0);
	failed = compare_find(r->c, COMPARE_BEGUN, COMPARE_NO_NAME, comm, r->first, &item);
	if (failed >= 0)
		failed = compare_count(r->c, item, ended.time, 1, 0);
	return failed ?: keytable_set(&r->parents, comm, ended.parent);
}

static int end(struct compare_records *r, uint32_t pid)
{
	int64_t i = keytable_get(&r->birth_of, pid);

	return i >= 0 && r->births[i].pid == pid ? count(r, &r->births[i]) : 0;
}

int compare_processes_add(struct compare_records *r, const struct trace_record *record)
{
	/* Before the first sample, sideband describes what was there already. No process has the pid 0,
	 * which is that of a free birth. */
	if (!r->first || !record->pid || record->pid != record->tid)
		return 0;
	if (record->kind == TRACE_FORK && record->pid != record->ppid &&
	    selection_wants_whose(r->chosen, record->pid, record->tid))
		return end(r, record->pid) ?: begin(r, record);
	return record->kind == TRACE_EXIT ? end(r, record->pid) : 0;
}

int compare_processes_finish(struct compare_records *r)
{
	int failed = 0;

	for (size_t i = 0; i < r->n_births && failed >= 0; i++)
		if (r->births[i].pid)
			failed = count(r, &r->births[i]);
	return failed;
}
