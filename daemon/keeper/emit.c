// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the bytes of the sideband's records, and the file that they are put in. */
#include "daemon/keeper/emit.h"

#include <string.h>

#include "daemon/keeper/file.h"
#include "daemon/keeper/items.h"
#include "daemon/keeper/table.h"
#include "proto/macro.h"

#define BUFFER_SIZE (256U << 10)

struct output {
	int fd;
	uint64_t at; /* in the file, of the buffer's beginning */
	uint64_t records;
	uint8_t *buffer;
	size_t n;
	void (*busy)(void *context);
	void *context;
	int err;
};

static void cleanup_output(struct output *o)
{
	close_fd(o->fd);
	free(o->buffer);
}

static void flush(struct output *o)
{
	if (o->err == 0)
		o->err = memfile_write(o->fd, o->buffer, o->n, o->at);
	o->at += o->n;
	o->n = 0;
	o->busy(o->context);
}

/* ── a record, piece by piece ───────────────────────────────────────────────────────────── */

static void begin(struct output *o, uint32_t type, uint16_t misc, size_t size)
{
	struct perf_event_header h = { type, misc, (uint16_t)size };

	if (BUFFER_SIZE - o->n < size)
		flush(o);
	memcpy(o->buffer + o->n, &h, sizeof(h));
	o->n += sizeof(h);
	o->records++;
}

static void put(struct output *o, const void *bytes, size_t n)
{
	memcpy(o->buffer + o->n, bytes, n);
	o->n += n;
}

static void put32(struct output *o, uint32_t value)
{
	put(o, &value, sizeof(value));
}

static void put64(struct output *o, uint64_t value)
{
	put(o, &value, sizeof(value));
}

static void put_padded(struct output *o, const void *bytes, size_t n, size_t size)
{
	put(o, bytes, n);
	memset(o->buffer + o->n, 0, size - n);
	o->n += size - n;
}

/* On which CPU it was is not kept. */
static void end(struct output *o, uint32_t pid, uint32_t tid, uint64_t time)
{
	put32(o, pid);
	put32(o, tid);
	put64(o, time);
	put64(o, 0);
	put64(o, PP_SIDEBAND_ID);
}

static size_t size_of(size_t body)
{
	return sizeof(struct perf_event_header) + body + PP_SIDEBAND_ID_SIZE;
}

/* ── records ────────────────────────────────────────────────────────────────────────────── */

static uint32_t ppid_of(const struct thread *thread)
{
	const struct process *p = thread->process;

	return thread == &p->main ? p->ppid : p->main.tid;
}

static void emit_task(struct output *o, uint32_t type, const struct item *i)
{
	const struct thread *thread = i->thread;
	uint32_t pid = thread->process->main.tid, ppid = ppid_of(thread);

	begin(o, type, 0, size_of(24));
	put32(o, pid);
	put32(o, ppid);
	put32(o, thread->tid);
	put32(o, thread->ptid);
	put64(o, i->time);
	if (type == PERF_RECORD_FORK)
		end(o, ppid, thread->ptid, i->time); /* who did it */
	else
		end(o, pid, thread->tid, i->time);
}

static void emit_comm(struct output *o, const struct item *i, const char *comm, uint16_t misc)
{
	uint32_t pid = i->thread->process->main.tid;
	size_t size = ALIGN_TO(strnlen(comm, COMM_SIZE - 1) + 1, 8U);

	begin(o, PERF_RECORD_COMM, misc, size_of(8 + size));
	put32(o, pid);
	put32(o, i->thread->tid);
	put_padded(o, comm, strnlen(comm, COMM_SIZE - 1), size);
	end(o, pid, i->thread->tid, i->time);
}

static void emit_namespaces(struct output *o, const struct item *i, const struct blob *b)
{
	uint32_t pid = i->thread->process->main.tid;

	begin(o, PERF_RECORD_NAMESPACES, 0, size_of(8 + b->size));
	put32(o, pid);
	put32(o, i->thread->tid);
	put(o, b->bytes, b->size);
	end(o, pid, i->thread->tid, i->time);
}

