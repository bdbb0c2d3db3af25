/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program of an event's creator that decides on each record (proto/perfpersist.bpf.h). The creator
 * has loaded it, so the kernel has decided whether he may; here it is found by its id, checked, and
 * pinned with its maps in the event's directory: "program", "next" (its way to the recorder) and
 * "map-NAME".
 */
#pragma once

#include "daemon/engine/failure.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/sources/sources.h"
#include "proto/user-program.h"

struct user_program {
	int fd;	  /* -EBADF: there is none */
	int next; /* PROG_ARRAY with a slot for each decision */
	int maps[PP_USER_MAPS_MAX];
	uint32_t n_maps;
	uint64_t memory; /* of all its maps */
};

#define USER_PROGRAM_NONE                    \
	{                                    \
		.fd = -EBADF, .next = -EBADF \
	}

/* That with this id: it must be the creator's own, and free. -errno, with a message in *f. */
int user_program_open(uint32_t id, uint32_t creator, struct user_program *ret, struct failure *f);
void user_program_done(struct user_program *p);

/* Whether it has the type of a tracepoint's program, not of a tp_btf one. */
bool user_program_wants_generic(const struct user_program *p);

/* Whether it can go on to this program of the source: it has its type, and its attach target. 0;
 * -EINVAL with a message in *f. */
int user_program_check(int fd, int other, const struct source *source, struct failure *f);

/* Pins its maps in a draft; programs_carry() pins the rest. -errno. */
int user_program_pin_maps(const struct user_program *p, struct pins_draft *draft);

/* Pins its maps, which are pinned at `path`, in another draft, too. -errno. */
int user_program_carry_maps(const char *path, struct pins_draft *draft);
