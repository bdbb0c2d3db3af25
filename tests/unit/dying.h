/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A way to die at any step that changes a registry or a map. */
#pragma once

#include <bpf/bpf.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILLED 77

/* The step before which this process dies; 0: never. These functions override libc's. */
static unsigned steps_left;

static void step(void)
{
	if (steps_left && --steps_left == 0)
		_exit(KILLED);
}

#define STEP(name, params, ...)              \
	int name params                      \
	{                                    \
		step();                      \
		return syscall(__VA_ARGS__); \
	}

STEP(renameat2, (int from, const char *a, int to, const char *b, unsigned int flags), SYS_renameat2,
     from, a, to, b, flags)
STEP(symlink, (const char *target, const char *path), SYS_symlinkat, target, AT_FDCWD, path)
STEP(unlink, (const char *path), SYS_unlinkat, AT_FDCWD, path, 0)
STEP(rmdir, (const char *path), SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)
STEP(mkdir, (const char *path, mode_t mode), SYS_mkdirat, AT_FDCWD, path, mode)
STEP(chmod, (const char *path, mode_t mode), SYS_fchmodat, AT_FDCWD, path, mode)
STEP(chown, (const char *path, uid_t uid, gid_t gid), SYS_fchownat, AT_FDCWD, path, uid, gid, 0)

#define BPF_STEP(name, params, types, ...)                  \
	int name params                                     \
	{                                                   \
		int(*real) types = dlsym(RTLD_NEXT, #name); \
                                                            \
		step();                                     \
		return real(__VA_ARGS__);                   \
	}

BPF_STEP(bpf_obj_pin, (int fd, const char *path), (int, const char *), fd, path)
BPF_STEP(bpf_map_update_elem, (int fd, const void *key, const void *value, __u64 flags),
	 (int, const void *, const void *, __u64), fd, key, value, flags)
BPF_STEP(bpf_map_delete_elem, (int fd, const void *key), (int, const void *), fd, key)
BPF_STEP(bpf_link_create,
	 (int prog, int target, enum bpf_attach_type type, const struct bpf_link_create_opts *opts),
	 (int, int, enum bpf_attach_type, const struct bpf_link_create_opts *), prog, target, type,
	 opts)
