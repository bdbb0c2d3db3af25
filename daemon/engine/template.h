/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A template is a BPF program in C, opened, relocated and verified once with libbpf (tens of
 * milliseconds), kept as instructions, and from then on loaded for each event with maps of
 * its own (well under a millisecond).
 */
#ifndef PP_TEMPLATE_H
#define PP_TEMPLATE_H

#include <stddef.h>
#include <stdint.h>
#include <bpf/libbpf.h>

struct template_map {
	int template_fd; /* the fd that the skeleton's own map has */
	int fd;		 /* the one to use in its place */
};

/*
 * Loads prog (of an object that bpf_object__load has loaded, and that is still open) again,
 * with each template_fd in its instructions replaced. Type, attach type and attach target are
 * prog's. name: shown by bpftool, may be NULL. *ret_fd is the caller's. -errno of the kernel.
 */
int template_instantiate(const struct bpf_program *prog, const struct template_map *maps,
			 size_t n_maps, const char *name, int *ret_fd);

/*
 * A frozen, BPF-read-only array of one element for a program's constants (.rodata), so that
 * the verifier sees them as constants. *ret_fd is the caller's. -errno.
 */
int template_constants(const void *data, size_t size, int *ret_fd);

#endif
