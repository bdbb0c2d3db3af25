// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Creates an event for each tracepoint on its input, one per line.
 *
 *   many-events INSTANCE NAMESPACE BUFFER CPUS [generic]
 *
 * SYSTEM:NAME becomes NAMESPACE/SYSTEM__NAME, cut where a name must end. BUFFER is in bytes, CPUS a
 * list. Prints the tracepoints that have an event now: the kernel may refuse to let anybody record
 * some of them.
 */
#include <string.h>

#include "client/perfpersist.h"
#include "proto/macro.h"

static int create(struct perfpersist *p, char **argv, const char *event, bool generic)
{
	struct perfpersist_create_options opts = {
		.sz = sizeof(opts),
		.event = event,
		.buffer = strtoull(argv[3], NULL, 10),
		.cpus = argv[4],
		.flags = generic ? PERFPERSIST_GENERIC : 0,
	};
	char name[64];

	snprintf(name, sizeof(name), "%.*s__%.40s", (int)MIN(strcspn(event, ":"), 20U), event,
		 event + strcspn(event, ":") + 1);
	return perfpersist_create(p, argv[2], name, &opts, NULL);
}

int main(int argc, char **argv)
{
	struct perfpersist_options opts = { .sz = sizeof(opts) };
	struct perfpersist *p;
	char event[256];
	int n = 0;

	if (argc < 5) {
		fprintf(stderr, "usage: many-events INSTANCE NAMESPACE BUFFER CPUS [generic]\n");
		return 2;
	}
	opts.instance = argv[1];
	if (perfpersist_connect(&opts, &p) < 0) {
		fprintf(stderr, "%s\n", perfpersist_error(NULL));
		return 1;
	}
	while (scanf("%255s", event) == 1) {
		int r = create(p, argv, event, argc > 5);

		if (r < 0)
			fprintf(stderr, "%s\n", perfpersist_error(p));
		if (r < 0 && r != -EPERM && r != -EACCES) {
			perfpersist_free(p);
			return 1;
		}
		if (r < 0)
			continue;
		puts(event);
		n++;
	}
	perfpersist_free(p);
	return n ? 0 : 1;
}
