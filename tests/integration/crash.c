// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Kills broker, engine, dumper or reaper at each step of every request about events, and checks the
 * result each time: the request is carried out completely or not at all, the answer is true, and
 * other events are undisturbed.
 *
 *   crash INSTANCE BUILD CONFIG BROKER-UID 3<SCENARIOS
 *
 * Scenarios are lines of 48 bytes, padded with blanks, so that several of these programs, each with
 * an instance of its own, can share one open file: each takes the next line. A scenario is
 * VICTIM:ACT:KIND [PART/PARTS [EVERY]]: other scenarios have the other parts of the steps, and
 * EVERY > 1 leaves some of them out (see tracer.h). The scenario "descriptors" looks for leaked
 * descriptors.
 *
 * VICTIM: engine, broker, dumper, reaper; or recovery: the engine dies in the middle of the order,
 * and its successor at each step of its start and of its second attempt. ACT: create, delete and
 * the others in acts.h; KIND: hot, generic, sampling, several, waking. An event that fires all the
 * time exists throughout. A step is a system call that changes something outside the process; see
 * tracer.h.
 */
#include <fcntl.h>
#include <string.h>

#include "tests/integration/aftermath.h"
#include "tests/integration/tracer.h"

#define SCENARIOS 3 /* the descriptor */
#define LINE 48

static const struct victim {
	const char *name;
	enum service service;
	bool reaper;   /* kill the engine's child instead */
	bool recovery; /* kill its successor as well */
} victims[] = {
	{ "engine", ENGINE, false, false },  { "broker", BROKER, false, false },
	{ "dumper", DUMPER, false, false },  { "reaper", ENGINE, true, false },
	{ "recovery", ENGINE, false, true },
};

struct scenario {
	const char *name;
	const struct victim *victim;
	const struct act *act;
	struct kind *kind;
	unsigned part, parts; /* kill at the steps part, part + parts, … */
	unsigned every;	      /* kill at each EVERY-th of those */
	struct tally kills;
	unsigned done, refused, unknown, changed; /* answers; how often the act was done then */
	char refusal[512];
};

/* ── one order, and one death ───────────────────────────────────────────────────────────── */

/* The client writes this to the pipe when it has the daemon's answer. */
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
	struct choice choice;
	unsigned n, seen;   /* the step to kill at, among the chosen ones; how many have passed */
	pid_t prey, parent; /* the reaper's parent, until the reaper starts; else 0 */
	bool first;	    /* recovery: the first engine is still alive */
	bool waits;	    /* the victim waits for other processes */
	int hit;	    /* the system call at which the victim was killed; -1: not yet */
};

/* Starts a new engine and traces it from its first instruction. */
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

/* The step in whose midst the first engine of a recovery dies: all is made, or gone, but for it; in
 * particular the link of a name, and what the texts say when the oldest name has gone. */
static bool is_last_step(const struct act *act, int call)
{
	if (!strcmp(act->name, "create"))
		return call_is(call, "symlink");
	if (!strcmp(act->name, "bequeath"))
		return call_is(call, "chmod");
	return call == SYS_renameat2;
}

/* Whether the victim dies before this call. */
static bool is_fatal(struct hunt *h, int call)
{
	if (!call_counts(call))
		return false;
	if (h->first)
		return is_last_step(h->s->act, call);
	return choice_take(&h->choice, call) && ++h->seen == h->n;
}

static void on_prey_stopped(struct hunt *h, int status)
{
	int call = tracer_entry(h->prey, status);

	h->waits = call_waits(call);
	if (is_fatal(h, call)) {
		if (!h->first)
			h->hit = call;
		h->first = false;
		kill(h->prey, SIGKILL);
		return;
	}
	tracer_go_on(h->prey, status, true);
}

/* The reaper's parent has forked; the child arrives stopped. Only the first child is a victim. */
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

/* One of our processes has stopped or exited. */
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

/* Whether all work for the request has ended after the answer. */
static bool is_settled(void)
{
	char top[256];

	snprintf(top, sizeof(top), "+last-id by-id %s ", ns);
	return holds(".", top);
}

/* Whether the hunt continues: it includes the work after the answer (rings are reaped and
 * released). quiet: nothing happened just now. */
static bool is_on(const struct hunt *h, pid_t client, bool quiet)
{
	if (client || (h->prey && h->hit >= 0))
		return true;
	if (h->s->victim->reaper)
		return h->parent || h->prey;
	return h->hit < 0 && h->prey && !(quiet && h->waits && is_settled());
}

