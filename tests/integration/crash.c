// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kills broker, engine, dumper or reaper at each step of what can be asked of events, and looks
 * each time at what is left: all of what was asked for or nothing of it, the answer true, others
 * undisturbed.
 *
 *   crash INSTANCE BUILD CONFIG BROKER-UID VICTIM:ACT:KIND…
 *
 * VICTIM: engine, broker, dumper, reaper; or recovery: the engine dies in the middle of the order,
 * and its successor at each step of its start and of its second try. ACT: create, delete and what
 * else there is in acts.h; KIND: hot, generic, sampling, several, waking. An event that fires all
 * the time is there throughout. A step is a system call that changes something outside the
 * process; see tracer.h.
 */
#include <fcntl.h>
#include <string.h>

#include "tests/integration/aftermath.h"
#include "tests/integration/tracer.h"

static const struct victim {
	const char *name;
	enum service service;
	bool reaper;   /* the engine's child instead */
	bool recovery; /* its successor as well */
} victims[] = {
	{ "engine", ENGINE, false, false },  { "broker", BROKER, false, false },
	{ "dumper", DUMPER, false, false },  { "reaper", ENGINE, true, false },
	{ "recovery", ENGINE, false, true },
};

struct scenario {
	const struct victim *victim;
	const struct act *act;
	struct kind *kind;
	struct tally kills;
	unsigned done, refused, unknown, changed; /* answers; how often the act is done then */
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
	a.error = ask(s->act->order, s->kind, a.why);
	_exit(write(fd, &a, sizeof(a)) != sizeof(a));
}

struct hunt {
	const struct scenario *s;
	unsigned n, seen;   /* the step to kill at; how many were passed */
	pid_t prey, parent; /* parent: of the reaper, which is to come; else 0 */
	bool first;	    /* recovery: the first engine is still to be killed */
	int hit;	    /* the call it was killed at; -1: not yet */
};

/* A new engine, traced from its first instruction. */
static pid_t start_traced_engine(void)
{
	int gate[2];
	pid_t pid;

	if (pipe2(gate, O_CLOEXEC) < 0)
		die("no pipe: %m");
	pid = services_spawn(&services, ENGINE, gate[0]);
	tracer_begin(pid, true);
	if (write(gate[1], "", 1) != 1)
		die("the engine does not start: %m");
	close(gate[0]);
	close(gate[1]);
	return pid;
}

static void bury(struct hunt *h, int status)
{
	enum service service = services_which(&services, h->prey);

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		die("the victim ended with status 0x%x before it was killed", status);
	h->prey = 0;
	if (service == SERVICES)
		return;
	if (h->s->victim->recovery && !h->first && h->hit < 0) {
		h->prey = services.pid[ENGINE] = start_traced_engine();
		return;
	}
	services.pid[service] = services_spawn(&services, service, -1);
}

/* The step in whose midst the first engine of a recovery dies: all is made, or gone, but for it. */
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

/* One of ours has stopped or ended. */
static void on_news(struct hunt *h, pid_t *client, pid_t pid, int status)
{
	enum service service = services_which(&services, pid);

	if (WIFSTOPPED(status))
		on_stopped(h, pid, status);
	else if (pid == *client)
		*client = 0;
	else if (pid == h->prey && h->s->victim->reaper && h->hit < 0)
		h->prey = 0; /* it had fewer steps */
	else if (pid == h->prey)
		bury(h, status);
	else if (service < SERVICES)
		die("%s ended by itself with status 0x%x", service_kinds[service].program, status);
}

/* Whether nothing of what was asked for goes on behind the answer. */
static bool is_settled(void)
{
	char top[256];

	snprintf(top, sizeof(top), "+last-id by-id %s ", ns);
	return holds(".", top);
}

/* Whether the hunt goes on: what follows the answer (rings are reaped and released) is hunted,
 * too. */
