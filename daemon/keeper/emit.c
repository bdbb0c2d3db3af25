// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes the records of the sideband and the file that holds them. */
#include "daemon/keeper/emit.h"

#include <string.h>

#include "daemon/keeper/items.h"
#include "daemon/keeper/table.h"
#include "proto/io.h"
#include "proto/macro.h"
#include "proto/memfile.h"
#include "proto/perf-record.h"
#include "proto/sideband.h"

#define BUFFER_SIZE (256U << 10)

struct output {
	int fd;
	uint64_t at; /* the buffer's offset in the file */
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
		o->err = pp_pwrite_all(o->fd, o->buffer, o->n, o->at);
	o->at += o->n;
	o->n = 0;
	o->busy(o->context);
}

/* ── records ────────────────────────────────────────────────────────────────────────────── */

/* Returns room for a record of any size. */
static uint8_t *room(struct output *o)
{
	if (BUFFER_SIZE - o->n < PP_RECORD_SIZE_MAX)
		flush(o);
	return o->buffer + o->n;
}

static void end(struct output *o, size_t size)
{
	o->n += size;
	o->records += size > 0;
}

/* The table does not keep the CPU. */
static void put(struct output *o, struct pp_record *r, uint64_t time)
{
	r->time = time;
	r->id = PP_SIDEBAND_ID;
	end(o, pp_record_write(r, PP_SIDEBAND_SAMPLE_TYPE, room(o), PP_RECORD_SIZE_MAX));
}

static uint32_t ppid_of(const struct thread *thread)
{
	const struct process *p = thread->process;

	return thread == &p->main ? p->ppid : p->main.tid;
}

static void emit_task(struct output *o, uint32_t type, const struct item *i)
{
	const struct thread *thread = i->thread;
	struct pp_record r = {
		.type = type,
		.pid = thread->process->main.tid,
		.tid = thread->tid,
		.ppid = ppid_of(thread),
		.ptid = thread->ptid,
		.task_time = i->time,
	};

	r.on_pid = type == PERF_RECORD_FORK ? r.ppid : r.pid; /* the process that acted */
	r.on_tid = type == PERF_RECORD_FORK ? r.ptid : r.tid;
	put(o, &r, i->time);
}

/* A record in which a thread reports its own change. */
static struct pp_record record_of(uint32_t type, uint32_t pid, uint32_t tid)
{
	return (struct pp_record){
		.type = type,
		.pid = pid,
		.tid = tid,
		.on_pid = pid,
		.on_tid = tid,
	};
}

static void emit_comm(struct output *o, const struct item *i, const char *comm, uint16_t misc)
{
	struct pp_record r =
		record_of(PERF_RECORD_COMM, i->thread->process->main.tid, i->thread->tid);

	r.misc = misc;
	r.text = comm;
	r.text_size = strnlen(comm, COMM_SIZE - 1) + 1;
	put(o, &r, i->time);
}

static void emit_namespaces(struct output *o, const struct item *i, const struct blob *b)
{
	struct pp_record r =
		record_of(PERF_RECORD_NAMESPACES, i->thread->process->main.tid, i->thread->tid);

	r.namespaces = b->bytes;
	r.namespaces_size = b->size;
	put(o, &r, i->time);
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
	struct pp_record r = record_of(PERF_RECORD_MMAP2, pid, pid);
	const struct map *m = i->of;

	r.misc = PERF_RECORD_MISC_USER;
	r.start = m->start;
	r.length = m->size;
	r.offset = m->offset;
	r.prot = m->prot;
	r.flags = m->flags;
	memcpy(&r.file, m->file->bytes, sizeof(r.file));
	r.text = (const char *)m->file->bytes + sizeof(r.file);
	r.text_size = m->file->size - sizeof(r.file);
	put(o, &r, i->time);
}

static void emit_notice(struct output *o, const struct item *i)
{
	const struct notice *n = i->of;

	memcpy(room(o), n->bytes, n->size);
	end(o, n->size);
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

	return pp_pwrite_all(o->fd, &h, sizeof(h), 0);
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
	int r = o.buffer ? pp_memfile_new("perfpersist-sideband", 0, &o.fd) : -ENOMEM;

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
		o.err = pp_memfile_finish(o.fd, ret_fd);
	if (o.err == 0)
		*ret_size = o.at;
	return o.err;
}
