// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "client/perfctl/pictures/html-tables.h"
#include "proto/macro.h"

/* Makes room for one more item of `size` bytes. */
static int room(void **items, size_t n, size_t *cap, size_t size)
{
	size_t more = *cap ? *cap * 2 : 64;
	void *grown;

	if (n < *cap)
		return 0;
	grown = reallocarray(*items, more, size);
	if (!grown)
		return -ENOMEM;
	*items = grown;
	*cap = more;
	return 0;
}

const char *texts_at(const struct texts *t, size_t i, size_t *ret_size)
{
	size_t start = i ? t->ends[i - 1] + 1 : 0;

	*ret_size = t->ends[i] - start;
	return (const char *)t->bytes.data + start;
}

int texts_number(struct texts *t, const char *text, size_t n, uint32_t *ret)
{
	uint32_t hash = hash_bytes(text, n), i;
	size_t pos = hash;

	while (hash_next(&t->hash, hash, &pos, &i)) {
		size_t size;
		const char *known = texts_at(t, i, &size);

		if (size == n && !memcmp(known, text, n)) {
			*ret = i;
			return 0;
		}
	}
	if (t->n == UINT32_MAX - 1 || room((void **)&t->ends, t->n, &t->cap, sizeof(*t->ends)) < 0)
		return -ENOMEM;
	bytes_add(&t->bytes, text, n);
	bytes_add(&t->bytes, "\n", 1);
	if (t->bytes.failed || hash_add(&t->hash, hash, (uint32_t)t->n) < 0)
		return -ENOMEM;
	t->ends[t->n] = t->bytes.n - 1;
	*ret = (uint32_t)t->n++;
	return 0;
}

void texts_clear(struct texts *t)
{
	hash_done(&t->hash);
	t->bytes.n = 0;
	t->n = 0;
}

void texts_done(struct texts *t)
{
	bytes_done(&t->bytes);
	hash_done(&t->hash);
	free(t->ends);
	*t = (struct texts){};
}

/* Idle tasks are process 0 of every CPU. */
static bool same_process(struct task *task, const uint32_t *pid)
{
	if (!pid || task->pid == *pid)
		return true;
	if (!task->guessed)
		return false;
	task->pid = *pid;
	task->guessed = false;
	return true;
}

int tasks_number(struct tasks *t, const uint32_t *pid, uint32_t tid, uint32_t comm, uint32_t *ret)
{
	uint32_t hash = hash_numbers(tid, comm), i;
	size_t pos = hash;

	while (hash_next(&t->hash, hash, &pos, &i)) {
		struct task *task = &t->all[i];

		if (task->tid == tid && task->comm == comm && same_process(task, pid)) {
			*ret = i;
			return 0;
		}
	}
	if (t->n == UINT32_MAX - 1 || room((void **)&t->all, t->n, &t->cap, sizeof(*t->all)) < 0 ||
	    hash_add(&t->hash, hash, (uint32_t)t->n) < 0)
		return -ENOMEM;
	t->all[t->n] = (struct task){
		.pid = pid ? *pid : tid, .tid = tid, .comm = comm, .guessed = !pid && tid
	};
	*ret = (uint32_t)t->n++;
	return 0;
}

void tasks_done(struct tasks *t)
{
	free(t->all);
	hash_done(&t->hash);
	*t = (struct tasks){};
}
