/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The directory of checkpoints:
 *
 *   +boot-BOOTID/ID      a file of checkpoints (checkpoint-file.h) of the rings of the event with that
 *                        id; the directory is locked by the process that writes there
 *   +boot-BOOTID/ID.new  the same, until it has a checkpoint
 *   2026-11-21T23-40-12Z/   a save (saved.h): what became of the files of another boot
 */
#pragma once

#include <dirent.h>
#include <limits.h>
#include <stddef.h>
#include <sys/queue.h>

#define CHECKPOINT_BOOT "+boot-"
#define BOOT_NAME_SIZE (sizeof(CHECKPOINT_BOOT) + 36 + 1) /* one more while it is recovered */

struct perfpersist_checkpoint;

struct perfpersist_checkpoints {
	char path[PATH_MAX];
	char boot[BOOT_NAME_SIZE];
	int fd;
	int boot_fd; /* locked */
	LIST_HEAD(, perfpersist_checkpoint) all;
};

/* Opens a directory in there to list it, for closedir(3). NULL: errno says why. */
DIR *checkpoint_list(int at, const char *name);
