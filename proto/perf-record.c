// SPDX-License-Identifier: LGPL-2.1-or-later
#include "perf-record.h"

#include <errno.h>
#include <stdbool.h>

#include "cursor.h"
#include "macro.h"

/* A record's fields in order: reads or writes them. Never goes beyond the end; the cursor is then
 * bad. */
struct walk {
	struct cursor at;
	bool writes;
};

static void field(struct walk *w, void *value, size_t size)
{
	void *place = (void *)cursor_bytes(&w->at, size);

	if (place && w->writes)
		memcpy(place, value, size);
	else if (place)
		memcpy(value, place, size);
}
#define FIELD(w, value) field(w, &(value), sizeof(value))

/* For bytes whose place in the record is wanted, not their value. */
static const void *part(struct walk *w, const void *bytes, size_t size)
{
	void *place = (void *)cursor_bytes(&w->at, size);

	if (place && w->writes && size)
		memcpy(place, bytes, size);
	return place;
}

static void zeroes(struct walk *w, size_t size)
{
	static const uint8_t none[8];

	part(w, none, size);
}

/* ── sample_id ──────────────────────────────────────────────────────────────────────────── */

static void walk_id(struct walk *w, uint64_t sample_type, struct pp_record *r)
{
	uint64_t stream = 0;
	uint32_t reserved = 0;

	if (sample_type & PERF_SAMPLE_TID) {
		FIELD(w, r->on_pid);
		FIELD(w, r->on_tid);
	}
	if (sample_type & PERF_SAMPLE_TIME)
		FIELD(w, r->time);
	if (sample_type & PERF_SAMPLE_ID)
		FIELD(w, r->id);
	if (sample_type & PERF_SAMPLE_STREAM_ID)
		FIELD(w, stream);
	if (sample_type & PERF_SAMPLE_CPU) {
		FIELD(w, r->cpu);
		FIELD(w, reserved);
	}
	if (sample_type & PERF_SAMPLE_IDENTIFIER)
		FIELD(w, r->id);
}

void pp_record_rewrite_id(const struct pp_record *r, uint64_t sample_type, void *bytes, size_t size)
{
	size_t id_size = pp_sample_id_size(sample_type);
	struct walk w = { .writes = true };
	struct pp_record copy = *r;

	if (size < sizeof(struct perf_event_header) + id_size)
		return;
	w.at = (struct cursor){ (uint8_t *)bytes + size - id_size, id_size, false };
	walk_id(&w, sample_type, &copy);
}

/* ── the fields of each type ────────────────────────────────────────────────────────────── */

/* Only NULs follow it, up to a multiple of 8. */
static void walk_text(struct walk *w, struct pp_record *r)
{
	if (w->writes) {
		part(w, r->text, r->text_size);
		zeroes(w, ALIGN_TO(r->text_size, (size_t)8) - r->text_size);
		return;
	}
	r->text = cursor_text(&w->at, w->at.left);
	r->text_size = r->text ? strlen(r->text) + 1 : 0;
}

static void walk_task(struct walk *w, struct pp_record *r)
{
	FIELD(w, r->pid);
	FIELD(w, r->ppid);
	FIELD(w, r->tid);
	FIELD(w, r->ptid);
	FIELD(w, r->task_time);
}

static void walk_comm(struct walk *w, struct pp_record *r)
{
	FIELD(w, r->pid);
	FIELD(w, r->tid);
	walk_text(w, r);
}

static void walk_mmap(struct walk *w, struct pp_record *r)
{
	FIELD(w, r->pid);
	FIELD(w, r->tid);
	FIELD(w, r->start);
	FIELD(w, r->length);
	FIELD(w, r->offset);
	if (r->type == PERF_RECORD_MMAP2) {
		FIELD(w, r->file);
		FIELD(w, r->prot);
		FIELD(w, r->flags);
	}
	walk_text(w, r);
}

static void walk_namespaces(struct walk *w, struct pp_record *r)
{
	struct cursor ahead = w->at;
	uint64_t n;

	FIELD(w, r->pid);
	FIELD(w, r->tid);
	if (!w->writes) {
		cursor_u64(&ahead); /* pid, tid */
		n = cursor_u64(&ahead);
		r->namespaces_size = n > PP_NAMESPACES_MAX ? SIZE_MAX : (1 + 2 * n) * sizeof(n);
	}
	r->namespaces = part(w, r->namespaces, r->namespaces_size);
}

static void walk_symbol(struct walk *w, struct pp_record *r)
{
	uint32_t length = (uint32_t)r->length;

	FIELD(w, r->start);
	FIELD(w, length);
	FIELD(w, r->kind);
	FIELD(w, r->kind_flags);
	walk_text(w, r);
	r->length = length;
}

