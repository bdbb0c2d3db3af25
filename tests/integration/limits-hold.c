// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Opens an event and maps its rings until it reads a line; then it releases them and stays until
 * its input ends. Prints a line after each step.
 *
 *   limits-hold SOCKET NAMESPACE/NAME
 */
#include <stdio.h>

#include "client/perfpersist.h"
#include "proto/macro.h"

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct perfpersist_options o = { .sz = sizeof(o) };
	struct perfpersist_event *e;
	struct perfpersist *p;
	char line[16], ns[64], name[64];

	if (argc != 3 || sscanf(argv[2], "%63[^/]/%63s", ns, name) != 2) {
		fprintf(stderr, "usage: limits-hold SOCKET NAMESPACE/NAME\n");
		return 2;
	}
	o.socket = argv[1];
	if (perfpersist_connect(&o, &p) < 0) {
		fprintf(stderr, "%s\n", perfpersist_error(NULL));
		return 1;
	}
	if (perfpersist_open(p, ns, name, &e) < 0) {
		fprintf(stderr, "%s\n", perfpersist_error(p));
		return 1;
	}
	perfpersist_free(p);
	say("held");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	perfpersist_event_free(e);
	say("free");
	while (fgets(line, sizeof(line), stdin))
		;
	return 0;
}
