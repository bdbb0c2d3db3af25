/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A BPF program of the user's own, for --bpf: loads it with the caller's rights, so that the kernel
 * decides whether he may, and its verifier speaks to him. The daemon gets the program's id alone.
 */
#pragma once

#include <stdint.h>

#include "client/perfctl/perfctl.h"

struct bpf_object;

struct user_program {
	struct bpf_object
		*object; /* with it the program goes, unless an event has it; NULL: none */
	uint32_t id;	 /* the kernel's */
};

/* Loads what "OBJ.o" or "OBJ.o:PROGRAM" names. An exit code; has complained if not EXIT_OK: then
 * nothing is loaded. */
int user_program_load(const char *text, struct user_program *ret);

void user_program_done(struct user_program *p);