static void emit_change(struct output *o, const struct item *i)
{
	const struct change *c = i->of;

	if (c->kind == CHANGE_NAMESPACES)
		emit_namespaces(o, i, c->namespaces);
	else
		emit_comm(o, i, c->comm, c->kind == CHANGE_EXEC ? PERF_RECORD_MISC_COMM_EXEC : 0);
}

static void emit_map(struct output *o, const struct item *i)
{
	uint32_t pid = i->thread->process->main.tid;
	const struct map *m = i->of;
	const struct blob *file = m->file;
	size_t path = file->size - BLOB_FILE_ID_SIZE, size = ALIGN_TO(path, 8U);

	begin(o, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, size_of(64 + size));
	put32(o, pid);
	put32(o, pid);
	put64(o, m->start);
	put64(o, m->size);
	put64(o, m->offset);
	put(o, file->bytes, BLOB_FILE_ID_SIZE);
	put32(o, m->prot);
	put32(o, m->flags);
	put_padded(o, file->bytes + BLOB_FILE_ID_SIZE, path, size);
	end(o, pid, pid, i->time);
}

/* As it came, but for the identifier, which was the kernel's. */
static void emit_notice(struct output *o, const struct item *i)
{
	const struct notice *n = i->of;
	struct perf_event_header h;

	memcpy(&h, n->bytes, sizeof(h));
	begin(o, h.type, h.misc, n->size);
	put(o, n->bytes + sizeof(h), n->size - sizeof(h) - 8);
	put64(o, PP_SIDEBAND_ID);
}

static void emit_item(struct output *o, const struct item *i)
{
	switch (i->kind) {
	case ITEM_FORK:
		emit_task(o, PERF_RECORD_FORK, i);
		break;
	case ITEM_COMM:
		emit_comm(o, i, i->thread->comm, 0);
		break;
	case ITEM_CHANGE:
		emit_change(o, i);
		break;
	case ITEM_MAP:
		emit_map(o, i);
		break;
	case ITEM_EXIT:
		emit_task(o, PERF_RECORD_EXIT, i);
		break;
	case ITEM_NOTICE:
		emit_notice(o, i);
		break;
	}
}

/* ── the file ───────────────────────────────────────────────────────────────────────────── */

static int write_header(struct output *o, const struct table *t, uint64_t since, uint64_t until,
			uint64_t cut)
{
	struct pp_sideband_header h = {
		.magic = PP_SIDEBAND_MAGIC,
		.version = PP_SIDEBAND_VERSION,
		.header_size = sizeof(h),
		.size = o->at,
		.records = o->records,
		.since = since,
		.until = until,
		.complete = MAX(t->began, t->complete),
		.began = t->began,
		.lost = t->lost,
		.forgotten = t->forgotten,
		.processes = t->n_processes,
		.ended = t->n_ended,
		.memory = t->memory.used,
		.max_memory = t->memory.max,
		.cut = cut,
		.untimed = t->untimed,
		.unseen = t->unseen,
	};

	return memfile_write(o->fd, &h, sizeof(h), 0);
}

int table_emit(const struct table *t, uint64_t since, uint64_t until, void (*busy)(void *context),
	       void *context, int *ret_fd, uint64_t *ret_size)
{
	_cleanup_(cleanup_output) struct output o = {
		.fd = -EBADF,
		.at = sizeof(struct pp_sideband_header),
		.buffer = malloc(BUFFER_SIZE),
		.busy = busy,
		.context = context,
	};
	_cleanup_(items_done) struct items items = { 0 };
	int r = o.buffer ? memfile_new(&o.fd) : -ENOMEM;

	if (r < 0)
		return r;
	r = items_of(t, since, until ? until : UINT64_MAX, busy, context, &items);
	if (r < 0)
		return r;
	for (size_t i = 0; i < items.n && o.err == 0; i++)
		emit_item(&o, &items.item[i]);
	flush(&o);
	if (o.err == 0)
		o.err = write_header(&o, t, since, until, items.cut);
	if (o.err == 0)
		o.err = memfile_finish(o.fd, ret_fd);
	if (o.err == 0)
		*ret_size = o.at;
	return o.err;
}
