// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * pin-get PATH…: tries to get each pinned object in every way that BPF_OBJ_GET allows, to open it
 * for writing, and to remove it. Exit 0: every attempt was refused; 1: one succeeded, and is
 * printed; 2: a path does not exist.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/macro.h"

static int let_through;

static void attempt(const char *path, const char *what, bool succeeded)
{
	if (!succeeded)
		return;
	printf("%s: %s is let through\n", path, what);
	let_through = 1;
}

static bool get(const char *path, unsigned flags)
{
	union bpf_attr attr = { .pathname = (uintptr_t)path, .file_flags = flags };
	_cleanup_close_ int fd = (int)syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));

	return fd >= 0;
}

static bool can_open(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0;
}

int main(int argc, char **argv)
{
	char name[4096];
	struct stat st;

	for (int i = 1; i < argc; i++) {
		if (stat(argv[i], &st) < 0) {
			printf("%s: %m\n", argv[i]);
			return 2;
		}
		attempt(argv[i], "BPF_OBJ_GET", get(argv[i], 0));
		attempt(argv[i], "BPF_OBJ_GET to read", get(argv[i], BPF_F_RDONLY));
		attempt(argv[i], "BPF_OBJ_GET to write", get(argv[i], BPF_F_WRONLY));
		attempt(argv[i], "opening to write", can_open(argv[i]));
		attempt(argv[i], "chmod", chmod(argv[i], 0666) == 0);
		snprintf(name, sizeof(name), "%s_", argv[i]);
		attempt(argv[i], "rename", rename(argv[i], name) == 0);
		attempt(argv[i], "unlink", unlink(argv[i]) == 0);
	}
	return let_through;
}