static void walk_program(struct walk *w, struct pp_record *r)
{
	FIELD(w, r->kind);
	FIELD(w, r->kind_flags);
	FIELD(w, r->program);
	FIELD(w, r->tag);
}

static void walk_body(struct walk *w, struct pp_record *r)
{
	switch (r->type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		walk_task(w, r);
		break;
	case PERF_RECORD_COMM:
		walk_comm(w, r);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		walk_mmap(w, r);
		break;
	case PERF_RECORD_NAMESPACES:
		walk_namespaces(w, r);
		break;
	case PERF_RECORD_CGROUP:
		FIELD(w, r->number);
		walk_text(w, r);
		break;
	case PERF_RECORD_KSYMBOL:
		walk_symbol(w, r);
		break;
	case PERF_RECORD_BPF_EVENT:
		walk_program(w, r);
		break;
	case PERF_RECORD_LOST:
		FIELD(w, r->lost_id);
		FIELD(w, r->number);
		break;
	case PERF_RECORD_LOST_SAMPLES:
		FIELD(w, r->number);
		break;
	default:
		w->at.bad = true;
	}
}

int pp_record_open(const void *bytes, size_t size, uint64_t sample_type, struct pp_record *ret)
{
	size_t id_size = pp_sample_id_size(sample_type);
	struct pp_record r = { .bytes = bytes, .size = (uint16_t)size };
	struct perf_event_header h;
	struct walk w = { .writes = false };

	if (size < sizeof(h) + id_size || size > UINT16_MAX)
		return -EBADMSG;
	memcpy(&h, bytes, sizeof(h));
	r.type = h.type;
	r.misc = h.misc;
	r.body_size = (uint16_t)(size - sizeof(h) - id_size);
	w.at = (struct cursor){ r.bytes + size - id_size, id_size, false };
	walk_id(&w, sample_type, &r);
	*ret = r;
	return 0;
}

int pp_record_parse(struct pp_record *r)
{
	const uint8_t *body = r->bytes + sizeof(struct perf_event_header);
	struct walk w = { { body, r->body_size, false }, false };

	walk_body(&w, r);
	return w.at.bad ? -EBADMSG : 0;
}

size_t pp_record_write(const struct pp_record *r, uint64_t sample_type, void *to, size_t room)
{
	struct walk w = { { to, MIN(room, (size_t)PP_RECORD_SIZE_MAX), false }, true };
	struct perf_event_header h = { .type = r->type, .misc = r->misc };
	struct pp_record copy = *r;
	size_t size;

	FIELD(&w, h);
	walk_body(&w, &copy);
	walk_id(&w, sample_type, &copy);
	if (w.at.bad)
		return 0;
	size = (size_t)(w.at.p - (const uint8_t *)to);
	h.size = (uint16_t)size;
	memcpy(to, &h, sizeof(h));
	return size;
}

/* ── samples ────────────────────────────────────────────────────────────────────────────── */

