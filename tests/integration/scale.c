// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes many events and many clients, and measures how long other clients wait. It prints figures
 * with their bars and does not judge them; it does check that every client gets its answers.
 *
 *   scale INSTANCE make NAMESPACES     an event for each tracepoint on its input, round robin
 *   scale INSTANCE list                a list of all events
 *   scale INSTANCE beside NS/EVENT TIMES TEXT
 *                                      ping, show, list of one namespace and open, while TEXT is
 *                                      created and deleted so often
 *   scale INSTANCE clients N NS/EVENT  N clients that watch, and one that never reads
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "limits.h"
#include "proto/packet.h"
#include "proto/places.h"
#include "proto/protocol.h"

#define UNDER_WAY 16 /* requests; a daemon reads no more of one client by default */
#define LISTS 20

/* ── figures ────────────────────────────────────────────────────────────────────────────── */

struct times {
	double *v; /* seconds */
	size_t n, room;
};

static void note(struct times *t, double seconds)
{
	if (t->n == t->room) {
		t->room = t->room ? 2 * t->room : 1024;
		t->v = reallocarray(t->v, t->room, sizeof(*t->v));
		if (!t->v)
			die("no memory for figures");
	}
	t->v[t->n++] = seconds;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* In milliseconds; the times are sorted. */
static double quantile(const struct times *t, double q)
{
	return 1000 * t->v[(size_t)(q * (double)(t->n - 1))];
}

static void tell_times(const char *what, struct times *t, double q, const char *bar)
{
	if (t->n == 0)
		die("%s: nothing was measured", what);
	qsort(t->v, t->n, sizeof(*t->v), compare);
	printf("  %-46s %7zu times: median %7.3f ms, p99 %7.3f ms, max %7.3f ms", what, t->n,
	       quantile(t, 0.5), quantile(t, 0.99), quantile(t, 1));
	if (bar)
		printf("; bar %s, %s", bar, quantile(t, q) <= strtod(bar, NULL) ? "met" : "MISSED");
	putchar('\n');
	fflush(stdout);
	free(t->v);
	*t = (struct times){ 0 };
}

/* ── many events ────────────────────────────────────────────────────────────────────────── */

static unsigned under_way, made;

static void on_made(struct perfpersist *p, const struct perfpersist_result *result,
		    void *userdata _unused_)
{
	if (result->error < 0)
		die("cannot create: %s", perfpersist_error(p));
	under_way--;
	made++;
}

static void dispatch(struct perfpersist *p)
{
	struct pollfd fd = { .fd = perfpersist_fd(p), .events = perfpersist_events(p) };

	if (poll(&fd, 1, PATIENCE_SECONDS * 1000) <= 0)
		die("the daemon has said nothing for %d s", PATIENCE_SECONDS);
	if (perfpersist_dispatch(p) < 0)
		die("the connection has ended: %s", perfpersist_error(p));
}

static void make(unsigned namespaces)
{
	struct perfpersist_create_options o = {
		.sz = sizeof(o), .buffer = 4096, .cpus = first_cpu(), .flags = PERFPERSIST_NO_SHARE
	};
	char event[256], ns[32], name[32];
	double begun = now();

	for (unsigned i = 0; scanf("%255s", event) == 1; i++) {
		snprintf(ns, sizeof(ns), "scale%u", i % namespaces);
		snprintf(name, sizeof(name), "e%u", i);
		o.event = event;
		while (under_way == UNDER_WAY)
			dispatch(root);
		must(root, perfpersist_create_async(root, ns, name, &o, on_made, NULL), "creating");
		under_way++;
	}
	while (under_way)
		dispatch(root);
	printf("%u events in %u namespaces, %.1f ms each\n", made, namespaces,
	       1000 * (now() - begun) / made);
}

static void list(void)
{
	struct times t = { 0 };
	size_t n = 0;

	for (unsigned i = 0; i < LISTS; i++) {
		struct perfpersist_info *all;
		double begun = now();

		must(root, perfpersist_list(root, NULL, &all, &n), "listing");
		note(&t, now() - begun);
		free(all);
	}
	printf("a list of %zu events:\n", n);
	tell_times("list", &t, 0.5, "20");
}

/* ── beside a large order ───────────────────────────────────────────────────────────────── */

static void split(const char *text, char ns[64], char name[64])
{
	if (sscanf(text, "%63[^/]/%63s", ns, name) != 2)
		die("'%s' is not NAMESPACE/EVENT", text);
}

/* The child reports its time by writing it in milliseconds. */
static pid_t create_and_delete(const char *ns, unsigned times, const char *text)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	double begun = now(), create_time = 0;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	root = connect_as(0);
	for (unsigned i = 0; i < times; i++) {
		begun = now();
		must(root, CREATE(root, ns, "large", .event = text), "creating");
		create_time += now() - begun;
		must(root, perfpersist_delete(root, ns, "large", &info), "deleting");
	}
	printf("while %s (%u tracepoints, %.0f ms to create) is created and deleted %u times:\n",
	       text, info.sources, 1000 * create_time / times, times);
	fflush(stdout);
	_exit(0);
}