/*
 * Sends the request, kills the victim at the step, restarts all processes, and waits for the
 * answer. Returns the answer; h->hit says whether the step occurred.
 */
static struct answer hunt(struct hunt *h)
{
	const struct scenario *s = h->s;
	struct answer answer = { .error = -EIO };
	pid_t client, pid = 0;
	int ends[2], status;

	if (pipe2(ends, O_CLOEXEC) < 0)
		die("no pipe: %m");
	if (s->victim->reaper)
		h->parent = services.pid[ENGINE];
	else
		h->prey = services.pid[s->victim->service];
	tracer_begin(h->parent ?: h->prey, !s->victim->reaper);
	client = start_client(s, ends[1]);
	while (is_on(h, client, pid == 0)) {
		pid = tracer_wait(&status);
		if (pid < 0)
			die("nothing to wait for: %m");
		if (pid > 0)
			on_news(h, &client, pid, status);
	}
	if (h->prey)
		tracer_end(h->prey);
	close(ends[1]);
	if (read(ends[0], &answer, sizeof(answer)) != sizeof(answer))
		die("the client was not answered");
	close(ends[0]);
	return answer;
}

/* ── all scenarios ──────────────────────────────────────────────────────────────────────── */

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

/* Deletes every event except the bystander. */
static void clear(const struct kind *kind)
{
	_cleanup_(sight_done) struct sight s = { .n = 0 };

	WAIT_UNTIL("a list", look(&s));
	if (s.victim)
		ask_in_peace(delete_victim, kind);
	if (s.second)
		ask_in_peace(delete_second, kind);
}

static void make_anew(const struct scenario *s)
{
	unsigned before = s->act->before;

	clear(s->kind);
	if (before & IS_THERE)
		ask_in_peace(create_victim, s->kind);
	if (before & IS_SHARED)
		ask_in_peace(create_second, s->kind);
	if (before & IS_IDLE)
		ask_in_peace(pause_victim, s->kind);
}

/* Creates the events that the act needs. done: the act was carried out; otherwise nothing
 * changed. */
static void prepare(const struct scenario *s, bool done)
{
	if (done && s->act->undo)
		ask_in_peace(s->act->undo, s->kind);
	else
		make_anew(s);
	if (s->act->before & IS_THERE) {
		_cleanup_(sight_done) struct sight seen = { .n = 0 };

		WAIT_UNTIL("a list", look(&seen));
		rings_id = seen.victim->id;
	}
	check(s->kind, s->act, -ECONNRESET); /* and waits until it is idle again */
}

/* The record of its name is another event's by another. */
static void forget_name(char *leaves)
{
	char *name = strstr(leaves, "name-");

	if (!name)
		die("an event has no name in its directory: %s", leaves);
	memmove(name, strchr(name, ' ') + 1, strlen(strchr(name, ' ')));
}

/* Learns how an undisturbed event of this kind looks. */
static void learn(struct kind *kind)
{
	_cleanup_(sight_done) struct sight s = { .n = 0 };
	char dir[160];

	snprintf(dir, sizeof(dir), "%s/%s", ns, VICTIM);
	ask_in_peace(create_victim, kind);
	ask_in_peace(copy_victim, kind);
	names_in(dir, kind->leaves, sizeof(kind->leaves));
	forget_name(kind->leaves);
	WAIT_UNTIL("a list", look(&s));
	if (s.n != 2 || !s.victim)
		die("the model of %s is not listed", kind->name);
	kind->missed_unknown = s.victim->missed_unknown;
	kind->memory = s.victim->memory;
	ask_in_peace(delete_victim, kind);
}

static void tell(const struct scenario *s)
{
	printf("%-30s %3u deaths, at", s->name, s->kills.n);
	tally_print(&s->kills);
	printf("\n%31sanswers: %u success, %u refused, %u connection lost; done %u times\n", "",
	       s->done, s->refused, s->unknown, s->changed);
	if (s->refused)
		printf("%31srefused with: %s\n", "", s->refusal);
	fflush(stdout);
}

