// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Clients of several users make every kind of request, and each is killed at a random time. In the
 * end the daemon charges nothing.
 *
 *   limits-killed INSTANCE NAMESPACE SEED KILLS
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "limits.h"

#define CLIENTS 3 /* at a time */
#define NAMES 6
#define OPEN 4 /* that a client keeps open */

static const char *ns;

/* xorshift64* */
static uint64_t state;

static unsigned chance(unsigned n)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (unsigned)((state * 0x2545f4914f6cdd1dULL) >> 33) % n;
}

static void seed(uint64_t number)
{
	state = (number + 1) * 0x9e3779b97f4a7c15ULL;
}

/* ── a client ───────────────────────────────────────────────────────────────────────────── */

/* The client may be killed in the middle of any of these. */
struct client {
	struct perfpersist *p;
	struct perfpersist_event *open[OPEN];
	char name[8];
};

/* Another client may have the name by now, the limit may be reached, the event may be gone or
 * belong to another: no other error is allowed. */
static bool fine(const struct client *c, int err)
{
	static const int expected[] = { EDQUOT, ENOENT, EEXIST, EBUSY, EAGAIN };

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		if (err == -expected[i])
			return false;
	if (err < 0)
		die("%s: %s", strerrorname_np(-err), perfpersist_error(c->p));
	return true;
}

static void do_create(struct client *c)
{
	static const char *const events[] = { "oom:mark_victim", "alignment-faults",
					      "oom:mark_victim,alignment-faults" };

	fine(c, CREATE(c->p, ns, c->name, .event = events[chance(3)], .buffer = 16384U << chance(3),
		       .flags = PERFPERSIST_WAKEUP | (chance(2) ? PERFPERSIST_SHARE : 0)));
}

static void do_delete(struct client *c)
{
	fine(c, perfpersist_delete(c->p, ns, c->name, NULL));
}

static void keep(struct client *c, struct perfpersist_event *e)
{
	unsigned i = chance(OPEN);

	perfpersist_event_free(c->open[i]);
	c->open[i] = e;
}

static void do_open(struct client *c)
{
	struct perfpersist_event *e;

	if (fine(c, perfpersist_open(c->p, ns, c->name, &e)))
		keep(c, e);
}

static void do_copy(struct client *c)
{
	struct perfpersist_event *e;

	if (fine(c, perfpersist_open_copy(c->p, ns, c->name, &e)))
		keep(c, e);
}

static void on_notice(struct perfpersist *p _unused_,
		      const struct perfpersist_notice *notice _unused_, void *userdata _unused_)
{
}

static void do_watch(struct client *c)
{
	fine(c, perfpersist_watch(c->p, chance(2) ? ns : NULL, on_notice, NULL));
}

static void do_wakeup(struct client *c)
{
	int fd;

	if (fine(c, perfpersist_wakeup(c->p, ns, c->name, &fd)))
		close(fd);
}

static void do_list(struct client *c)
{
	_cleanup_free_ struct perfpersist_info *all = NULL;
	size_t n;

	fine(c, perfpersist_list(c->p, NULL, &all, &n));
}

static void do_change(struct client *c)
{
	struct perfpersist_change_options o = {
		.sz = sizeof(o),
		.what = chance(2) ? PERFPERSIST_CHANGE_BUFFER : PERFPERSIST_CHANGE_MAX_RATE,
		.buffer = 16384U << chance(3),
		.max_rate = 1 + chance(1000),
	};
	int r = perfpersist_change(c->p, ns, c->name, &o, NULL);

	/* Only root and the event's creator may change its buffers. */
	if (r != -EACCES)
		fine(c, r);
}

static void do_pause(struct client *c)
{
	fine(c, perfpersist_pause(c->p, ns, chance(4) ? c->name : NULL, chance(2), NULL));
}

static void on_result(struct perfpersist *p _unused_, const struct perfpersist_result *result,
		      void *userdata _unused_)
{
	perfpersist_event_free(result->event);
}

/* Sends several requests at once, without a look at the answers. */
static void do_many(struct client *c)
{
	const struct perfpersist_create_options o = {
		.sz = sizeof(o), .event = "oom:mark_victim", .buffer = 4096, .cpus = first_cpu()
	};

	perfpersist_create_async(c->p, ns, c->name, &o, on_result, NULL);
	perfpersist_open_async(c->p, ns, c->name, on_result, NULL);
	perfpersist_list_async(c->p, ns, on_result, NULL);
	perfpersist_delete_async(c->p, ns, c->name, on_result, NULL);
	perfpersist_dispatch(c->p);
}