static void skip_read_values(struct walk *w, uint64_t read_format)
{
	uint64_t each = 1, values = 0, n;

	if (read_format & PERF_FORMAT_ID)
		each++;
	if (read_format & (1U << 4)) /* PERF_FORMAT_LOST, which old headers lack */
		each++;
	if (read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		values++;
	if (read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		values++;
	n = read_format & PERF_FORMAT_GROUP ? cursor_u64(&w->at) : 1;
	if (w->writes || n > w->at.left / (each * 8))
		w->at.bad = true;
	else
		cursor_bytes(&w->at, (values + n * each) * 8);
}

static void walk_callchain(struct walk *w, struct pp_sample *s)
{
	FIELD(w, s->n_callchain);
	if (s->n_callchain > w->at.left / sizeof(uint64_t))
		w->at.bad = true;
	else
		s->callchain = part(w, s->callchain, s->n_callchain * sizeof(uint64_t));
}

static void walk_raw(struct walk *w, struct pp_sample *s)
{
	uint32_t padding = w->writes ? -(s->raw_size + 4) % 8 : 0, size = s->raw_size + padding;

	FIELD(w, size);
	if (!w->writes)
		s->raw_size = size;
	s->raw = part(w, s->raw, s->raw_size);
	zeroes(w, padding);
}

static void walk_user_regs(struct walk *w, uint64_t mask, struct pp_sample *s)
{
	FIELD(w, s->user_abi);
	if (!w->writes)
		s->n_user_regs = s->user_abi ? (uint32_t)__builtin_popcountll(mask) : 0;
	s->user_regs = part(w, s->user_regs, s->n_user_regs * sizeof(uint64_t));
}

/* Room for the stack, and behind it how much of that could be read. */
static void walk_user_stack(struct walk *w, struct pp_sample *s)
{
	uint64_t room = ALIGN_TO((uint64_t)s->user_stack_size, 8UL), size = s->user_stack_size;

	FIELD(w, room);
	if (!room || w->at.bad)
		return;
	if (w->writes) {
		s->user_stack = part(w, s->user_stack, size);
		zeroes(w, room - size);
	} else {
		s->user_stack = part(w, NULL, room);
	}
	FIELD(w, size);
	if (size > room)
		w->at.bad = true;
	s->user_stack_size = (uint32_t)size;
}

/* In samples before the part of a trace, and not in struct pp_sample. */
#define UNKNOWN_BEFORE_AUX                                                     \
	(PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION | \
	 PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |  \
	 PERF_SAMPLE_DATA_PAGE_SIZE | PERF_SAMPLE_CODE_PAGE_SIZE | PERF_SAMPLE_WEIGHT_STRUCT)

static void walk_aux(struct walk *w, struct pp_sample *s)
{
	FIELD(w, s->aux_size);
	if (s->aux_size > w->at.left)
		w->at.bad = true;
	else
		s->aux = part(w, s->aux, s->aux_size);
}

static void walk_sample(struct walk *w, const struct pp_sample_form *form, struct pp_sample *s)
{
	uint64_t stream = 0, type = form->sample_type;
	uint32_t reserved = 0;

	if (type & PERF_SAMPLE_IDENTIFIER)
		FIELD(w, s->id);
	if (type & PERF_SAMPLE_IP)
		FIELD(w, s->ip);
	if (type & PERF_SAMPLE_TID) {
		FIELD(w, s->pid);
		FIELD(w, s->tid);
	}
	if (type & PERF_SAMPLE_TIME)
		FIELD(w, s->time);
	if (type & PERF_SAMPLE_ADDR)
		FIELD(w, s->addr);
	if (type & PERF_SAMPLE_ID)
		FIELD(w, s->id);
	if (type & PERF_SAMPLE_STREAM_ID)
		FIELD(w, stream);
	if (type & PERF_SAMPLE_CPU) {
		FIELD(w, s->cpu);
		FIELD(w, reserved);
	}
	if (type & PERF_SAMPLE_PERIOD)
		FIELD(w, s->period);
	if (type & PERF_SAMPLE_READ)
		skip_read_values(w, form->read_format);
	if (type & PERF_SAMPLE_CALLCHAIN)
		walk_callchain(w, s);
	if (type & PERF_SAMPLE_RAW)
		walk_raw(w, s);
	if (type & PERF_SAMPLE_BRANCH_STACK)
		return;
	if (type & PERF_SAMPLE_REGS_USER)
		walk_user_regs(w, form->sample_regs_user, s);
	if (type & PERF_SAMPLE_STACK_USER)
		walk_user_stack(w, s);
	if (type & PERF_SAMPLE_AUX && !(type & UNKNOWN_BEFORE_AUX))
		walk_aux(w, s);
}

int pp_sample_id_place(uint64_t sample_type)
{
	const uint64_t before = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
				PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;

	if (!(sample_type & PERF_SAMPLE_ID))
		return -1;
	return (int)sizeof(struct perf_event_header) +
	       8 * __builtin_popcountll(sample_type & before);
}

int pp_sample_parse(const void *bytes, size_t size, const struct pp_sample_form *form,
		    struct pp_sample *ret)
{
	struct walk w = { { bytes, size, false }, false };

	*ret = (struct pp_sample){ 0 };
	cursor_bytes(&w.at, sizeof(struct perf_event_header));
	walk_sample(&w, form, ret);
	return w.at.bad ? -EBADMSG : 0;
}

size_t pp_sample_write(struct pp_sample *s, uint16_t misc, uint64_t sample_type, void *to,
		       size_t room)
{
	struct perf_event_header h = { .type = PERF_RECORD_SAMPLE, .misc = misc };
	struct walk w = { { to, MIN(room, (size_t)PP_RECORD_SIZE_MAX), false }, true };
	size_t size;

	FIELD(&w, h);
	walk_sample(&w, &(struct pp_sample_form){ .sample_type = sample_type }, s);
	if (w.at.bad)
		return 0;
	size = (size_t)(w.at.p - (const uint8_t *)to);
	h.size = (uint16_t)size;
	memcpy(to, &h, sizeof(h));
	return size;
}