/* Kills at each step in turn, until the daemon carries out the order with no kill. */
static void run(struct scenario *s)
{
	bool killed = true, done = false;

	alarm(4 * PATIENCE_SECONDS);
	learn(s->kind);
	prepare(s, false);
	for (unsigned n = s->part; killed; n += s->parts) {
		struct hunt h = { .s = s,
				  .n = n,
				  .hit = -1,
				  .first = s->victim->recovery,
				  .choice.every = s->every };
		struct answer a;

		alarm(4 * PATIENCE_SECONDS);
		if (done)
			prepare(s, true);
		h.choice.n = s->act->name[0] + s->kind->name[0] + s->victim->name[0];
		a = hunt(&h);
		done = check(s->kind, s->act, a.error);
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
	tell(s);
	if (s->kills.n == 0)
		die("no process was killed");
}

static void parse(const char *text, struct scenario *ret)
{
	char victim[16], act[16], kind[16];
	int n;

	*ret = (struct scenario){ .name = text, .part = 1, .parts = 1, .every = 1 };
	n = sscanf(text, "%15[^:]:%15[^:]:%15s %u/%u %u", victim, act, kind, &ret->part,
		   &ret->parts, &ret->every);
	if (n < 3 || ret->part == 0 || ret->part > ret->parts || ret->every == 0)
		die("'%s' is not VICTIM:ACT:KIND [PART/PARTS [EVERY]]", text);
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

/* The descriptors of a broker without clients: it answers a ping on a new connection after it has
 * closed the earlier ones. Does not count that connection. */
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

/* It waits for orders: what it closes behind an answer is closed. */
static bool is_idle(pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];
	long call = -1;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "re");
	if (!f || fscanf(f, "%ld", &call) != 1) /* "running" */
		return false;
#ifdef SYS_poll
	if (call == SYS_poll)
		return true;
#endif
	return call == SYS_ppoll;
}

/* The engine's descriptors after an event of each kind. */
static unsigned learn_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		learn(&kinds[i]);
	WAIT_UNTIL("an engine that waits", is_idle(services.pid[ENGINE]));
	return count_fds(services.pid[ENGINE]);
}

static void check_engine_fds(void)
{
	unsigned before = learn_all(), after = before;

	for (unsigned i = 0; i < 5; i++)
		after = learn_all();
	if (after != before)
		die("%zu more events cost the engine %d descriptors", 5 * ARRAY_SIZE(kinds),
		    (int)(after - before));
	printf("descriptors: broker %u as at the start, engine %u after %zu events and after %zu\n",
	       broker_fds, after, ARRAY_SIZE(kinds), 6 * ARRAY_SIZE(kinds));
}

/* The event that exists throughout. */
static int create_bystander(struct perfpersist *p, const struct kind *kind)
{
	return create_as(p, kind, "bystander", 0);
}

static int delete_bystander(struct perfpersist *p, const struct kind *kind _unused_)
{
	return perfpersist_delete(p, ns, "bystander", NULL);
}

static int copy_bystander(struct perfpersist *p, const struct kind *kind _unused_)
{
	return copy(p, "bystander");
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
	ask_in_peace(copy_bystander, NULL); /* connects broker and dumper */
	broker_fds = count_broker_fds();
}

static void end(void)
{
	ask_in_peace(delete_bystander, NULL);
	WAIT_UNTIL("an empty registry", holds(".", "+last-id by-id ") && holds("by-id", ""));
	WAIT_UNTIL("no ring in the kernel", census(ns) == 0);
	services_stop(&services);
}

static void trim(char name[LINE])
{
	unsigned n = LINE;

	while (n > 0 && strchr(" \n", name[n - 1]))
		n--;
	name[MIN(n, LINE - 1U)] = 0;
}

/* Reads the next scenario into name, NUL-terminated; false: there are no more. */
static bool next(char name[LINE])
{
	ssize_t n = read(SCENARIOS, name, LINE);

	if (n != 0 && n != LINE)
		die("a scenario is a line of 48 bytes: %m");
	if (n > 0)
		trim(name);
	return n > 0;
}

int main(int argc, char **argv)
{
	unsigned kills = 0;
	char name[LINE];

	if (argc != 5)
		die("usage: crash INSTANCE BUILD CONFIG BROKER-UID 3<SCENARIOS");
	ns = argv[1];
	services = (struct services){
		.instance = argv[1], .build = argv[2], .config = argv[3], .uid = argv[4]
	};
	if (pp_place(ns, "/registry", registry, sizeof(registry)) < 0)
		die("no such instance: %s", ns);
	signal(SIGALRM, on_alarm);
	fcntl(SCENARIOS, F_SETFD, FD_CLOEXEC);
	tracer_block();
	atexit(end_services);
	begin();
	while (next(name)) {
		struct scenario s;

		if (strcmp(name, "descriptors") == 0) {
			check_engine_fds();
			continue;
		}
		parse(name, &s);
		run(&s);
		kills += s.kills.n;
	}
	end();
	printf("%u deaths; nothing half-made, nothing leaked, no event lost, none disturbed\n",
	       kills);
	return 0;
}