static bool has_ended(pid_t pid)
{
	int status;
	pid_t got = waitpid(pid, &status, WNOHANG);

	if (got < 0 || (got == pid && status != 0))
		die("the creating client failed");
	return got == pid;
}

enum deed { PING, SHOW, LIST, OPEN, DEEDS };
static const char *const deed_names[] = { "ping", "show", "list of one namespace", "open" };

static void do_one(struct perfpersist *p, enum deed deed, const char *ns, const char *name)
{
	struct perfpersist_info info = { .sz = sizeof(info) }, *all = NULL;
	struct perfpersist_event *e = NULL;
	size_t n;

	switch (deed) {
	case PING:
		must(p, ping(p), "a ping");
		break;
	case SHOW:
		must(p, perfpersist_show(p, ns, name, &info), "showing");
		break;
	case LIST:
		must(p, perfpersist_list(p, ns, &all, &n), "listing");
		break;
	default:
		must(p, perfpersist_open(p, ns, name, &e), "opening");
	}
	free(all);
	perfpersist_event_free(e);
}

static void beside(const char *event, unsigned times, const char *text)
{
	struct times t[DEEDS] = { 0 };
	struct perfpersist *p = connect_as(FIRST_USER);
	char ns[64], name[64];
	pid_t pid;

	split(event, ns, name);
	pid = create_and_delete(ns, times, text);
	for (unsigned i = 0; !has_ended(pid); i++) {
		double begun = now();

		do_one(p, i % DEEDS, ns, name);
		note(&t[i % DEEDS], now() - begun);
		/* Without a pause this client would keep a CPU from the daemon. */
		poll(NULL, 0, 1);
	}
	for (unsigned i = 0; i < DEEDS; i++)
		tell_times(deed_names[i], &t[i], 0.99, "5");
	perfpersist_free(p);
}

/* ── many clients ───────────────────────────────────────────────────────────────────────── */

struct watcher {
	struct perfpersist *p;
	bool created, deleted;
	unsigned lost; /* how often a notice said that notices were dropped */
};

static void on_notice(struct perfpersist *p _unused_, const struct perfpersist_notice *notice,
		      void *userdata)
{
	struct watcher *w = userdata;

	/* The daemon drops notices that cost more than a share of its time, and says so; a user
	 * with a hundred watchers soon reaches that share. Such a watcher lists the events
	 * itself. */
	bool lost = notice->kind == PERFPERSIST_NOTICE_LOST;

	w->lost += lost;
	w->created |= lost || notice->kind == PERFPERSIST_NOTICE_CREATED;
	w->deleted |= lost || notice->kind == PERFPERSIST_NOTICE_DELETED;
}

