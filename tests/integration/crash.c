// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kills broker, engine or reaper at each step of creating and of deleting an event, and looks
 * each time at what is left: the whole event or nothing of it, the answer true, others undisturbed.
 *
 *   crash INSTANCE BUILD CONFIG BROKER-UID VICTIM:ACTION:KIND…
 *
 * VICTIM: engine, broker, reaper; or recovery: the engine dies in the middle of the order, and
 * its successor at each step of its start and of its second try. ACTION: create, delete.
 * KIND: hot, generic, sampling. An event that fires all the time is there throughout.
 * A step is a system call that changes something outside the process; see tracer.h.
 */
#include <fcntl.h>
#include <string.h>

#include "tests/integration/aftermath.h"
#include "tests/integration/tracer.h"

enum victim { ENGINE, BROKER, REAPER, RECOVERY };

struct scenario {
	enum victim victim;
	bool deleting;
	struct kind *kind;
	struct tally kills;
	unsigned done, refused, unknown, there; /* outcomes; how often the event is there then */
	char refusal[512];
};

/* ── one order, and one death ───────────────────────────────────────────────────────────── */

/* What the client tells through the pipe when it is answered. */
struct answer {
	int error;
	char why[512];
};

static pid_t start_client(const struct scenario *s, int fd)
{
	struct answer a = { 0 };
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork: %m");
	if (pid > 0)
		return pid;
	a.error = change(s->kind, "victim", s->deleting, a.why);
	_exit(write(fd, &a, sizeof(a)) != sizeof(a));
}

struct hunt {
	const struct scenario *s;
	unsigned n, seen;   /* the step to kill at; how many were passed */
	pid_t prey, parent; /* parent: of the reaper, which is to come; else 0 */
	bool first;	    /* RECOVERY: the first engine is still to be killed */
	int hit;	    /* the call it was killed at; -1: not yet */
};

/* A new engine, traced from its first instruction. */
static pid_t start_traced_engine(void)
{
	int gate[2];
	pid_t pid;

	if (pipe2(gate, O_CLOEXEC) < 0)
		die("no pipe: %m");
	pid = services_spawn(&services, false, gate[0]);
	tracer_begin(pid, true);
	if (write(gate[1], "", 1) != 1)
		die("the engine does not start: %m");
	close(gate[0]);
	close(gate[1]);
	return pid;
}

static void bury(struct hunt *h, int status)
{
	pid_t dead = h->prey;

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		die("the victim ended with status 0x%x before it was killed", status);
	h->prey = 0;
	if (dead == services.broker)
		services.broker = services_spawn(&services, true, -1);
	if (dead != services.engine)
		return;
	if (h->s->victim == RECOVERY && !h->first && h->hit < 0) {
		h->prey = services.engine = start_traced_engine();
		return;
	}
	services.engine = services_spawn(&services, false, -1);
}

/* The step in whose midst RECOVERY's first engine dies: all is made, or gone, but for it. */
static bool is_last_step(int nr)
{
	return nr == SYS_renameat2;
}

static void on_prey_stopped(struct hunt *h, int status)
{
	int nr = tracer_entry(h->prey, status);

	if (nr >= 0 && (h->first ? is_last_step(nr) : ++h->seen == h->n)) {
		if (!h->first)
			h->hit = nr;
		h->first = false;
		kill(h->prey, SIGKILL);
		return;
	}
	tracer_go_on(h->prey, status, true);
}

/* The reaper's parent forked; the child comes to us stopped. Only the first one is hunted. */
static void on_reaper_born(struct hunt *h, pid_t pid)
{
	h->prey = pid;
	tracer_end(h->parent);
	h->parent = 0;
	ptrace(PTRACE_SYSCALL, pid, 0, 0);
}

