// SPDX-License-Identifier: LGPL-2.1-or-later
/* The latencies of `perfctl report --html`: of all kinds that are recorded. */
#include "client/perfctl/replay/report-latency.h"

#define PAGE_TOP 20 /* where --top is not known */

static bool wants(const void *arg, uint32_t pid, uint32_t tid, uint32_t cpu)
{
	(void)cpu;
	return selection_wants_whose(arg, pid, tid);
}

static uint64_t top_of(const struct report_options *o)
{
	return o->top ?: PAGE_TOP;
}

/* The records of one CPU, or of one event, have only halves of many pairs. */
int latency_page_open(struct input *in, const struct report_options *o,
		      const struct selection *window, struct latency_page *ret)
{
	const struct selection *s = &o->selection;
	struct latency_options options = { .top = top_of(o), .wants = wants, .arg = s };
	struct latency_page p = {};
	int r = 0;

	if (!s->cpus && !s->event)
		r = latency_records_open(in, &p.records);
	for (unsigned kind = 0; kind < LATENCY_KINDS && p.records.in && r >= 0; kind++)
		if (latency_records_have(&p.records, kind))
			p.kinds |= UINT32_C(1) << kind;
	options.kinds = p.kinds;
	if (r >= 0 && p.kinds)
		r = latency_records_start(&p.records, window->since, s, &options, &p.latency);
	if (r < 0)
		latency_page_done(&p);
	else
		*ret = p;
	return r;
}

int latency_page_add(struct latency_page *p, const struct selection *window,
		     const struct trace_record *record, const struct flame_node *leaf)
{
	return p->latency ? latency_records_add(&p->records, p->latency, window, record, leaf) : 0;
}

static void kind_json(struct json *j, const struct latency_page *p, unsigned kind, uint64_t top)
{
	const struct latency_words *w = &latency_words[kind];

	json_begin(j, NULL, '{');
	json_string(j, "key", w->key);
	json_string(j, "title", w->title);
	json_string(j, "label", w->label_key);
	json_bool(j, "of_processes", w->of_processes);
	report_latency_kind_json(j, w, latency_sums(p->latency, kind), &p->records.histories[kind],
				 top);
	json_end(j, '}');
}

int latency_page_text(struct latency_page *p, const struct report_options *o,
		      const struct selection *window, char **ret)
{
	struct json j = {};
	size_t size;

	*ret = NULL;
	if (!p->latency)
		return 0;
	latency_records_end(&p->records, window);
	if (latency_records_finish(&p->records, p->latency) < 0)
		return -ENOMEM;
	j.f = open_memstream(ret, &size);
	if (!j.f)
		return -ENOMEM;
	json_begin(&j, NULL, '[');
	for (unsigned kind = 0; kind < LATENCY_KINDS; kind++)
		if (p->kinds >> kind & 1)
			kind_json(&j, p, kind, top_of(o));
	json_end(&j, ']');
	return fclose(j.f) ? -ENOMEM : 0;
}

void latency_page_done(struct latency_page *p)
{
	latency_free(p->latency);
	latency_records_done(&p->records);
	*p = (struct latency_page){};
}
