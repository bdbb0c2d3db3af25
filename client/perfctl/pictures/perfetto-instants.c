// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tracepoints that perfetto does not know, as TrackEvent instants on their thread's track, or, on
 * idle CPUs, on the CPU's track. Names are interned: written once, then numbers. */
#include <string.h>

#include "client/perfctl/pictures/perfetto-parts.h"

enum { TYPE_INSTANT = 3 };

#define THREAD_TRACK (UINT64_C(1) << 63)
#define CPU_TRACK (UINT64_C(1) << 62)

static unsigned next_flags(struct perfetto *p)
{
	unsigned flags = p->instants_begun ? FLAG_NEEDED : FLAG_CLEARED;

	p->instants_begun = true;
	return flags;
}

/* ── Tracks ── */

static uint64_t thread_track(const struct perfetto_thread *t)
{
	return THREAD_TRACK | (uint64_t)(t->pid & 0x3fffffff) << 32 | t->tid;
}

static void tell_thread_track(struct perfetto *p, const struct perfetto_thread *t, uint64_t time)
{
	size_t packet = packet_begin(p, time, SEQUENCE_MOMENTS, next_flags(p));
	size_t track = pbuf_begin(&p->out, 60), thread; /* track_descriptor */

	pbuf_unsigned(&p->out, 1, thread_track(t));
	thread = pbuf_begin(&p->out, 4);
	pbuf_signed(&p->out, 1, t->pid == UINT32_MAX ? (int64_t)t->tid : (int64_t)t->pid);
	pbuf_signed(&p->out, 2, t->tid);
	if (t->comm[0])
		pbuf_text(&p->out, 5, t->comm, strlen(t->comm));
	pbuf_end(&p->out, thread);
	pbuf_end(&p->out, track);
	packet_end(p, packet);
}

static void tell_cpu_track(struct perfetto *p, uint32_t cpu, uint64_t time)
{
	size_t packet = packet_begin(p, time, SEQUENCE_MOMENTS, next_flags(p));
	size_t track = pbuf_begin(&p->out, 60);
	char name[48];

	snprintf(name, sizeof(name), "while CPU %u was idle", cpu);
	pbuf_unsigned(&p->out, 1, CPU_TRACK | cpu);
	pbuf_string(&p->out, 2, name);
	pbuf_end(&p->out, track);
	packet_end(p, packet);
}

/* All idle threads have the number 0; each CPU has its own. 0: no memory. */
static uint64_t track_of(struct perfetto *p, const struct trace_record *record,
			 struct perfetto_thread *t)
{
	if (!record->tid && record->cpu < AGGREGATE_CPUS) {
		struct perfetto_cpu *c = perfetto_cpu(p, record->cpu);

		if (!c)
			return 0;
		if (!c->has_track)
			tell_cpu_track(p, record->cpu, record->time);
		c->has_track = true;
		return CPU_TRACK | record->cpu;
	}
	if (!t->has_track)
		tell_thread_track(p, t, record->time);
	t->has_track = true;
	return thread_track(t);
}

/* ── Names ── */

static void intern(struct pbuf *b, uint32_t kind, uint64_t number, const char *name, size_t n)
{
	size_t begun = pbuf_begin(b, kind);

	pbuf_unsigned(b, 1, number);
	pbuf_text(b, 2, name, n);
	pbuf_end(b, begun);
}

/* Within a packet. */
static void tell_names(struct perfetto *p, const struct perfetto_event *e)
{
	enum { CATEGORIES = 1, NAMES, FIELD_NAMES }; /* InternedData's */
	const char *name = e->event->name;
	uint32_t number = e->event->index + 1, field = e->first_field;
	size_t begun = pbuf_begin(&p->out, 12); /* interned_data */

	intern(&p->out, CATEGORIES, number, name, strcspn(name, ":"));
	intern(&p->out, NAMES, number, name, strlen(name));
	if (e->decoder)
		for (const struct tep_format_field *f = e->decoder->event->format.fields; f;
		     f = f->next)
			intern(&p->out, FIELD_NAMES, field++, f->name, strlen(f->name));
	pbuf_end(&p->out, begun);
}

/* ── Fields ── */

static void add_array(struct pbuf *b, const struct tep_format_field *f, const struct field_value *v)
{
	bool is_signed = f->flags & TEP_FIELD_IS_SIGNED;

	for (size_t i = 0; (i + 1) * v->element <= v->n; i++) {
		size_t begun = pbuf_begin(b, 12); /* array_values */

		pbuf_unsigned(b, is_signed ? 4 : 3, field_element(f, v, i));
		pbuf_end(b, begun);
	}
}

static void add_hex(struct pbuf *b, const unsigned char *bytes, size_t n)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (f)
		print_hex(f, bytes, n);
	if (f && !fclose(f))
		pbuf_bytes(b, 6, text, size);
	else
		b->failed = true;
}

static void add_field(struct pbuf *b, const struct tep_format_field *f, const unsigned char *raw,
		      uint32_t number)
{
	size_t begun = pbuf_begin(b, 4); /* debug_annotations */
	struct field_value v;

	field_value(f, raw, &v);
	pbuf_unsigned(b, 1, number); /* name_iid */
	switch (v.kind) {
	case FIELD_UNSIGNED:
		pbuf_unsigned(b, 3, v.number);
		break;
	case FIELD_SIGNED:
		pbuf_signed(b, 4, (int64_t)v.number);
		break;
	case FIELD_ADDRESS:
		pbuf_unsigned(b, 7, v.number);
		break;
	case FIELD_STRING:
		pbuf_text(b, 6, (const char *)v.bytes, v.n);
		break;
	case FIELD_ARRAY:
		add_array(b, f, &v);
		break;
	case FIELD_BYTES:
		add_hex(b, v.bytes, v.n);
		break;
	}
	pbuf_end(b, begun);
}

/* False: they do not match the format. */
static bool load_fields(struct perfetto *p, struct perfetto_event *e,
			const struct trace_record *record)
{
	int r;

	if (!e->decoder)
		return false;
	r = decoder_load(e->decoder, record->sample.raw, record->sample.raw_size);
	if (r == -ENOMEM)
		p->out.failed = true;
	return r >= 0;
}

int instants_add(struct perfetto *p, struct perfetto_event *e, const struct trace_record *record,
		 struct perfetto_thread *thread)
{
	uint64_t track = track_of(p, record, thread);
	bool has_fields = load_fields(p, e, record);
	uint32_t field = e->first_field;
	size_t packet, event;

	if (!track)
		return -ENOMEM;
	if (!has_fields)
		p->damaged++;
	packet = packet_begin(p, record->time, SEQUENCE_MOMENTS, next_flags(p));
	if (!e->named)
		tell_names(p, e);
	e->named = true;
	event = pbuf_begin(&p->out, 11);		/* track_event */
	pbuf_unsigned(&p->out, 3, e->event->index + 1); /* category_iids */
	for (const struct tep_format_field *f = has_fields ? e->decoder->event->format.fields
							   : NULL;
	     f; f = f->next)
		add_field(&p->out, f, e->decoder->raw, field++);
	pbuf_unsigned(&p->out, 9, TYPE_INSTANT);
	pbuf_unsigned(&p->out, 10, e->event->index + 1); /* name_iid */
	pbuf_unsigned(&p->out, 11, track);
	pbuf_end(&p->out, event);
	packet_end(p, packet);
	return 0;
}