static void on_stopped(struct hunt *h, pid_t pid, int status)
{
	if (pid == h->prey)
		on_prey_stopped(h, status);
	else if (pid == h->parent)
		tracer_go_on(pid, status, false);
	else if (h->parent)
		on_reaper_born(h, pid);
	else
		ptrace(PTRACE_DETACH, pid, 0, 0);
}

/*
 * Gives the order, kills at the step, lets everything be started again, and waits for the
 * answer. Returns what was answered; h->hit tells whether there was such a step.
 */
static struct answer hunt(struct hunt *h)
{
	const struct scenario *s = h->s;
	struct answer answer = { .error = -EIO };
	pid_t client, pid;
	int ends[2], status;

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("no pipe: %m");
	if (s->victim == REAPER)
		h->parent = services.engine;
	else
		h->prey = s->victim == BROKER ? services.broker : services.engine;
	tracer_begin(h->parent ?: h->prey, s->victim != REAPER);
	client = start_client(s, ends[1]);
	/* The answer may come before the death, and a reaper goes on behind it. */
	while (client || (h->prey && h->hit >= 0) ||
	       (s->victim == REAPER && (h->parent || h->prey))) {
		pid = waitpid(-1, &status, __WALL);
		if (pid < 0)
			die("nothing to wait for: %m");
		if (WIFSTOPPED(status)) {
			on_stopped(h, pid, status);
		} else if (pid == client) {
			client = 0;
		} else if (pid == h->prey && s->victim == REAPER && h->hit < 0) {
			h->prey = 0; /* it had fewer steps */
		} else if (pid == h->prey) {
			bury(h, status);
		} else if (pid == services.broker || pid == services.engine) {
			die("the %s ended by itself with status 0x%x",
			    pid == services.broker ? "broker" : "engine", status);
		}
	}
	if (h->prey)
		tracer_end(h->prey);
	close(ends[1]);
	if (read(ends[0], &answer, sizeof(answer)) != sizeof(answer))
		die("the client was not answered");
	close(ends[0]);
	return answer;
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static void note(struct scenario *s, const struct answer *a, bool there)
{
	if (a->error == 0)
		s->done++;
	else if (a->error == -ECONNRESET)
		s->unknown++;
	else
		s->refused++;
	if (a->error < 0 && a->error != -ECONNRESET)
		memcpy(s->refusal, a->why, sizeof(s->refusal));
	s->there += there;
}

/* Step by step until the order is carried out with nobody killed. */
static void run(struct scenario *s, const char *name)
{
	bool there = false, killed = true;

	for (unsigned n = 1; killed; n++) {
		struct hunt h = { .s = s, .n = n, .hit = -1, .first = s->victim == RECOVERY };
		struct answer a;

		alarm(4 * PATIENCE_SECONDS);
		if (there != s->deleting) {
			change_in_peace(s->kind, "victim", there);
			check(s->kind, s->deleting, -ECONNRESET); /* and it is quiet again */
		}
		a = hunt(&h);
		there = check(s->kind, s->deleting, a.error);
		killed = h.hit >= 0;
		if (killed)
			tally_add(&s->kills, h.hit);
		if (killed)
			note(s, &a, there);
		else if (a.error < 0)
			die("undisturbed, and yet: %s", a.why);
	}
	if (there)
		change_in_peace(s->kind, "victim", true);
	WAIT_UNTIL("no rings in the kernel but those of the other event",
		   census(ns) == bystander_rings);
	printf("%-26s %3u deaths, at", name, s->kills.n);
	tally_print(&s->kills);
	printf("\n%27sanswers: %u success, %u refused, %u connection lost; event there %u times\n",
	       "", s->done, s->refused, s->unknown, s->there);
	if (s->refused)
		printf("%27srefused with: %s\n", "", s->refusal);
	fflush(stdout);
	if (s->kills.n == 0)
		die("nobody was killed");
}

static void parse(const char *text, struct scenario *ret)
{
	static const char *const victims[] = { "engine", "broker", "reaper", "recovery" };
	char victim[16], action[16], kind[16];

	*ret = (struct scenario){ 0 };
	if (sscanf(text, "%15[^:]:%15[^:]:%15s", victim, action, kind) != 3)
		die("'%s' is not VICTIM:ACTION:KIND", text);
	for (size_t i = 0; i < ARRAY_SIZE(victims); i++)
		if (strcmp(victims[i], victim) == 0)
			ret->victim = i;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, kind) == 0)
			ret->kind = &kinds[i];
	ret->deleting = strcmp(action, "delete") == 0;
	if (!ret->kind)
		die("'%s' is no kind", kind);
}

