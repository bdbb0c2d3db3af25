/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A way to die at any step that changes a registry or a map, and to fail at any that reads one. */
#pragma once

#include <bpf/bpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
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
STEP(rename, (const char *a, const char *b), SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 0)
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

/* Called before a perf event gets its program, and after it; or NULL. */
static void (*around_link)(bool is_made);

int bpf_link_create(int prog, int target, enum bpf_attach_type type,
		    const struct bpf_link_create_opts *opts)
{
	int (*real)(int, int, enum bpf_attach_type, const struct bpf_link_create_opts *) =
		dlsym(RTLD_NEXT, "bpf_link_create");
	int r;

	step();
	if (around_link && type == BPF_PERF_EVENT)
		around_link(false);
	r = real(prog, target, type, opts);
	if (around_link && type == BPF_PERF_EVENT)
		around_link(true);
	return r;
}

/* The read that fails, counted from here, and how; 0: none. */
static unsigned read_fails;
static int read_error = EIO;

static bool fails(void)
{
	if (read_fails == 0 || --read_fails > 0)
		return false;
	errno = read_error;
	return true;
}

int lstat(const char *path, struct stat *st)
{
	return fails() ? -1 : fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int bpf_obj_get(const char *path)
{
	int (*real)(const char *) = dlsym(RTLD_NEXT, "bpf_obj_get");

	return fails() ? -read_error : real(path);
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	int (*real)(int, const void *, void *) = dlsym(RTLD_NEXT, "bpf_map_lookup_elem");

	return fails() ? -read_error : real(fd, key, value);
}
