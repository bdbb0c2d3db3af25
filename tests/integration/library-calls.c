/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Uses libperfpersist as its header says, against a daemon. Exit 0 if every call did what it
 * should; else 1, with the failed call on stderr.
 *
 *   INSTANCE=NAME library-calls calls     every blocking call, its results and its error messages
 *   INSTANCE=NAME library-calls async     two connections in one poll(2) loop, in a pipeline
 *   INSTANCE=NAME library-calls outlive   opens t/outlive, says "open", and then for each line
 *                                         that it reads, how many records a new snapshot holds
 *   INSTANCE=NAME library-calls gone      says "connected", reads a line (the daemon has been
 *                                         killed), and tries to go on
 *   perfctl reopen NAME -- library-calls fds    opens the inherited descriptors, and describes them
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "client/perfpersist.h"
#include "proto/macro.h"

static unsigned checks;

#define CHECK(what)                                                                     \
	do {                                                                            \
		checks++;                                                               \
		if (!(what)) {                                                          \
			fprintf(stderr, "%s:%d: %s\n", __FILE_NAME__, __LINE__, #what); \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

/* The call returns that error, and its message contains the word. */
#define CHECK_FAILS(p, call, error, word)                                                         \
	do {                                                                                      \
		int _r = (call);                                                                  \
                                                                                                  \
		checks++;                                                                         \
		if (_r != (error) || !strstr(perfpersist_error(p), word)) {                       \
			fprintf(stderr, "%s:%d: %s: returned %d (%s), said: %s\n", __FILE_NAME__, \
				__LINE__, #call, _r, strerror(_r < 0 ? -_r : 0),                  \
				perfpersist_error(p));                                            \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

#define CHECK_OK(p, call) CHECK_FAILS(p, call, 0, "")

static struct perfpersist *connect_to(const char *instance)
{
	struct perfpersist_options opts = { .sz = sizeof(opts), .instance = instance };
	struct perfpersist *p;

	CHECK_OK(NULL, perfpersist_connect(&opts, &p));
	return p;
}

static const struct perfpersist_create_options switches = {
	.sz = sizeof(switches),
	.event = "sched:sched_switch",
	.buffer = 64 << 10,
};

/* Makes the kernel switch tasks, so that it has something to record. */
static void make_switches(int n)
{
	while (n--)
		poll(NULL, 0, 1);
}

/* Counts the records in a snapshot of all rings; checks their order and the rings' counts. */
static size_t walk(struct perfpersist_snapshot *s, enum perfpersist_order order, size_t newest)
{
	struct perfpersist_merge *m;
	struct perfpersist_sample sample;
	uint64_t last = 0;
	size_t n = 0;
	int r;

	CHECK(perfpersist_merge_new(s, order, newest, &m) == 0);
	while ((r = perfpersist_merge_next(m, &sample)) > 0) {
		CHECK(sample.time && sample.raw_size && sample.record_size % 8 == 0);
		if (n++)
			CHECK(order == PERFPERSIST_OLDEST_FIRST ? sample.time >= last
								: sample.time <= last);
		last = sample.time;
	}
	CHECK(r == 0 && perfpersist_merge_damaged(m) == 0);
	perfpersist_merge_free(m);
	return n;
}

static size_t count_in_rings(struct perfpersist_event *e, struct perfpersist_snapshot *s)
{
	size_t n = 0;

	for (size_t ring = 0; ring < perfpersist_event_rings(e); ring++) {
		struct perfpersist_sample sample;
		struct perfpersist_cursor *c;
		int r;

		CHECK(perfpersist_cursor_new(s, ring, &c) == 0);
		while ((r = perfpersist_cursor_next(c, &sample)) > 0) {
			CHECK((int)sample.cpu == perfpersist_ring_cpu(e, ring));
			n++;
		}
		CHECK(r == 0);
		perfpersist_cursor_free(c);
	}
	return n;
}

/* Counts all records ever written, including overwritten ones. */
static uint64_t count_written(struct perfpersist_event *e)
{
	struct perfpersist_ring_stat stat = { .sz = sizeof(stat) };
	uint64_t n = 0;

	for (size_t ring = 0; ring < perfpersist_event_rings(e); ring++) {
		CHECK(perfpersist_ring_stat(e, ring, &stat) == 0);
		n += stat.records;
	}
	return n;
}

/* ── calls ──────────────────────────────────────────────────────────────────────────────── */

static void check_create(struct perfpersist *p)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_create_options o = switches;
	struct perfpersist_info small = { .sz = 8 };

	CHECK_OK(p, perfpersist_create(p, "t", "a", &o, &info));
	CHECK(info.id && !strcmp(info.ns, "t") && !strcmp(info.name, "a"));
	CHECK(!strcmp(info.event, o.event) && info.buffer == 64 << 10);
	CHECK(info.state == PERFPERSIST_RUNNING && info.flags & PERFPERSIST_ALL_CPUS);
	CHECK_OK(p, perfpersist_create(p, "t", "b", &o, NULL));
	CHECK_FAILS(p, perfpersist_create(p, "t", "a", &o, NULL), -EEXIST, "delete it first");
	/* perfctl never lets these through, so the daemon has to refuse them. */
	CHECK_FAILS(p, perfpersist_create(p, "t", "9", &o, NULL), -EINVAL, "cannot be an event's");
	CHECK_FAILS(p, perfpersist_create(p, "+new-1", "x", &o, NULL), -EINVAL, "a namespace's");
	CHECK_FAILS(p, perfpersist_create(p, "..", "x", &o, NULL), -EINVAL, "a namespace's");
	CHECK_FAILS(p, perfpersist_create(p, "t", "a/b", &o, NULL), -EINVAL, "take letters");
	CHECK_FAILS(p, perfpersist_create(p, "t", "x\ny", &o, NULL), -EINVAL, "take letters");
	CHECK_FAILS(p, perfpersist_create(p, "t", NULL, &o, NULL), -EINVAL, "missing");
	CHECK_FAILS(p, perfpersist_create(p, "", "x", &o, NULL), -EINVAL, "missing");
	CHECK_FAILS(p, perfpersist_create(p, "t", "x", NULL, NULL), -EINVAL, "sz");
	CHECK_FAILS(p, perfpersist_create(p, "t", "x", &o, &small), -EINVAL, "sz");
	o.sz = 4;
	CHECK_FAILS(p, perfpersist_create(p, "t", "x", &o, NULL), -EINVAL, "sz");
	o = switches;
	o.event = NULL;
	CHECK_FAILS(p, perfpersist_create(p, "t", "x", &o, NULL), -EINVAL, "missing");
	o.event = "sched:nosuch";
	CHECK_FAILS(p, perfpersist_create(p, "t", "x", &o, NULL), -ENOENT, "no tracepoint");
	o = switches;
	o.flags = 1U << 30;
	CHECK_FAILS(p, perfpersist_create(p, "t", "x", &o, NULL), -EINVAL, "flags");
	o = switches;
	o.cpus = "x";
	CHECK_FAILS(p, perfpersist_create(p, "t", "x", &o, NULL), -EINVAL, "0-3,8");
	o = switches;
	o.buffer = UINT64_MAX;
	CHECK_FAILS(p, perfpersist_create(p, "t", "x", &o, NULL), -EINVAL, "ask for less");
}

static void check_list(struct perfpersist *p)
{
	struct perfpersist_info info = { .sz = sizeof(info) }, *infos;
	size_t n;

	CHECK_OK(p, perfpersist_list(p, NULL, &infos, &n));
	CHECK(n == 2 && infos[0].id < infos[1].id && !strcmp(infos[1].name, "b"));
	free(infos);
	CHECK_OK(p, perfpersist_list(p, "t", &infos, &n));
	CHECK(n == 2);
	free(infos);
	CHECK_FAILS(p, perfpersist_list(p, "nosuch", &infos, &n), -ENOENT, "nosuch");
	CHECK_OK(p, perfpersist_show(p, "t", "b", &info));
	CHECK(!strcmp(info.name, "b"));
	CHECK_FAILS(p, perfpersist_show(p, "t", "c", &info), -ENOENT, "'c'");
}

static void check_open(struct perfpersist *p)
{
	struct perfpersist_info info = { .sz = sizeof(info) }, again = { .sz = sizeof(again) };
	struct perfpersist_event *e, *by_id;

	CHECK_OK(p, perfpersist_open(p, "t", "a", &e));
	CHECK_OK(NULL, perfpersist_event_info(e, &info));
	CHECK_OK(p, perfpersist_open_by_id(p, info.id, &by_id));
	CHECK_OK(NULL, perfpersist_event_info(by_id, &again));
	CHECK(!strcmp(again.name, "a") && again.id == info.id);
	CHECK(perfpersist_event_rings(by_id) == perfpersist_event_rings(e));
	CHECK(fcntl(perfpersist_ring_fd(e, 0), F_GETFD) & FD_CLOEXEC);
	/* The kernel forbids writable mappings. */
	CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, perfpersist_ring_fd(e, 0), 0) ==
	      MAP_FAILED);
	perfpersist_event_free(by_id);
	perfpersist_event_free(e);
	CHECK_FAILS(p, perfpersist_open(p, "t", "c", &e), -ENOENT, "'c'");
	CHECK_FAILS(p, perfpersist_open_by_id(p, 1, &e), -ENOENT, "id 1");
	CHECK_FAILS(p, perfpersist_open_by_id(p, 0, &e), -EINVAL, "id 0");
}

static void check_snapshots(struct perfpersist *p)
{
	struct perfpersist_snapshot *s;
	struct perfpersist_cursor *c;
	struct perfpersist_sample sample;
	struct perfpersist_event *e;
	uint64_t written;
	size_t n, more;

	CHECK_OK(p, perfpersist_open(p, "t", "a", &e));
	make_switches(50);
	CHECK_OK(NULL, perfpersist_snapshot_new(e, &s));
	CHECK_OK(NULL, perfpersist_snapshot_take(s));
	written = count_written(e);
	n = walk(s, PERFPERSIST_OLDEST_FIRST, 0);
	CHECK(n >= 50 && n <= written);
	CHECK(walk(s, PERFPERSIST_NEWEST_FIRST, 0) == n);
	CHECK(count_in_rings(e, s) == n && walk(s, PERFPERSIST_OLDEST_FIRST, 7) == 7);
	CHECK(perfpersist_cursor_new(s, 0, &c) == 0);
	make_switches(50);
	CHECK_OK(NULL, perfpersist_snapshot_take(s));
	CHECK(perfpersist_cursor_next(c, &sample) == -ESTALE);
	more = walk(s, PERFPERSIST_OLDEST_FIRST, 0);
	CHECK(count_written(e) >= written + 50 && more >= 50);
	perfpersist_cursor_free(c);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
	printf("  a snapshot held %zu records, the next %zu\n", n, more);
}

static void check_delete(struct perfpersist *p)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	uint64_t id;

	CHECK_OK(p, perfpersist_show(p, "t", "b", &info));
	id = info.id;
	CHECK_OK(p, perfpersist_delete_by_id(p, id, &info));
	CHECK(info.id == id && !strcmp(info.name, "b"));
	CHECK_FAILS(p, perfpersist_delete_by_id(p, id, NULL), -ENOENT, "no event");
	CHECK_OK(p, perfpersist_delete(p, "t", "a", NULL));
	CHECK_FAILS(p, perfpersist_delete(p, "t", "a", &info), -ENOENT, "no ");
	/* A freed name can be used again, for another event. */
	CHECK_OK(p, perfpersist_create(p, "t", "b", &switches, &info));
	CHECK(info.id > id);
	CHECK_OK(p, perfpersist_delete(p, "t", "b", NULL));
}

static void check_connecting(const char *instance)
{
	struct perfpersist_options o = { .sz = sizeof(o), .instance = "no-such-instance" };
	struct perfpersist_daemon_info d = { .sz = sizeof(d) };
	struct perfpersist *p = NULL;

	CHECK_FAILS(NULL, perfpersist_connect(&o, &p), -ECONNREFUSED, "no-such-instance");
	o.instance = "9";
	CHECK_FAILS(NULL, perfpersist_connect(&o, &p), -EINVAL, "instance");
	o.sz = 1;
	CHECK_FAILS(NULL, perfpersist_connect(&o, &p), -EINVAL, "sz");
	CHECK(!p);
	p = connect_to(instance);
	CHECK_OK(p, perfpersist_ping(p, &d));
	CHECK(!strcmp(d.instance, instance) && d.pid && d.engine_pid && d.version >= 1);
	CHECK(!strcmp(d.release, perfpersist_version()));
	perfpersist_free(p);
	perfpersist_free(NULL);
}

static void calls(const char *instance)
{
	struct perfpersist *p;

	check_connecting(instance);
	p = connect_to(instance);
	check_create(p);
	check_list(p);
	check_open(p);
	check_snapshots(p);
	check_delete(p);
	perfpersist_free(p);
}

/* ── async ──────────────────────────────────────────────────────────────────────────────── */

#define EVENTS 20

struct expectation {
	int error;
	size_t n;
	bool event;
	unsigned *done;
};

static void on_result(struct perfpersist *p, const struct perfpersist_result *result,
		      void *userdata)
{
	const struct expectation *x = userdata;

	if (result->error != x->error)
		fprintf(stderr, "callback: %s\n", perfpersist_error(p));
	CHECK(result->error == x->error && result->n == x->n);
	CHECK(!!result->event == x->event);
	perfpersist_event_free(result->event);
	(*x->done)++;
}

/* Runs both connections until so many callbacks have run. */
static void loop(struct perfpersist *const p[2], const unsigned *done, unsigned wanted)
{
	while (*done < wanted) {
		struct pollfd fds[2];

		for (int i = 0; i < 2; i++)
			fds[i] = (struct pollfd){ .fd = perfpersist_fd(p[i]),
						  .events = perfpersist_events(p[i]) };
		CHECK(poll(fds, 2, 60000) > 0);
		for (int i = 0; i < 2; i++)
			if (fds[i].revents)
				CHECK(perfpersist_dispatch(p[i]) >= 0);
	}
	CHECK(*done == wanted);
}

static void async(const char *instance)
{
	struct perfpersist *const p[2] = { connect_to(instance), connect_to(instance) };
	unsigned done = 0;
	struct expectation one = { .n = 1, .done = &done };
	struct expectation opened = { .event = true, .done = &done };
	struct expectation all = { .n = EVENTS, .done = &done };
	struct expectation missing = { .error = -ENOENT, .done = &done };
	char name[16];

	/* Alternates between the connections, all requests at once. */
	for (int i = 0; i < EVENTS; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		CHECK_OK(p[i % 2], perfpersist_create_async(p[i % 2], "async", name, &switches,
							    on_result, &one));
	}
	CHECK_FAILS(p[0], perfpersist_create_async(p[0], "async", NULL, &switches, on_result, &one),
		    -EINVAL, "missing");
	CHECK(done == 0);
	loop(p, &done, EVENTS);
	done = 0;
	for (int i = 0; i < EVENTS; i++) {
		struct perfpersist *q = p[(i + 1) % 2];

		snprintf(name, sizeof(name), "a%d", i);
		CHECK_OK(q, perfpersist_show_async(q, "async", name, on_result, &one));
		CHECK_OK(q, perfpersist_open_async(q, "async", name, on_result, &opened));
	}
	CHECK_OK(p[0], perfpersist_list_async(p[0], "async", on_result, &all));
	CHECK_OK(p[1], perfpersist_list_async(p[1], NULL, on_result, &all));
	CHECK_OK(p[1], perfpersist_open_async(p[1], "async", "none", on_result, &missing));
	loop(p, &done, 2 * EVENTS + 3);
	done = 0;
	for (int i = 0; i < EVENTS; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		CHECK_OK(p[i % 2],
			 perfpersist_delete_async(p[i % 2], "async", name, on_result, &one));
	}
	loop(p, &done, EVENTS);
	/* A request that is under way when its connection is freed gets exactly one -ECANCELED. */
	done = 0;
	missing.error = -ECANCELED;
	CHECK_OK(p[0], perfpersist_list_async(p[0], NULL, on_result, &missing));
	perfpersist_free(p[0]);
	CHECK(done == 1);
	perfpersist_free(p[1]);
}

/* ── outlive, gone, fds ─────────────────────────────────────────────────────────────────── */

static void say(const char *line)
{
	puts(line);
	fflush(stdout);
}

static void outlive(const char *instance)
{
	struct perfpersist *p = connect_to(instance);
	struct perfpersist_snapshot *s;
	struct perfpersist_event *e;
	char line[64];

	CHECK_OK(p, perfpersist_open(p, "t", "outlive", &e));
	perfpersist_free(p);
	CHECK_OK(NULL, perfpersist_snapshot_new(e, &s));
	say("open");
	while (fgets(line, sizeof(line), stdin)) {
		CHECK_OK(NULL, perfpersist_snapshot_take(s));
		CHECK(count_in_rings(e, s) == walk(s, PERFPERSIST_OLDEST_FIRST, 0));
		snprintf(line, sizeof(line), "%zu", count_in_rings(e, s));
		say(line);
	}
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
}

static void on_reset(struct perfpersist *p, const struct perfpersist_result *result, void *userdata)
{
	CHECK(result->error == -ECONNRESET && *perfpersist_error(p));
	++*(int *)userdata;
}

static void gone(const char *instance)
{
	struct perfpersist *p = connect_to(instance), *q = connect_to(instance);
	struct perfpersist_daemon_info d = { .sz = sizeof(d) };
	char line[64];
	int done = 0, r;

	say("connected");
	CHECK(fgets(line, sizeof(line), stdin));
	CHECK_FAILS(p, perfpersist_ping(p, &d), -ECONNRESET, "perfpersistd");
	CHECK_FAILS(p, perfpersist_ping(p, &d), -ECONNRESET, "perfpersistd");
	r = perfpersist_list_async(q, NULL, on_reset, &done);
	if (r == 0) {
		CHECK(perfpersist_dispatch(q) == -ECONNRESET);
		CHECK(done == 1);
	} else {
		CHECK(r == -ECONNRESET && done == 0);
	}
	perfpersist_free(p);
	perfpersist_free(q);
}

static void fds(void)
{
	const char *text = getenv("LISTEN_FDS");
	struct perfpersist_info info = { .sz = sizeof(info) };
	struct perfpersist_snapshot *s;
	struct perfpersist_event *e;
	int list[64], n = text ? atoi(text) : 0;

	CHECK(n > 0 && n < 63);
	for (int i = 0; i < n; i++)
		list[i] = 3 + i;
	CHECK_FAILS(NULL, perfpersist_open_fds(list, 0, &e), -EINVAL, "no descriptors");
	list[n] = 3;
	CHECK_FAILS(NULL, perfpersist_open_fds(list, (size_t)n + 1, &e), -EINVAL, "CPU");
	list[n] = 0;
	CHECK(perfpersist_open_fds(list, (size_t)n + 1, &e) == -EBADMSG);
	CHECK_OK(NULL, perfpersist_open_fds(list, (size_t)n, &e));
	for (int i = 0; i < n; i++)
		close(3 + i); /* the event holds duplicates */
	CHECK_OK(NULL, perfpersist_event_info(e, &info));
	CHECK(info.owner == UINT32_MAX && info.missed_unknown && info.state == 0);
	/* The catalog is the last one, and no ring. */
	CHECK((int)perfpersist_event_rings(e) + (perfpersist_catalog_fd(e) >= 0) == n);
	CHECK(info.sources > 1 ? fcntl(perfpersist_catalog_fd(e), F_GETFD) == FD_CLOEXEC
			       : perfpersist_catalog_fd(e) == -ENOENT);
	CHECK_OK(NULL, perfpersist_snapshot_new(e, &s));
	CHECK_OK(NULL, perfpersist_snapshot_take(s));
	printf("%zu records of %s/%s in %zu rings, of cpus %s\n",
	       walk(s, PERFPERSIST_OLDEST_FIRST, 0), info.ns, info.name, perfpersist_event_rings(e),
	       info.cpus);
	perfpersist_snapshot_free(s);
	perfpersist_event_free(e);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "", *instance = getenv("INSTANCE");

	if (!strcmp(what, "fds"))
		fds();
	else if (!instance)
		return 2;
	else if (!strcmp(what, "calls"))
		calls(instance);
	else if (!strcmp(what, "async"))
		async(instance);
	else if (!strcmp(what, "outlive"))
		outlive(instance);
	else if (!strcmp(what, "gone"))
		gone(instance);
	else
		return 2;
	fprintf(stderr, "%u checks\n", checks);
	return 0;
}
