// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * give-program INSTANCE NS NAME EVENT ID: creates an event with the BPF program that has this id, as a
 * program with a loader of its own does. Prints the error message; exit status: the errno value.
 */
#include <stdio.h>
#include <stdlib.h>

#include "client/perfpersist.h"

int main(int argc, char **argv)
{
	struct perfpersist_options o = { .sz = sizeof(o) };
	struct perfpersist_create_options create = { .sz = sizeof(create) };
	struct perfpersist *p = NULL;
	int r;

	if (argc != 6)
		return 2;
	o.instance = argv[1];
	create.event = argv[4];
	create.period = 1000000;
	create.program = (uint32_t)strtoul(argv[5], NULL, 10);
	r = perfpersist_connect(&o, &p);
	if (r >= 0)
		r = perfpersist_create(p, argv[2], argv[3], &create, NULL);
	if (r < 0)
		puts(perfpersist_error(p));
	perfpersist_free(p);
	return -r;
}
