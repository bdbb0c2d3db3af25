/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A template is a BPF program in C: libbpf opens, relocates and verifies it once (tens of
 * milliseconds), and the engine keeps its instructions. Each event then loads them with maps of its
 * own (well under a millisecond).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <bpf/libbpf.h>

#include "daemon/engine/recorders/recorder.h"

struct template_map {
	int template_fd; /* the fd that the skeleton's own map has; < 0: see mark */
	int fd;		 /* its replacement; < 0: none, the program does not use it */
	/* A 64-bit number that stands for the map, where the template can have none. */
	uint64_t mark;
};

/* The differences between an event's program and its template. */
struct template_changes {
	const struct template_map *maps;
	size_t n_maps;

	/*
	 * Replace .rodata: with CONSTANT() and OPTION() of constant.bpf.h they become part of the
	 * instructions.
	 */
	int rodata_fd; /* the skeleton's */
	const void *constants;
	size_t constants_size;

	/* Replaces the body of the program's one subprogram; NULL: leaves it. */
	const struct bpf_insn *hook;
	size_t n_hook;

	/* Go in front of the program. */
	const struct bpf_insn *head;
	size_t n_head;

	/* The program's one subprogram is this function of this object, for a helper that takes a
	 * callback (bpf_loop(), …); NULL: it has no callback. */
	const struct bpf_object *object;
	const char *callback;

	/* Type and attach target; NULL: prog's. */
	const struct recorder_class *class;
};

/*
 * Loads prog (of an object that bpf_object__load has loaded, and that is still open) again, with
 * these changes. name: shown by bpftool, may be NULL. *ret_fd is the caller's. -errno of the kernel;
 * -ENOTSUP: it has no subprogram to replace, or not this callback.
 */
int template_load(const struct bpf_program *prog, const struct template_changes *changes,
		  const char *name, int *ret_fd);

/* The program with other maps only, to become a function of others (emit_call_function()). *ret is the
 * caller's. -ENOENT: it is not loaded; -ENOMEM. */
int template_function(const struct bpf_program *prog, const struct template_map *maps,
		      size_t n_maps, struct bpf_insn **ret, size_t *ret_n);

/* The BTF id that prog attaches to in the kernel; 0: its type needs none. -errno. */
int template_attach_target(const struct bpf_program *prog, uint32_t *ret);

/*
 * A frozen, BPF-read-only array of one element for a program's constants (.rodata), so that
 * the verifier sees them as constants. *ret_fd is the caller's. -errno.
 */
int template_constants(const void *data, size_t size, int *ret_fd);
