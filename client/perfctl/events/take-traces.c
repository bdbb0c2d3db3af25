// SPDX-License-Identifier: LGPL-2.1-or-later
/* Asks for traces. See take-traces.h. */
#include "client/perfctl/events/take-traces.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "client/perfctl/output/output.h"
#include "client/perfctl/perfctl.h"
#include "proto/macro.h"

void taken_traces_done(struct taken_traces *t)
{
	for (size_t i = 0; t->of_events && i < t->n_events; i++) {
		for (uint32_t k = 0; k < t->of_events[i].n; k++)
			close_fd(t->of_events[i].fds[k]);
		free(t->of_events[i].fds);
	}
	free(t->of_events);
}

/* Takes copy over. */
static int copy_into(int copy, int fd)
{
	_cleanup_close_ int to = copy;
	struct stat st;
	ssize_t n = 1;

	if (to < 0 || fstat(fd, &st) < 0)
		return -errno;
	for (off_t at = 0; n > 0 && at < st.st_size;)
		n = sendfile(to, fd, &at, (size_t)(st.st_size - at));
	return n < 0 ? -errno : TAKE_FD(to);
}

/* The daemon's copy is charged until it is closed, and those of all CPUs can be more than a user may have. */
static int copy_of(int fd)
{
	const char *folder = getenv("TMPDIR") ?: "/tmp";
	int copy = copy_into(open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), fd);

	/* It is not there, or full. */
	return copy < 0 ? copy_into(memfd_create("perfctl-trace", MFD_CLOEXEC), fd) : copy;
}

/* Closes fd. */
static int keep(struct event_traces *e, int fd)
{
	int *more = reallocarray(e->fds, e->n + 1, sizeof(*more)),
	    copy = more ? copy_of(fd) : -ENOMEM;

	e->fds = more ?: e->fds;
	close_fd(fd);
	if (copy < 0)
		return copy;
	e->fds[e->n++] = copy;
	return 0;
}

static bool is_selected(const struct selection *s, unsigned cpu)
{
	return !s->cpus || (cpu < s->n_cpus && s->cpus[cpu]);
}

/* An area can be missing on any CPU of the event: offline, refused, being made. Of others none is taken: each stops
 * its PMU. */
static void take_event(struct perfpersist *p, struct perfpersist_event *event, uint64_t id,
		       const struct selection *s, struct event_traces *e, uint32_t *untraced)
{
	size_t n = perfpersist_event_rings(event);

	for (uint32_t k = 0; k < n; k++) {
		struct perfpersist_auxtrace_info aux = { .sz = sizeof(aux) };
		int fd, r;

		if (k < perfpersist_event_rings(event) &&
		    !is_selected(s, (unsigned)perfpersist_ring_cpu(event, k)))
			continue;
		if (perfpersist_auxtrace(p, id, k, &aux, &fd) < 0) {
			complain("%s", perfpersist_error(p));
			n = perfpersist_event_rings(event);
			continue;
		}
		*untraced = MAX(*untraced, aux.untraced);
		n = MAX(n, (size_t)aux.cpus); /* another CPU has come */
		if (!is_selected(s, aux.cpu)) {
			close_fd(fd);
			continue;
		}
		r = keep(e, fd);
		if (r < 0)
			complain("the trace of CPU %u is left out: %s", aux.cpu, strerror(-r));
	}
}

static uint32_t pmu_of(struct perfpersist_event *e)
{
	struct perfpersist_source source = { .sz = sizeof(source) };

	if (perfpersist_event_source(e, 0, &source) < 0)
		return UINT32_MAX;
	return ((const struct perf_event_attr *)source.attr)->type;
}

int take_traces(struct perfpersist *p, const struct chosen *events, const struct selection *s,
		struct taken_traces *ret)
{
	struct perfpersist_event *first = NULL;
	int r = 0;

	ret->of_events = calloc(events->n, sizeof(*ret->of_events));
	if (!ret->of_events)
		return -ENOMEM;
	ret->n_events = events->n;
	for (size_t i = 0; r >= 0 && i < events->n; i++) {
		struct perfpersist_info info = { .sz = sizeof(info) };
		struct perfpersist_event *e = events->events[i];

		r = perfpersist_event_info(e, &info);
		if (r < 0 || info.recorder != PERFPERSIST_RECORDER_AUX)
			continue;
		first = first ?: e;
		ret->has_samples |= !!(info.flags & PERFPERSIST_AUX_GROUP);
		if (pmu_of(e) == pmu_of(first))
			take_event(p, e, info.id, s, &ret->of_events[i], &ret->untraced);
		else
			complain(
				"The traces of %s/%s are left out, since perf decodes those of one "
				"PMU in a file; take a snapshot of it alone.",
				info.ns, info.name);
		ret->n += ret->of_events[i].n;
	}
	return r;
}

void put_traces(const struct taken_traces *t, size_t event, struct perfpersist_perfdata *data,
		int number)
{
	int r;

	for (uint32_t k = 0; t->of_events && k < t->of_events[event].n; k++) {
		r = perfpersist_perfdata_auxtrace(data, number, t->of_events[event].fds[k]);
		if (r < 0)
			complain("%s; that trace is left out", perfpersist_error(NULL));
	}
}
