// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reaches each limit on clients, gets refused, releases, and reaches it again, many times. In the
 * end the daemon charges nothing.
 *
 *   limits-clients INSTANCE LIMIT ROUNDS
 *
 * LIMIT is one of those in the table at the end. The numbers below come from the daemon's
 * configuration in test-limits.sh.
 */
#include "limits-engine.h"

#define USER (FIRST_USER + 0)
#define OTHER (FIRST_USER + 1)

/* ── connections ────────────────────────────────────────────────────────────────────────── */

#define CONNECTIONS 24
#define CONNECTIONS_USER 10

static struct perfpersist *let_in(uid_t uid)
{
	struct perfpersist *p = connect_as(uid);

	must(p, ping(p), "connecting");
	return p;
}

/* The daemon refuses one more connection of this user. */
static void turned_away(struct limit *l, uid_t uid)
{
	struct perfpersist *p = connect_as(uid);

	refused(l, ping(p), perfpersist_error(p));
	if (l->reached == 1)
		PERFCTL_REFUSED(l, uid, "list");
	perfpersist_free(p);
}

static void connections_user(unsigned rounds)
{
	struct limit l = { .name = "connections of a user", .says = "MaxConnectionsPerUser=" };
	struct perfpersist *p[CONNECTIONS_USER];

	for (unsigned i = 0; i < CONNECTIONS_USER; i++)
		p[i] = let_in(USER);
	for (unsigned i = 0; i < rounds; i++) {
		turned_away(&l, USER);
		perfpersist_free(p[i % CONNECTIONS_USER]);
		AWAIT(user_line(USER).connections == CONNECTIONS_USER - 1, "a free connection");
		p[i % CONNECTIONS_USER] = let_in(USER);
	}
	for (unsigned i = 0; i < CONNECTIONS_USER; i++)
		perfpersist_free(p[i]);
	tell(&l);
}

