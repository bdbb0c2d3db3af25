// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creates an event for each line of its input, several requests at a time:
 *
 *   create-all INSTANCE NAMESPACE CPU
 *
 * The Nth event is NAMESPACE/eN, with a small buffer, on that CPU. For each answer it prints,
 * separated by tabs: "made", N, the text, the number of events under the name; or "refused", N, the
 * text, the error's number, the error message.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfpersist.h"
#include "proto/macro.h"
#include "proto/ring.h"

#define UNDER_WAY 16 /* requests; a daemon reads no more of one client by default */
#define BUFFER 16384 /* the largest records of some tracepoints are 8 KiB */

struct task {
	int n;
	int *under_way;
	char text[PP_EVENT_TEXT_SIZE];
};

static void answered(struct perfpersist *p, const struct perfpersist_result *result, void *userdata)
{
	struct task *t = userdata;

	if (result->error == 0)
		printf("made\t%d\t%s\t%u\n", t->n, t->text, result->infos[0].sources);
	else
		printf("refused\t%d\t%s\t%d\t%s\n", t->n, t->text, -result->error,
		       perfpersist_error(p));
	(*t->under_way)--;
	free(t);
}

static void dispatch(struct perfpersist *p)
{
	struct pollfd fd = { .fd = perfpersist_fd(p), .events = perfpersist_events(p) };

	if ((poll(&fd, 1, -1) < 0 && errno != EINTR) || perfpersist_dispatch(p) < 0) {
		fprintf(stderr, "create-all: the connection has ended\n");
		exit(1);
	}
}

static void start(struct perfpersist *p, const char *ns, const char *cpu, struct task *t)
{
	const struct perfpersist_create_options o = {
		.sz = sizeof(o),
		.event = t->text,
		.cpus = cpu,
		.buffer = BUFFER,
		.flags = PERFPERSIST_NO_SHARE,
	};
	char name[16];

	snprintf(name, sizeof(name), "e%d", t->n);
	if (perfpersist_create_async(p, ns, name, &o, answered, t) < 0) {
		fprintf(stderr, "%s: %s\n", t->text, perfpersist_error(p));
		exit(1);
	}
	(*t->under_way)++;
}

int main(int argc, char **argv)
{
	struct perfpersist_options o = { .sz = sizeof(o) };
	struct perfpersist *p;
	char line[PP_EVENT_TEXT_SIZE];
	int n = 0, under_way = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: create-all INSTANCE NAMESPACE CPU\n");
		return 2;
	}
	o.instance = argv[1];
	if (perfpersist_connect(&o, &p) < 0) {
		fprintf(stderr, "%s\n", perfpersist_error(NULL));
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		struct task *t = calloc(1, sizeof(*t));

		if (!t)
			abort();
		line[strcspn(line, "\n")] = 0;
		memcpy(t->text, line, sizeof(t->text));
		t->n = ++n;
		t->under_way = &under_way;
		while (under_way == UNDER_WAY)
			dispatch(p);
		start(p, argv[2], argv[3], t);
	}
	while (under_way > 0)
		dispatch(p);
	perfpersist_free(p);
	return 0;
}
