// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the records of a report, and writes --html and --perfetto meanwhile. */
#include "client/perfctl/replay/report-picture.h"

#include <inttypes.h>

#include "client/perfctl/output/outfile.h"
#include "client/perfctl/pictures/html.h"
#include "client/perfctl/pictures/perfetto.h"
#include "client/perfctl/replay/report-latency.h"

struct picture {
	struct perfetto *perfetto;
	struct html *html;
	struct latency_page latencies; /* of html */
	struct report_against against; /* of html, if it was asked for */
};

static int picture_add(struct picture *p, const struct trace_record *record,
		       const struct flame_node *leaf, const struct about *about)
{
	if (p->perfetto)
		return perfetto_add(p->perfetto, record, leaf);
	return p->html ? html_add(p->html, record, leaf, about) : 0;
}

static void picture_done(struct picture *p)
{
	perfetto_free(p->perfetto);
	html_free(p->html);
	latency_page_done(&p->latencies);
	against_done(&p->against);
}

/* Passes any record to what looks at all of them. */
static int picture_watch(struct picture *p, const struct selection *selection,
			 const struct trace_record *record, const struct flame_node *leaf)
{
	int r = latency_page_add(&p->latencies, selection, record, leaf);

	if (r >= 0 && p->against.records)
		r = compare_records_add(p->against.records, selection, record);
	return r;
}

/* The comparison needs the records of all threads and CPUs, the page only those that are chosen. */
static bool is_chosen(const struct picture *p, const struct trace_record *record)
{
	return !p->against.records || record->kind != TRACE_SAMPLE ||
	       compare_records_want(p->against.records, record->pid, record->tid, record->cpu);
}

/* The processes that a record names, with --about: it counts for these, too. -ENOMEM. */
static int add_about(struct input *in, const struct selection *selection, struct aggregate *a,
		     const struct trace_record *record, struct about *ret)
{
	struct decoder *d = NULL;
	int r = 0;

	*ret = (struct about){};
	if (!selection->about || record->kind != TRACE_SAMPLE || !record->event)
		return 0;
	r = decoders_get(&in->decoders, record->event, &d);
	if (r >= 0)
		selection_whom(selection, &record->sample, d, ret);
	for (size_t i = 0; i < ret->n && r >= 0; i++)
		r = aggregate_about(a, ret->pids[i]);
	return r;
}

static int add(struct input *in, const struct selection *selection, struct aggregate *a,
	       struct picture *picture, const struct trace_record *record,
	       const struct flame_node **ret_leaf)
{
	struct about about;

	return aggregate_add(a, record, ret_leaf) ?: add_about(in, selection, a, record, &about)
		       ?: picture_add(picture, record, *ret_leaf, &about);
}

int report_read(struct input *in, const struct selection *selection, struct aggregate *a,
		struct picture *picture)
{
	struct picture none = {};
	const struct flame_node *leaf;
	struct trace_record record;
	bool chosen;
	int r;

	picture = picture ?: &none;

	while ((r = input_next(in, selection, &record, &chosen)) > 0) {
		int failed;

		chosen = chosen && is_chosen(picture, &record);
		if (chosen)
			failed = add(in, selection, a, picture, &record, &leaf);
		else
			failed = aggregate_pass(a, &record);
		if (failed >= 0)
			failed = picture_watch(picture, selection, &record, chosen ? leaf : NULL);
		if (failed < 0)
			return failed;
	}
	aggregate_finish(a);
	return r;
}

static int begin_picture(const struct report_options *o, struct input *in,
			 const struct selection *window, const struct aggregate *a, int fd,
			 struct picture *ret)
{
	int r;

	if (o->perfetto)
		return perfetto_new(fd, in->trace, a, &ret->perfetto);
	r = html_new(fd, in->trace, o->selection.about, &ret->html);
	return r < 0 ? r : latency_page_open(in, o, window, &ret->latencies);
}

static int finish_picture(const struct report_options *o, const struct input *in,
			  const struct selection *window, const struct aggregate *a, bool damaged,
			  struct picture *p)
{
	struct html_about about = {
		.what = in->what,
		.selected = *o->selection.typed ? o->selection.typed : NULL,
		.damaged = damaged ? trace_error() : NULL,
	};

	_cleanup_free_ char *latencies = NULL, *against = NULL;

	if (!p->html)
		return perfetto_finish(p->perfetto);
	if (latency_page_text(&p->latencies, o, window, &latencies) < 0)
		return -ENOMEM;
	if (p->against.records && against_page_text(&p->against, &against) < 0)
		return -ENOMEM;
	about.latencies = latencies;
	about.against = against;
	return html_finish(p->html, a, &about);
}

/* Reads all of the input. Returns an exit code; 0 with *ret_damaged: the readable part still makes a
 * picture. */
static int read_picture(const struct report_options *o, struct input *in,
			const struct selection *selection, struct aggregate *a,
			struct picture *picture, bool *ret_damaged)
{
	struct compare_records *compared = picture->against.records;
	int r = report_read(in, selection, a, picture);

	if (!r && report_chose_none(in, selection, a))
		return EXIT_NOT_FOUND;
	*ret_damaged = r == -EBADMSG;
	if (compared && (r >= 0 || *ret_damaged) && compare_records_finish(compared) < 0)
		r = -ENOMEM;
	if (r < 0 && r != -EBADMSG)
		return outfile_failed(o->perfetto ?: o->html, r);
	return compared ? against_judge(&picture->against, *ret_damaged) : EXIT_OK;
}

int report_picture(const struct report_options *o, struct input *in,
		   const struct selection *selection, struct aggregate *a,
		   struct report_against *against)
{
	const char *path = o->perfetto ?: o->html;
	_cleanup_(outfile_done) struct outfile out = OUTFILE_NONE;
	_cleanup_(picture_done) struct picture picture = { .against = *against };
	bool damaged = false;
	int r, code;

	*against = (struct report_against){};
	r = outfile_open(path, &out);
	if (r >= 0)
		r = begin_picture(o, in, selection, a, out.fd, &picture);
	if (r >= 0) {
		code = read_picture(o, in, selection, a, &picture, &damaged);
		if (code)
			return code;
		r = finish_picture(o, in, selection, a, damaged, &picture);
	}
	if (r >= 0)
		r = outfile_commit(&out);
	if (r < 0)
		return outfile_failed(path, r);
	if (picture.perfetto && perfetto_damaged(picture.perfetto))
		complain("%s: the fields of %" PRIu64 " records do not fit the formats of their "
			 "events; the file has these records without fields",
			 path, perfetto_damaged(picture.perfetto));
	return damaged ? EXIT_FAILED : EXIT_OK;
}
