// SPDX-License-Identifier: LGPL-2.1-or-later
/* The input of script and report: a file, or a snapshot that is taken now. */
#include "client/perfctl/events/input.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfctl/trace/symbols.h"

#define DEFAULT_FILE "perf.data"

static int cannot_open(const char *file, int error)
{
	if (error == -ENOENT && !strcmp(file, DEFAULT_FILE))
		complain("there is no file " DEFAULT_FILE
			 " here: name events, give a file with -i, or "
			 "create one with `perfctl snapshot -o " DEFAULT_FILE "`");
	else
		complain("cannot open %s: %s", file, strerror(-error));
	return error == -ENOENT			     ? EXIT_NOT_FOUND
	       : error == -EACCES || error == -EPERM ? EXIT_NOT_ALLOWED
						     : EXIT_FAILED;
}

static int open_file(struct call *call, const char *file, struct input *in)
{
	bool is_stdin = file && !strcmp(file, "-");

	file = file ?: DEFAULT_FILE;
	if (is_stdin && isatty(STDIN_FILENO))
		return bad_usage(call,
				 "-i -: stdin is a terminal; redirect a perf.data file to it");
	in->fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
			  : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (in->fd < 0)
		return cannot_open(file, -errno);
	in->what = strdup(is_stdin ? "stdin" : file);
	return in->what ? EXIT_OK : EXIT_FAILED;
}

/* "a snapshot of sched/switch, net/" */
static char *name_snapshot(const struct call *call)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fputs("a snapshot of ", f);
	for (size_t i = 0; i < call->n_operands; i++)
		fprintf(f, "%s%s", i ? ", " : "", call->operands[i]);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

/* Into memory: it is as large as the rings, and ends with this process. */
static int take_snapshot(struct call *call, struct selection *selection, struct input *in)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct take_result result = {};
	struct selection all = *selection;
	int r = call_connect(call, &p);

	/* --pid and --tid select records only when the snapshot is read: the other records say
	 * which process a thread belongs to, and who had a CPU before. */
	all.pids = all.tids = (struct ids){};
	all.owners = NULL;
	all.event = NULL;

	if (r)
		return r;
	in->what = name_snapshot(call);
	in->fd = memfd_create("perfctl-snapshot", MFD_CLOEXEC);
	if (!in->what || in->fd < 0) {
		complain("cannot take a snapshot: %s", strerror(in->what ? errno : ENOMEM));
		return EXIT_FAILED;
	}
	r = take(call, p, call->operands, call->n_operands, &all, in->fd, false, true, &result);
	return r;
}

static int open_trace(struct input *in)
{
	int r = trace_open(in->fd, &in->trace);

	if (r == -EBADMSG)
		complain("cannot read %s: %s", in->what, trace_error());
	else if (r < 0)
		complain("cannot read %s: %s", in->what, strerror(-r));
	else if (decoders_init(&in->decoders, trace_events(in->trace)) < 0)
		return EXIT_FAILED;
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}