/* Of a broker that has seen off all its clients: pings on one connection come behind the ends of
 * those before. Without that connection. */
static unsigned count_broker_fds(void)
{
	struct perfpersist_daemon_info info = { .sz = sizeof(info) };
	struct perfpersist *p;
	unsigned n;

	if (connect_daemon(&p) < 0)
		die("the broker is not there");
	for (unsigned i = 0; i < 8; i++)
		if (perfpersist_ping(p, &info) < 0)
			die("the broker does not answer: %s", perfpersist_error(p));
	n = count_fds(services.broker) - 1;
	perfpersist_free(p);
	return n;
}

/* An undisturbed event of each kind: what it looks like, and what it costs the engine. */
static unsigned learn(void)
{
	char dir[160];

	snprintf(dir, sizeof(dir), "%s/model", ns);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct perfpersist_info *infos = NULL;
		size_t n = 0;

		change_in_peace(&kinds[i], "model", false);
		names_in(dir, kinds[i].leaves, sizeof(kinds[i].leaves));
		if (!list(&infos, &n) || n != 2)
			die("the model of %s is not listed", kinds[i].name);
		kinds[i].missed_unknown = infos[1].missed_unknown;
		free(infos);
		change_in_peace(&kinds[i], "model", true);
	}
	return count_fds(services.engine);
}

static void check_engine_fds(void)
{
	unsigned before = learn(), after = before;

	for (unsigned i = 0; i < 5; i++)
		after = learn();
	if (after != before)
		die("18 more events cost the engine %d descriptors", (int)(after - before));
	printf("descriptors: broker %u as at the start, engine %u after 3 events and after 18\n",
	       broker_fds, after);
}

int main(int argc, char **argv)
{
	static const struct kind switches = { .name = "hot", .event = "sched:sched_switch" };
	struct perfpersist_info *infos = NULL;
	unsigned kills = 0;
	size_t n = 0;

	if (argc < 6)
		die("usage: crash INSTANCE BUILD CONFIG BROKER-UID VICTIM:ACTION:KIND…");
	ns = argv[1];
	services = (struct services){
		.instance = argv[1], .build = argv[2], .config = argv[3], .uid = argv[4]
	};
	if (pp_place(ns, "/registry", registry, sizeof(registry)) < 0)
		die("no such instance: %s", ns);
	signal(SIGALRM, on_alarm);
	atexit(end_services);
	services_start(&services);
	change_in_peace(&switches, "bystander", false);
	WAIT_UNTIL("a list", list(&infos, &n));
	bystander = infos[0].id;
	bystander_rings = census(ns);
	free(infos);
	learn();
	broker_fds = count_broker_fds();

	for (int i = 5; i < argc; i++) {
		struct scenario s;

		parse(argv[i], &s);
		run(&s, argv[i]);
		kills += s.kills.n;
	}
	check_engine_fds();
	change_in_peace(&switches, "bystander", true);
	WAIT_UNTIL("an empty registry", holds(".", "+last-id by-id ") && holds("by-id", ""));
	WAIT_UNTIL("no ring in the kernel", census(ns) == 0);
	services_stop(&services);
	printf("%u deaths; nothing half-made, nothing leaked, no event lost, none disturbed\n",
	       kills);
	return 0;
}
