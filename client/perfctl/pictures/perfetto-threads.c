// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads, their names and their processes, as ProcessTree packets. Sideband from before the first
 * record is written with that record: otherwise a trace that began at boot would span many days. */
#include <string.h>

#include "client/perfctl/pictures/perfetto-parts.h"

/* tid's thread; makes a new one; NULL: no memory. Valid until the next call. */
static struct perfetto_thread *thread_of(struct perfetto *p, uint32_t tid)
{
	uint32_t hash = hash_numbers(tid, 0), i;
	struct perfetto_thread *threads;

	for (size_t pos = hash; hash_next(&p->thread_hash, hash, &pos, &i);)
		if (p->threads[i].tid == tid)
			return &p->threads[i];
	if (p->n_threads == p->cap_threads) {
		size_t cap = p->cap_threads ? p->cap_threads * 2 : 256;

		threads = reallocarray(p->threads, cap, sizeof(*threads));
		if (!threads)
			return NULL;
		p->threads = threads;
		p->cap_threads = cap;
	}
	if (hash_add(&p->thread_hash, hash, (uint32_t)p->n_threads) < 0)
		return NULL;
	p->threads[p->n_threads] = (struct perfetto_thread){ .tid = tid, .pid = UINT32_MAX };
	return &p->threads[p->n_threads++];
}

static void add_process(struct pbuf *b, const struct perfetto_thread *t)
{
	size_t begun = pbuf_begin(b, 1); /* ProcessTree.processes */

	pbuf_unsigned(b, 1, t->pid);
	if (t->ppid)
		pbuf_unsigned(b, 2, t->ppid);
	pbuf_text(b, 3, t->comm, strlen(t->comm));
	pbuf_unsigned(b, 9, 1); /* cmdline_is_comm */
	pbuf_end(b, begun);
}

static void add_thread(struct pbuf *b, const struct perfetto_thread *t)
{
	size_t begun = pbuf_begin(b, 2); /* ProcessTree.threads */

	pbuf_unsigned(b, 1, t->tid);
	pbuf_text(b, 2, t->comm, strlen(t->comm));
	pbuf_unsigned(b, 3, t->pid);
	pbuf_end(b, begun);
}

/* Perfetto knows the idle threads itself; the process of an exited thread is unknown. */
static bool can_be_told(const struct perfetto_thread *t)
{
	return !t->told && t->tid && t->pid != UINT32_MAX && t->comm[0];
}

static void tell(struct perfetto *p, struct perfetto_thread *threads, size_t n, uint64_t time)
{
	size_t packet = packet_begin(p, time, SEQUENCE_SYSTEM, 0);
	size_t tree = pbuf_begin(&p->out, 2); /* process_tree */

	for (size_t i = 0; i < n; i++) {
		if (!can_be_told(&threads[i]))
			continue;
		if (threads[i].tid == threads[i].pid)
			add_process(&p->out, &threads[i]);
		add_thread(&p->out, &threads[i]);
		threads[i].told = true;
	}
	pbuf_end(&p->out, tree);
	packet_end(p, packet);
}

/* pid -1: no longer known. */
static void set(struct perfetto_thread *t, uint32_t pid, uint32_t ppid, const char *comm)
{
	if (pid != UINT32_MAX && pid != t->pid) {
		t->pid = pid;
		t->told = t->has_track = false;
	}
	if (ppid && ppid != t->ppid) {
		t->ppid = ppid;
		t->told = false;
	}
	if (strcmp(comm, "?") && strncmp(comm, t->comm, sizeof(t->comm) - 1)) {
		snprintf(t->comm, sizeof(t->comm), "%s", comm);
		t->told = false;
	}
}

int threads_record(struct perfetto *p, const struct trace_record *r)
{
	struct perfetto_thread *t = thread_of(p, r->tid);

	if (!t)
		return -ENOMEM;
	set(t, r->pid, r->kind == TRACE_FORK && r->pid == r->tid ? r->ppid : 0, r->comm);
	if (p->begun && can_be_told(t))
		tell(p, t, 1, r->time);
	return 0;
}

int threads_sample(struct perfetto *p, const struct trace_record *r, struct perfetto_thread **ret)
{
	struct perfetto_thread *t = thread_of(p, r->tid);

	if (!t)
		return -ENOMEM;
	set(t, r->pid, 0, r->comm);
	if (!p->all_told)
		tell(p, p->threads, p->n_threads, r->time);
	else if (can_be_told(t))
		tell(p, t, 1, r->time);
	p->all_told = true;
	*ret = t;
	return 0;
}