static int select_events(struct input *in, const struct selection *selection)
{
	size_t n = trace_events(in->trace);

	in->wanted = calloc(n + 1, sizeof(*in->wanted));
	if (!in->wanted) {
		complain("cannot read %s: out of memory", in->what);
		return EXIT_FAILED;
	}
	for (size_t i = 0; i < n; i++)
		in->wanted[i] = selection_wants_event(selection, trace_event(in->trace, i)->name);
	if (repeats_init(&in->repeats, in->trace, in->wanted) < 0) {
		complain("cannot read %s: out of memory", in->what);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* Takes `in` over. */
static int begin(struct input *in, struct selection *selection, struct input *ret)
{
	int r = open_trace(in) ?: select_events(in, selection);

	if (r) {
		input_done(in);
		return r;
	}
	selection_settle(selection, trace_info(in->trace)->realtime_offset,
			 trace_info(in->trace)->last_time);
	*ret = *in;
	return EXIT_OK;
}

int input_open_fd(int fd, const char *what, struct selection *selection, struct input *ret)
{
	struct input in = { .fd = fd, .what = strdup(what) };

	if (in.what)
		return begin(&in, selection, ret);
	complain("cannot read %s: out of memory", what);
	input_done(&in);
	return EXIT_FAILED;
}

int input_open(struct call *call, const char *file, struct selection *selection, struct input *ret)
{
	struct input in = { .fd = -EBADF };
	int r;

	if (file && call->n_operands)
		return bad_usage(call, "-i %s and %s are mutually exclusive: give a file or events",
				 file, call->operands[0]);
	r = call->n_operands ? take_snapshot(call, selection, &in) : open_file(call, file, &in);
	if (!r)
		return begin(&in, selection, ret);
	input_done(&in);
	return r;
}

/* Whether --pid, --tid and --about select the record. 0 or -ENOMEM. */
static int look_who(struct input *in, const struct selection *s, const struct trace_record *record,
		    bool *ret_wanted)
{
	struct decoder *d = NULL;
	int r = selection_learn(s, record->pid, record->tid);

	*ret_wanted = true;
	if (record->kind != TRACE_SAMPLE || !selection_has_ids(s))
		return r;
	if (r == 0 && s->about && record->event)
		r = decoders_get(&in->decoders, record->event, &d);
	*ret_wanted = r == 0 && selection_wants_who(s, &record->sample, d);
	return r;
}

static bool is_selected(const struct input *in, const struct selection *selection,
			const struct trace_record *record)
{
	return (!record->event || in->wanted[record->event->index]) &&
	       selection_wants_when(selection, record->time, record->cpu);
}

bool input_knows_place(const struct input *in, const struct trace_record *loss)
{
	return loss->type == PERF_RECORD_LOST ||
	       (loss->time && loss->time < trace_info(in->trace)->last_time);
}

/* Whether a loss may be one of the selection's. One in a buffer may be of any event. */
static bool may_lack(const struct input *in, const struct selection *selection,
		     const struct trace_record *loss)
{
	struct selection when = { .since = selection->since, .until = selection->until };

	if (loss->type != PERF_RECORD_LOST && loss->event && !in->wanted[loss->event->index])
		return false;
	if (!input_knows_place(in, loss))
		return true;
	return selection_wants_when(loss->cpu == UINT32_MAX ? &when : selection, loss->time,
				    loss->cpu);
}

/* Other records than samples and losses say what runs, and what it is. */
static bool is_passed_over(const struct input *in, const struct selection *selection,
			   const struct trace_record *record)
{
	return record->kind == TRACE_SAMPLE ? !is_selected(in, selection, record)
	       : record->kind == TRACE_LOST ? !may_lack(in, selection, record)
					    : false;
}

int input_next(struct input *in, const struct selection *selection, struct trace_record *ret,
	       bool *ret_wanted)
{
	int r, error;

	do {
		r = trace_next(in->trace, ret);
		error = r > 0 ? look_who(in, selection, ret, ret_wanted) : 0;
		r = error < 0 ? error : r;
	} while (r > 0 && is_passed_over(in, selection, ret));
	if (r > 0 && ret->kind == TRACE_SAMPLE && ret->event) {
		error = repeats_look(&in->repeats, ret);
		ret->again = error > 0;
		r = error < 0 ? error : r;
	}
	if (r == -EBADMSG)
		complain("%s: %s; the records before that were read", in->what, trace_error());
	else if (r < 0)
		complain("%s: %s", in->what, strerror(-r));
	return r;
}

int input_look_ahead(struct input *in, const struct selection *selection)
{
	struct trace_record record;
	size_t pos = 0;

	if (!selection_has_ids(selection))
		return 0;
	while (trace_peek(in->trace, &pos, &record) > 0)
		if (selection_learn(selection, record.pid, record.tid) < 0)
			return -ENOMEM;
	return 0;
}

void input_done(struct input *in)
{
	decoders_done(&in->decoders);
	repeats_done(&in->repeats);
	trace_free(in->trace);
	in->fd = close_fd(in->fd);
	free(in->what);
	free(in->wanted);
	*in = (struct input){ .fd = -EBADF };
}

bool input_tell_none(const struct input *in, const struct selection *selection)
{
	const struct trace_info *info = trace_info(in->trace);

	if (!selection_is_given(selection))
		return false;
	selection_tell_none(selection, in->what, info->first_time, info->last_time);
	return true;
}

void input_tell_refused(const struct symbols *s)
{
	if (symbols_refused(s))
		complain("some functions of other users' files have no names: these files have "
			 "too many symbols");
}