/* Connections of several users, each below the limit per user. */
static void connections_total(unsigned rounds)
{
	struct limit l = { .name = "connections in all", .says = "MaxConnections=" };
	struct perfpersist *p[CONNECTIONS - 1]; /* the observer has one */

	for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = let_in(USER + i % 3);
	for (unsigned i = 0; i < rounds; i++) {
		unsigned k = i % ARRAY_SIZE(p);

		turned_away(&l, USER + 3);
		perfpersist_free(p[k]);
		AWAIT(total_line().connections == CONNECTIONS - 1, "a free connection");
		p[k] = let_in(USER + k % 3);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
		perfpersist_free(p[i]);
	tell(&l);
}

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

#define REQUESTS_CONNECTION 3
#define REQUESTS_USER 4

static void on_listed(struct perfpersist *p _unused_,
		      const struct perfpersist_result *result _unused_, void *userdata _unused_)
{
	answers.listed++;
}

/*
 * While the engine is stopped one connection has as many requests under way as it may, plus one
 * that the daemon does not read; a second connection of that user has the rest.
 */
static void fill_requests(struct perfpersist *a, struct perfpersist *b)
{
	for (unsigned i = 0; i < REQUESTS_CONNECTION; i++)
		ask_the_engine(a, "r", 4096);
	must(a, perfpersist_list_async(a, NULL, on_listed, NULL), "listing");
	dispatched(a);
	for (unsigned i = REQUESTS_CONNECTION; i < REQUESTS_USER; i++)
		ask_the_engine(b, "r", 4096);
	AWAIT(user_line(USER).requests == REQUESTS_USER, "requests under way");
}

static void requests(unsigned rounds)
{
	struct limit l = { .name = "requests of a user", .says = "MaxRequestsPerUser=" };
	struct perfpersist *a = connect_as(USER), *b = connect_as(USER), *other = connect_as(OTHER);
	pid_t engine = engine_pid();

	for (unsigned i = 0; i < rounds; i++) {
		memset(&answers, 0, sizeof(answers));
		stop_engine(engine);
		fill_requests(a, b);
		ask_the_engine(b, "r", 4096);
		AWAIT(dispatched(b) && answers.answered == 1, "the refusal");
		refused(&l, answers.refused ? -EDQUOT : 0, answers.sentence);
		must(other, ping(other), "another user's ping");
		if (i == 0)
			PERFCTL_REFUSED(&l, USER, "list");
		dispatched(a);
		if (answers.listed || answers.answered != 1)
			die("requests beyond those of a connection are answered");
		continue_engine(engine);
		AWAIT(dispatched(a) && dispatched(b) && answers.listed == 1 &&
			      answers.nonexistent == REQUESTS_USER,
		      "answers");
		if (user_line(USER).requests || namespace_line("r").memory)
			die("answered requests are still charged");
	}
	perfpersist_free(a);
	perfpersist_free(b);
	perfpersist_free(other);
	tell(&l);
	printf("%-28s %u times: what came then was not read before others were answered\n",
	       "requests of a connection", l.reached);
}

/* ── copies ─────────────────────────────────────────────────────────────────────────────── */

#define COPIES 3
#define COPIES_TOTAL 13

static void copies_of(unsigned rounds, uid_t uid, struct limit *l)
{
	struct perfpersist *p = connect_as(uid);
	struct perfpersist_event *e[COPIES], *none;

	for (unsigned i = 0; i < COPIES; i++)
		must(p, perfpersist_open_copy(p, "c", "e", &e[i]), "copying");
	for (unsigned i = 0; i < rounds; i++) {
		uint64_t all = user_line(uid).copies;

		refused(l, perfpersist_open_copy(p, "c", "e", &none), perfpersist_error(p));
		if (i == 0 && uid)
			PERFCTL_REFUSED(l, uid, "reopen", "c/e", "-n", "1");
		perfpersist_event_free(e[i % COPIES]);
		AWAIT(user_line(uid).copies == all / COPIES * (COPIES - 1), "a copy to be gone");
		must(p, perfpersist_open_copy(p, "c", "e", &e[i % COPIES]), "copying again");
	}
	perfpersist_free(p); /* the copy stays, and stays charged */
	if (user_line(uid).copies == 0)
		die("held copies are not charged");
	for (unsigned i = 0; i < COPIES; i++)
		perfpersist_event_free(e[i]);
}

/* Copies of several users, of whom the last stays below the limit per user. */
static void copies_of_all(unsigned rounds, struct limit *l)
{
	struct perfpersist *p[COPIES_TOTAL / COPIES + 1], *last = NULL;
	struct perfpersist_event *e[COPIES_TOTAL], *none;

	for (unsigned i = 0; i < COPIES_TOTAL; i++) {
		if (i % COPIES == 0)
			last = p[i / COPIES] = connect_as(USER + i / COPIES);
		must(last, perfpersist_open_copy(last, "c", "e", &e[i]), "copying");
	}
	for (unsigned i = 0; i < rounds; i++) {
		unsigned k = i % COPIES_TOTAL;
		uint64_t all = total_line().copies;

		refused(l, perfpersist_open_copy(last, "c", "e", &none), perfpersist_error(last));
		perfpersist_event_free(e[k]);
		AWAIT(total_line().copies == all / COPIES_TOTAL * (COPIES_TOTAL - 1),
		      "a copy to be gone");
		must(p[k / COPIES], perfpersist_open_copy(p[k / COPIES], "c", "e", &e[k]),
		     "copying again");
	}
	for (unsigned i = 0; i < COPIES_TOTAL; i++)
		perfpersist_event_free(e[i]);
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
		perfpersist_free(p[i]);
}

/* Copies of an event whose readers only get copies; these limits bind root, too. */
static void copies(unsigned rounds)
{
	struct limit of_one = { .name = "copies of a user", .says = "MaxCopies=" };
	struct limit of_all = { .name = "copies in all", .says = "This daemon has " };

	must(root, CREATE(root, "c", "e", .buffer = 65536), "creating");
	copies_of(rounds / 10, 0, &of_one);
	copies_of(rounds - rounds / 10, USER, &of_one);
	copies_of_all(rounds, &of_all);
	must(root, perfpersist_delete(root, "c", "e", NULL), "deleting");
	tell(&of_one);
	tell(&of_all);
}

/* ── what a connection can have ─────────────────────────────────────────────────────────── */

#define WAKEUPS 64
#define WATCHES 8

static void on_notice(struct perfpersist *p _unused_,
		      const struct perfpersist_notice *notice _unused_, void *userdata _unused_)
{
}

static void wakeups(unsigned rounds)
{
	struct limit l = { .name = "wakeups of a connection", .says = "for this connection (64)" };
	int fd[WAKEUPS], none;

	must(root, CREATE(root, "w", "e", .flags = PERFPERSIST_WAKEUP), "creating");
	for (unsigned i = 0; i < rounds; i++) {
		struct perfpersist *p = connect_as(USER);

		for (unsigned k = 0; k < WAKEUPS; k++)
			must(p, perfpersist_wakeup(p, "w", "e", &fd[k]), "a wakeup");
		refused(&l, perfpersist_wakeup(p, "w", "e", &none), perfpersist_error(p));
		perfpersist_free(p);
		for (unsigned k = 0; k < WAKEUPS; k++)
			close(fd[k]);
	}
	must(root, perfpersist_delete(root, "w", "e", NULL), "deleting");
	tell(&l);
}

static void watches(unsigned rounds)
{
	struct limit l = { .name = "watches of a connection", .says = "watches 8 times" };

	for (unsigned i = 0; i < rounds; i++) {
		struct perfpersist *p = connect_as(USER);

		for (unsigned k = 0; k < WATCHES; k++)
			must(p, perfpersist_watch(p, NULL, on_notice, NULL), "watching");
		refused(&l, perfpersist_watch(p, NULL, on_notice, NULL), perfpersist_error(p));
		perfpersist_free(p);
	}
	tell(&l);
}

/* ── all of them ────────────────────────────────────────────────────────────────────────── */

static const struct {
	const char *name;
	void (*run)(unsigned rounds);
} modes[] = {
	{ "connections-user", connections_user },
	{ "connections-total", connections_total },
	{ "requests", requests },
	{ "copies", copies },
	{ "wakeups", wakeups },
	{ "watches", watches },
};

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: limits-clients INSTANCE LIMIT ROUNDS\n");
		return 2;
	}
	begin(argv[1]);
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (strcmp(argv[2], modes[i].name) != 0)
			continue;
		modes[i].run((unsigned)atoi(argv[3]));
		AWAIT(nothing_is_charged(), "nothing to be charged");
		perfpersist_free(root);
		return 0;
	}
	die("there is no limit '%s'", argv[2]);
}