/* Sends requests, watches, and never reads, until the daemon stops reading this connection. */
static void deafen(void)
{
	static uint8_t packet[PP_PACKET_MAX];
	const struct pp_msg_list_request all = { .after = 0 };
	const struct pp_msg_watch_request watch = { .ns = "" };
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct pp_header h = { .opcode = PP_OP_WATCH, .serial = 1 };
	ssize_t size = pp_encode(&h, &watch, packet, sizeof(packet));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	unsigned requests = 0;

	become(FIRST_USER);
	if (fd < 0 ||
	    pp_place(instance, "/control", address.sun_path, sizeof(address.sun_path)) < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || size < 0 ||
	    send(fd, packet, (size_t)size, MSG_NOSIGNAL) != size)
		die("cannot connect: %m");
	become(0);
	h = (struct pp_header){ .opcode = PP_OP_LIST, .serial = 2 };
	size = pp_encode(&h, &all, packet, sizeof(packet));
	/* The connection is full if it stays full while the daemon answers another client. */
	for (unsigned full = 0; full < 3; full++) {
		must(root, ping(root), "a ping");
		for (; send(fd, packet, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT) > 0; full = 0)
			requests++;
	}
	printf("  one sent %u requests and reads no answer\n", requests);
}

static void all_are_told(struct watcher *w, unsigned n, bool deleted)
{
	for (unsigned i = 0; i < n; i++)
		while (!(deleted ? w[i].deleted : w[i].created))
			dispatch(w[i].p);
}

static void clients(unsigned n, const char *event)
{
	struct times pings = { 0 }, shows = { 0 }, opens = { 0 }, told = { 0 };
	struct watcher *w = calloc(n, sizeof(*w));
	unsigned lost = 0;
	char ns[64], name[64];
	struct rlimit limit = { n + 100, n + 100 };

	split(event, ns, name);
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		die("cannot have %u descriptors: %m", n + 100);
	for (unsigned i = 0; w && i < n; i++) {
		w[i].p = connect_as(FIRST_USER + i % 5);
		must(w[i].p, perfpersist_watch(w[i].p, NULL, on_notice, &w[i]), "watching");
	}
	printf("%u clients of 5 users, all watching:\n", n);
	deafen();
	for (unsigned i = 0; w && i < n; i++) {
		double begun = now();

		do_one(w[i].p, PING, ns, name);
		note(&pings, now() - begun);
		begun = now();
		do_one(w[i].p, SHOW, ns, name);
		note(&shows, now() - begun);
		begun = now();
		do_one(w[i].p, OPEN, ns, name);
		note(&opens, now() - begun);
	}
	for (unsigned i = 0; w && i < LISTS; i++) {
		double begun = now();

		for (unsigned k = 0; k < n; k++)
			w[k].created = w[k].deleted = false;
		must(root, CREATE(root, ns, "told", .event = NULL), "creating");
		all_are_told(w, n, false);
		must(root, perfpersist_delete(root, ns, "told", NULL), "deleting");
		all_are_told(w, n, true);
		note(&told, now() - begun);
	}
	tell_times("ping, each once", &pings, 0.99, "5");
	tell_times("show, each once", &shows, 0.99, "5");
	tell_times("open, each once", &opens, 0.99, "5");
	tell_times("event made and deleted, all told of both", &told, 0.5, NULL);
	for (unsigned i = 0; w && i < n; i++)
		lost += w[i].lost;
	printf("  %u times somebody was told that notices were dropped\n", lost);
	for (unsigned i = 0; w && i < n; i++)
		perfpersist_free(w[i].p);
	free(w);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";

	if (argc < 3)
		die("usage: scale INSTANCE make|list|beside|clients …");
	begin(argv[1]);
	if (strcmp(what, "make") == 0 && argc == 4)
		make((unsigned)atoi(argv[3]));
	else if (strcmp(what, "list") == 0)
		list();
	else if (strcmp(what, "beside") == 0 && argc == 6)
		beside(argv[3], (unsigned)atoi(argv[4]), argv[5]);
	else if (strcmp(what, "clients") == 0 && argc == 5)
		clients((unsigned)atoi(argv[3]), argv[4]);
	else
		die("not understood: %s", what);
	perfpersist_free(root);
	return 0;
}