static bool is_on(const struct hunt *h, pid_t client)
{
	if (client || (h->prey && h->hit >= 0))
		return true;
	if (h->s->victim->reaper)
		return h->parent || h->prey;
	return h->hit < 0 && h->prey && !is_settled();
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
	if (s->victim->reaper)
		h->parent = services.pid[ENGINE];
	else
		h->prey = services.pid[s->victim->service];
	tracer_begin(h->parent ?: h->prey, !s->victim->reaper);
	client = start_client(s, ends[1]);
	while (is_on(h, client)) {
		pid = waitpid(-1, &status, client ? __WALL : __WALL | WNOHANG);
		if (pid < 0)
			die("nothing to wait for: %m");
		if (pid > 0)
			on_news(h, &client, pid, status);
		else
			poll(NULL, 0, 1);
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

static void note(struct scenario *s, const struct answer *a, bool done)
{
	if (a->error == 0)
		s->done++;
	else if (a->error == -ECONNRESET)
		s->unknown++;
	else
		s->refused++;
	if (a->error < 0 && a->error != -ECONNRESET)
		memcpy(s->refusal, a->why, sizeof(s->refusal));
	s->changed += done;
}

/* No event but the other one. */
static void clear(const struct kind *kind)
{
	_cleanup_(sight_done) struct sight s = { .n = 0 };

	WAIT_UNTIL("a list", look(&s));
	if (s.victim)
		ask_in_peace(delete_victim, kind);
	if (s.second)
		ask_in_peace(delete_second, kind);
}

/* What must be there before the act, made anew. */
static void prepare(const struct scenario *s)
{
	const struct presence *p = &s->act->before;

	clear(s->kind);
	if (p->victim)
		ask_in_peace(create_victim, s->kind);
	if (p->second)
		ask_in_peace(create_second, s->kind);
	if (p->idle)
		ask_in_peace(pause_victim, s->kind);
	if (p->victim) {
		_cleanup_(sight_done) struct sight seen = { .n = 0 };

		WAIT_UNTIL("a list", look(&seen));
		rings_id = seen.victim->id;
	}
	check(s->kind, s->act, -ECONNRESET); /* and it is quiet again */
}

/* Step by step until the order is carried out with nobody killed. */
static void run(struct scenario *s, const char *name)
{
	bool prepared = false, killed = true, done = false;

	for (unsigned n = 1; killed; n++) {
		struct hunt h = { .s = s, .n = n, .hit = -1, .first = s->victim->recovery };
		struct answer a;

		alarm(4 * PATIENCE_SECONDS);
		if (!prepared)
			prepare(s);
		a = hunt(&h);
		done = check(s->kind, s->act, a.error);
		prepared = !done;
		killed = h.hit >= 0;
		if (killed)
			tally_add(&s->kills, h.hit);
		if (killed)
			note(s, &a, done);
		else if (a.error < 0)
			die("undisturbed, and yet: %s", a.why);
	}
	clear(s->kind);
	WAIT_UNTIL("no rings in the kernel but those of the other event",
		   census(ns) == bystander_rings);
	printf("%-26s %3u deaths, at", name, s->kills.n);
	tally_print(&s->kills);
	printf("\n%27sanswers: %u success, %u refused, %u connection lost; done %u times\n", "",
	       s->done, s->refused, s->unknown, s->changed);
	if (s->refused)
		printf("%27srefused with: %s\n", "", s->refusal);
	fflush(stdout);
	if (s->kills.n == 0)
		die("nobody was killed");
}

static void parse(const char *text, struct scenario *ret)
{
	char victim[16], act[16], kind[16];

	*ret = (struct scenario){ 0 };
	if (sscanf(text, "%15[^:]:%15[^:]:%15s", victim, act, kind) != 3)
		die("'%s' is not VICTIM:ACT:KIND", text);
	for (size_t i = 0; i < ARRAY_SIZE(victims); i++)
		if (strcmp(victims[i].name, victim) == 0)
			ret->victim = &victims[i];
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		if (strcmp(acts[i].name, act) == 0)
			ret->act = &acts[i];
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, kind) == 0)
			ret->kind = &kinds[i];
	if (!ret->victim || !ret->act || !ret->kind)
		die("'%s' has a word that is not known", text);
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
	n = count_fds(services.pid[BROKER]) - 1;
	perfpersist_free(p);
	return n;
}

/* An undisturbed event of each kind: what it looks like, and what it costs the engine. Its copy
 * makes broker and dumper know each other. */
static unsigned learn(void)
{
	char dir[160];

	snprintf(dir, sizeof(dir), "%s/%s", ns, VICTIM);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		_cleanup_(sight_done) struct sight s = { .n = 0 };

		ask_in_peace(create_victim, &kinds[i]);
		ask_in_peace(copy_victim, &kinds[i]);
		names_in(dir, kinds[i].leaves, sizeof(kinds[i].leaves));
		if (!look(&s) || s.n != 2 || !s.victim)
			die("the model of %s is not listed", kinds[i].name);
		kinds[i].missed_unknown = s.victim->missed_unknown;
		ask_in_peace(delete_victim, &kinds[i]);
	}
	return count_fds(services.pid[ENGINE]);
}

static void check_engine_fds(void)
{
	unsigned before = learn(), after = before;

	for (unsigned i = 0; i < 5; i++)
		after = learn();
	if (after != before)
		die("%zu more events cost the engine %d descriptors", 5 * ARRAY_SIZE(kinds),
		    (int)(after - before));
	printf("descriptors: broker %u as at the start, engine %u after %zu events and after %zu\n",
	       broker_fds, after, ARRAY_SIZE(kinds), 6 * ARRAY_SIZE(kinds));
}

/* The event that is there throughout. */
static int create_bystander(struct perfpersist *p, const struct kind *kind)
{
	return create_as(p, kind, "bystander", 0);
}

static int delete_bystander(struct perfpersist *p, const struct kind *kind _unused_)
{
	return perfpersist_delete(p, ns, "bystander", NULL);
}

static void begin(void)
{
	static const struct kind switches = { .name = "hot", .event = "sched:sched_switch" };
	_cleanup_(sight_done) struct sight s = { .n = 0 };

	services_start(&services);
	WAIT_UNTIL("the daemon", look(&s));
	ask_in_peace(create_bystander, &switches);
	sight_done(&s);
	WAIT_UNTIL("a list", look(&s));
	bystander = s.bystander->id;
	bystander_rings = census(ns);
	learn();
	broker_fds = count_broker_fds();
}

static void end(void)
{
	check_engine_fds();
	ask_in_peace(delete_bystander, NULL);
	WAIT_UNTIL("an empty registry", holds(".", "+last-id by-id ") && holds("by-id", ""));
	WAIT_UNTIL("no ring in the kernel", census(ns) == 0);
	services_stop(&services);
}

int main(int argc, char **argv)
{
	unsigned kills = 0;

	if (argc < 6)
		die("usage: crash INSTANCE BUILD CONFIG BROKER-UID VICTIM:ACT:KIND…");
	ns = argv[1];
	services = (struct services){
		.instance = argv[1], .build = argv[2], .config = argv[3], .uid = argv[4]
	};
	if (pp_place(ns, "/registry", registry, sizeof(registry)) < 0)
		die("no such instance: %s", ns);
	signal(SIGALRM, on_alarm);
	atexit(end_services);
	begin();
	for (int i = 5; i < argc; i++) {
		struct scenario s;

		parse(argv[i], &s);
		run(&s, argv[i]);
		kills += s.kills.n;
	}
	end();
	printf("%u deaths; nothing half-made, nothing leaked, no event lost, none disturbed\n",
	       kills);
	return 0;
}
