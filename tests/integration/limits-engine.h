/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stops the engine, so that requests stay under way for as long as a test wants.
 */
#pragma once

#include <errno.h>
#include <signal.h>

#include "limits.h"

static struct {
	unsigned asked, answered, nonexistent, refused, listed;
	char sentence[512];
} answers;

static inline void on_created(struct perfpersist *p, const struct perfpersist_result *result,
			      void *userdata _unused_)
{
	answers.answered++;
	answers.nonexistent += result->error == -ENOENT;
	answers.refused += result->error == -EDQUOT;
	if (result->error == -EDQUOT)
		snprintf(answers.sentence, sizeof(answers.sentence), "%s", perfpersist_error(p));
}

static inline bool dispatched(struct perfpersist *p)
{
	if (perfpersist_dispatch(p) < 0)
		die("a connection ended: %s", perfpersist_error(p));
	return true;
}

/* A request that only the engine can answer: there is no such tracepoint. */
static inline void ask_the_engine(struct perfpersist *p, const char *ns, uint64_t buffer)
{
	const struct perfpersist_create_options o = {
		.sz = sizeof(o), .event = "nosuch:event", .buffer = buffer, .cpus = first_cpu()
	};
	char name[16];

	snprintf(name, sizeof(name), "asked%u", answers.asked++);
	must(p, perfpersist_create_async(p, ns, name, &o, on_created, NULL), "asking");
	dispatched(p);
}

/* Waits until the process really is stopped or running. */
static inline void await_state(pid_t pid, bool stopped)
{
	char path[32], text[512];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (bool is = !stopped; is != stopped; sched_yield()) {
		_cleanup_fclose_ FILE *f = fopen(path, "re");

		if (!f || !fgets(text, sizeof(text), f))
			die("the engine is gone");
		is = strstr(text, ") T ") != NULL;
	}
}

static inline void stop_engine(pid_t engine)
{
	if (kill(engine, SIGSTOP) < 0)
		die("cannot stop the engine: %m");
	await_state(engine, true);
}

static inline void continue_engine(pid_t engine)
{
	kill(engine, SIGCONT);
	await_state(engine, false);
}
