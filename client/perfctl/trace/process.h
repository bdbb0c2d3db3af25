/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processes from sideband: names and mappings, as of the last applied record. Knows no file
 * format. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_SIZE_MAX 20

/* A file with code: one for each path and build id, or inode if the build id is unknown. Lives as
 * long as the processes. */
struct dso {
	char *path;	  /* "/usr/bin/ls", "[kernel.kallsyms]", "[vdso]", "//anon" */
	const char *name; /* the last part of it */
	uint8_t build_id[BUILD_ID_SIZE_MAX];
	size_t build_id_size;	/* 0: not known */
	uint64_t device, inode; /* if there is no build id; inode 0: not known */
	bool kernel;		/* the kernel itself, or a module */
	uint32_t index;		/* 0, 1, … */
	void *symbols;		/* owned by symbols.c */
};

struct map {
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* of start in the file */
	struct dso *dso;
};

struct processes;

int processes_new(struct processes **ret);
void processes_free(struct processes *p);

/* The effects of sideband records. Makes unknown threads and processes. -ENOMEM. */
int processes_comm(struct processes *p, uint32_t pid, uint32_t tid, const char *comm, bool exec);
int processes_fork(struct processes *p, uint32_t ppid, uint32_t ptid, uint32_t pid, uint32_t tid);
int processes_exit(struct processes *p, uint32_t pid, uint32_t tid);
/* Removes all its mappings, as an exec does. */
void processes_unmap(struct processes *p, uint32_t pid);
/* pid (uint32_t)-1: the kernel. build_id may be NULL, inode 0. ret (may be NULL): the new map; NULL
 * if size is 0. */
int processes_map(struct processes *p, uint32_t pid, uint64_t start, uint64_t size, uint64_t offset,
		  const char *path, const uint8_t *build_id, size_t build_id_size, uint64_t device,
		  uint64_t inode, const struct map **ret);
/* A kernel symbol was removed: unmaps it if it is still mapped there. -ENOMEM. */
int processes_unmap_symbol(struct processes *p, uint64_t start, const char *name);
/* The build id of a path, from the file's table. */
int processes_build_id(struct processes *p, const char *path, const uint8_t *build_id, size_t size);

/* NULL: unknown. Valid until the next change. */
const char *processes_name(const struct processes *p, uint32_t pid, uint32_t tid);

/* The map at an address of the process or (kernel) of the kernel; NULL: none. Valid until the next
 * change. */
const struct map *processes_find(const struct processes *p, uint32_t pid, uint64_t address,
				 bool kernel);

size_t processes_dsos(const struct processes *p);
struct dso *processes_dso(struct processes *p, size_t i);
