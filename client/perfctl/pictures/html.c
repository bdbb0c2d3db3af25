// SPDX-License-Identifier: LGPL-2.1-or-later
/* Turns records into columns; writes a block of them when it is full. */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/pictures/html-internal.h"
#include "client/perfctl/pictures/html-page.h"

#define BLOCK_RECORDS 65536
#define BLOCK_TEXTS (8u << 20) /* approximate bytes of texts */

/* ── events ── */

/* Finds the fields that say which task runs next, if they are the kernel's. */
static void find_switch(const struct trace_event *event, struct html_event *e)
{
	struct tep_format_field *pid, *comm;

	if (!e->decoder || strcmp(event->name, "sched:sched_switch") != 0)
		return;
	pid = tep_find_field(e->decoder->event, "next_pid");
	comm = tep_find_field(e->decoder->event, "next_comm");
	if (!pid || !comm)
		return;
	e->next_pid = pid;
	e->next_comm = comm;
}

static int open_events(struct html *h)
{
	h->events = calloc(trace_events(h->trace) + 1, sizeof(*h->events));
	if (!h->events || decoders_init(&h->decoders, trace_events(h->trace)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < trace_events(h->trace); i++) {
		const struct trace_event *event = trace_event(h->trace, i);
		int r = decoders_get(&h->decoders, event, &h->events[i].decoder);

		if (r < 0)
			return r;
		find_switch(event, &h->events[i]);
	}
	return 0;
}

int html_new(int fd, struct trace *t, bool has_about, struct html **ret)
{
	struct html *h = calloc(1, sizeof(*h));
	int copy;

	if (!h)
		return -ENOMEM;
	h->trace = t;
	h->has_about = has_about;
	h->line = open_memstream(&h->text, &h->text_size);
	if (!h->line || open_events(h) < 0) {
		html_free(h);
		return -ENOMEM;
	}
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	h->f = copy >= 0 ? fdopen(copy, "w") : NULL;
	if (!h->f) {
		int r = -errno;

		close_fd(copy);
		html_free(h);
		return r;
	}
	page_begin(h->f);
	*ret = h;
	return 0;
}

void html_free(struct html *h)
{
	if (!h)
		return;
	decoders_done(&h->decoders);
	free(h->events);
	for (size_t i = 0; i < N_COLUMNS; i++)
		bytes_done(&h->columns[i]);
	texts_done(&h->texts);
	texts_done(&h->comms);
	tasks_done(&h->tasks);
	free(h->lost);
	if (h->f)
		fclose(h->f);
	if (h->line)
		fclose(h->line);
	free(h->text);
	free(h);
}

/* ── blocks ── */

static int write_block(struct html *h)
{
	_cleanup_(bytes_done) struct bytes block = {};

	bytes_number(&block, h->n);
	bytes_number(&block, h->texts.n);
	for (size_t i = 0; i < N_COLUMNS; i++) {
		bytes_column(&block, &h->columns[i]);
		h->columns[i].n = 0;
	}
	bytes_column(&block, &h->texts.bytes);
	texts_clear(&h->texts);
	h->n = 0;
	return block_write(h->f, "class=\"records\"", &block);
}

/* ── one record ── */

/* The text of a sample without a tracepoint: its function. */
static void print_place(const struct trace_record *record, const struct flame_node *leaf, FILE *f)
{
	const struct frame *frame = leaf ? leaf->frame : NULL;

	if (frame) {
		print_text(f, frame->symbol, strlen(frame->symbol));
		fputs(" (", f);
		print_text(f, frame->dso, strlen(frame->dso));
		fputc(')', f);
	}
	if (record->event->sample_type & PERF_SAMPLE_IP)
		fprintf(f, "%sip 0x%" PRIx64, frame ? "  " : "", record->sample.ip);
	if (record->event->sample_type & PERF_SAMPLE_ADDR && record->sample.addr)
		fprintf(f, "  addr 0x%" PRIx64, record->sample.addr);
}

/* loaded: the decoder has the record's payload. */
static void print_what(const struct html_event *e, bool loaded, const struct trace_record *record,
		       const struct flame_node *leaf, FILE *f)
{
	if (loaded) {
		decoder_print(e->decoder, f);
	} else if (record->sample.raw) {
		fputs(e->decoder ? "damaged: " : "", f);
		print_hex(f, record->sample.raw, record->sample.raw_size);
	} else {
		print_place(record, leaf, f);
	}
}

static int text_of(struct html *h, const struct html_event *e, bool loaded,
		   const struct trace_record *record, const struct flame_node *leaf, uint32_t *ret)
{
	rewind(h->line);
	print_what(e, loaded, record, leaf, h->line);
	if (fflush(h->line))
		return -ENOMEM;
	return texts_number(&h->texts, h->text, h->text_size, ret);
}

static int task_of(struct html *h, const uint32_t *pid, uint32_t tid, const char *comm, size_t n,
		   uint32_t *ret)
{
	uint32_t name;
	int r = texts_number(&h->comms, comm, n, &name);

	return r < 0 ? r : tasks_number(&h->tasks, pid, tid, name, ret);
}

/* The task that runs after a switch; the decoder has its payload. */
static int add_next(struct html *h, const struct html_event *e)
{
	struct field_value pid, comm;
	uint32_t task;
	int r;

	field_value(e->next_pid, e->decoder->raw, &pid);
	field_value(e->next_comm, e->decoder->raw, &comm);
	if (!comm.bytes)
		comm.n = 0;
	r = task_of(h, NULL, (uint32_t)pid.number, (const char *)comm.bytes ?: "", comm.n, &task);
	if (r < 0)
		return r;
	bytes_number(&h->columns[COLUMN_NEXT], task);
	return 0;
}

/* Each has its name of this time. */
static int add_about(struct html *h, const struct about *about)
{
	struct bytes *column = &h->columns[COLUMN_ABOUT];
	int r = 0;

	bytes_number(column, about->n);
	for (size_t i = 0; i < about->n && r >= 0; i++) {
		uint32_t pid = about->pids[i], task;
		const char *comm = processes_name(trace_processes(h->trace), pid, pid) ?: "?";

		r = task_of(h, &pid, pid, comm, strlen(comm), &task);
		bytes_number(column, r < 0 ? 0 : task);
	}
	return r;
}

static int add_sample(struct html *h, const struct trace_record *record,
		      const struct flame_node *leaf)
{
	struct html_event *e = &h->events[record->event->index];
	bool loaded = e->decoder && record->sample.raw &&
		      decoder_load(e->decoder, record->sample.raw, record->sample.raw_size) >= 0;
	uint32_t text, task, cpu = MIN(record->cpu, (uint32_t)HTML_NO_CPU);
	int r = text_of(h, e, loaded, record, leaf, &text);

	if (r >= 0)
		r = task_of(h, &record->pid, record->tid, record->comm, strlen(record->comm),
			    &task);
	if (r < 0)
		return r;
	if (!h->records)
		h->base = h->time = record->time;
	bytes_signed(&h->columns[COLUMN_TIME], (int64_t)(record->time - h->time));
	bytes_number(&h->columns[COLUMN_CPU], cpu);
	bytes_number(&h->columns[COLUMN_EVENT], record->event->index);
	bytes_number(&h->columns[COLUMN_TASK], task);
	bytes_number(&h->columns[COLUMN_TEXT], text);
	bytes_number(&h->columns[COLUMN_NODE], leaf ? leaf->index + 1 : 0);
	bytes_number(&h->columns[COLUMN_PERIOD], record->sample.period);
	/* A damaged record gets its own task in this column, so that rows stay aligned. */
	if (e->next_pid && !loaded)
		bytes_number(&h->columns[COLUMN_NEXT], task);
	else if (e->next_pid)
		r = add_next(h, e);
	h->cpus[cpu] = true;
	h->time = record->time;
	h->nameless += !strcmp(record->comm, "?");
	h->records++;
	h->n++;
	e->n++;
	return r;
}

static int add_lost(struct html *h, const struct trace_record *record)
{
	if (h->n_lost == h->cap_lost) {
		size_t cap = h->cap_lost ? h->cap_lost * 2 : 16;
		void *more = reallocarray(h->lost, cap, sizeof(*h->lost));

		if (!more)
			return -ENOMEM;
		h->lost = more;
		h->cap_lost = cap;
	}
	h->lost[h->n_lost++] = (struct html_lost){ .time = record->time,
						   .lost = record->lost,
						   .cpu = record->cpu };
	h->sum_lost += record->lost;
	return 0;
}

int html_add(struct html *h, const struct trace_record *record, const struct flame_node *leaf,
	     const struct about *about)
{
	int r;

	if (record->kind == TRACE_LOST)
		return add_lost(h, record);
	if (record->kind != TRACE_SAMPLE)
		return 0;
	r = add_sample(h, record, leaf);
	if (r >= 0 && h->has_about)
		r = add_about(h, about);
	if (r >= 0 && (h->n == BLOCK_RECORDS || h->texts.bytes.n > BLOCK_TEXTS))
		r = write_block(h);
	return r;
}

/* attributes: of the block; text: JSON, or NULL. */
static int write_report(struct html *h, const char *attributes, const char *text)
{
	_cleanup_(bytes_done) struct bytes block = {};

	if (!text)
		return 0;
	bytes_add(&block, text, strlen(text));
	return block_write(h->f, attributes, &block);
}

int html_finish(struct html *h, const struct aggregate *a, const struct html_about *about)
{
	int r = h->n ? write_block(h) : 0;

	if (r >= 0)
		r = html_write_nodes(h, a);
	if (r >= 0)
		r = write_report(h, "id=\"latencies\"", about->latencies);
	if (r >= 0)
		r = write_report(h, "id=\"against\"", about->against);
	if (r >= 0)
		r = html_write_info(h, a, about);
	if (r < 0)
		return r;
	page_end(h->f);
	return fflush(h->f) ? -errno : 0;
}