/* *begun counts the requests that the client has begun. */
__attribute__((noreturn)) static void live(uint64_t number, uid_t uid, unsigned *begun)
{
	static void (*const deeds[])(struct client * c) = {
		do_create, do_create, do_create, do_delete, do_open,   do_open,	 do_copy,
		do_watch,  do_wakeup, do_list,	 do_change, do_change, do_pause, do_many,
	};
	struct client c = { .p = connect_as(uid) };

	for (seed(number);; __atomic_add_fetch(begun, 1, __ATOMIC_RELEASE)) {
		snprintf(c.name, sizeof(c.name), "k%u", chance(NAMES));
		deeds[chance(ARRAY_SIZE(deeds))](&c);
	}
}

/* ── those who kill ─────────────────────────────────────────────────────────────────────── */

struct victim {
	pid_t pid;
	unsigned *begun;
	unsigned until; /* it has begun this many */
	double later;	/* and this many seconds have passed */
};

static void bear(struct victim *v, uint64_t number, unsigned which)
{
	*v->begun = 0;
	v->until = 1 + chance(12);
	v->later = chance(4000) / 1e6;
	v->pid = fork();
	if (v->pid < 0)
		die("cannot fork: %m");
	if (v->pid == 0) {
		if (perfpersist_fd(root) >= 0)
			close(perfpersist_fd(root));
		live(number, which == 0 ? 0 : FIRST_USER + which, v->begun);
	}
}

static bool has_begun(const struct victim *v)
{
	if (waitpid(v->pid, NULL, WNOHANG) != 0)
		die("a client ended by itself");
	return __atomic_load_n(v->begun, __ATOMIC_ACQUIRE) >= v->until;
}

static unsigned kill_it(struct victim *v)
{
	double end;
	int status;

	AWAIT(has_begun(v), "a client to do something");
	for (end = now() + v->later; now() < end;)
		sched_yield();
	kill(v->pid, SIGKILL);
	if (waitpid(v->pid, &status, 0) != v->pid || !WIFSIGNALED(status))
		die("a client ended by itself with status 0x%x", status);
	return *v->begun;
}

static void delete_all(void)
{
	_cleanup_free_ struct perfpersist_info *all = NULL;
	size_t n = 0;

	must(root, perfpersist_list(root, NULL, &all, &n), "listing");
	for (size_t i = 0; i < n; i++) {
		int r = perfpersist_delete_by_id(root, all[i].id, NULL);

		/* The creation or deletion of these is still under way. */
		if (r < 0 && r != -EBUSY && r != -ENOENT)
			die("cannot delete: %s", perfpersist_error(root));
	}
}

static bool all_is_gone(void)
{
	delete_all();
	return nothing_is_charged();
}

/* Makes the daemon open what it opens on first use and keeps, so that a later count of its
 * descriptors is complete. */
static void ask_for_all(void)
{
	struct client c = { .p = root, .name = "once" };
	int fd;

	must(root,
	     CREATE(root, ns, c.name, .event = "oom:mark_victim,alignment-faults", .buffer = 16384,
		    .flags = PERFPERSIST_WAKEUP),
	     "creating");
	must(root, perfpersist_open(root, ns, c.name, &c.open[0]), "opening");
	must(root, perfpersist_open_copy(root, ns, c.name, &c.open[1]), "copying");
	must(root, perfpersist_wakeup(root, ns, c.name, &fd), "a descriptor for wakeups");
	close(fd);
	perfpersist_event_free(c.open[0]);
	perfpersist_event_free(c.open[1]);
	do_delete(&c);
}

int main(int argc, char **argv)
{
	struct victim victims[CLIENTS];
	unsigned *begun, deeds = 0, kills;
	uint64_t number;

	if (argc != 5) {
		fprintf(stderr, "usage: limits-killed INSTANCE NAMESPACE SEED KILLS\n");
		return 2;
	}
	begin(argv[1]);
	ns = argv[2];
	number = strtoull(argv[3], NULL, 10) << 32;
	kills = (unsigned)atoi(argv[4]);
	seed(number);
	begun = mmap(NULL, sizeof(*begun) * CLIENTS, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (begun == MAP_FAILED)
		die("no memory: %m");
	ask_for_all();
	for (unsigned i = 0; i < CLIENTS; i++) {
		victims[i].begun = &begun[i];
		bear(&victims[i], ++number, i);
	}
	for (unsigned i = 0; i < kills + CLIENTS; i++) {
		deeds += kill_it(&victims[i % CLIENTS]);
		if (i < kills)
			bear(&victims[i % CLIENTS], ++number, i % CLIENTS);
	}
	AWAIT(all_is_gone(), "nothing to be charged");
	printf("%u clients killed in the middle of %u things: nothing is charged\n",
	       kills + CLIENTS, deeds);
	return 0;
}
