/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds where an event's programs are in memory, by its pins, so that a test can tell whether a
 * sample's address is inside one of them. Root only, and only where the kernel shows addresses.
 */
#pragma once

#include <dirent.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>

#include "proto/macro.h"

#define PROGRAMS_MAX 4096

struct program_place {
	uint64_t start, size;
};

struct programs {
	struct program_place v[PROGRAMS_MAX];
	size_t n;
};

static inline int programs_bpf(int cmd, union bpf_attr *attr)
{
	return (int)syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static inline void programs_add(struct programs *p, uint32_t id)
{
	uint64_t start = 0;
	uint32_t size = 0;
	struct bpf_prog_info info = {
		.nr_jited_ksyms = 1,
		.jited_ksyms = (uintptr_t)&start,
		.nr_jited_func_lens = 1,
		.jited_func_lens = (uintptr_t)&size,
	};
	union bpf_attr attr = { .prog_id = id };
	_cleanup_close_ int fd = programs_bpf(BPF_PROG_GET_FD_BY_ID, &attr);

	attr = (union bpf_attr){
		.info = { .bpf_fd = fd, .info_len = sizeof(info), .info = (uintptr_t)&info },
	};
	if (fd >= 0 && programs_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) >= 0 && start && size &&
	    p->n < PROGRAMS_MAX)
		p->v[p->n++] = (struct program_place){ start, size };
}

/* The slots of a PROG_ARRAY hold the ids. */
static inline void programs_in(struct programs *p, const char *path)
{
	union bpf_attr attr = { .pathname = (uintptr_t)path };
	_cleanup_close_ int fd = programs_bpf(BPF_OBJ_GET, &attr);

	for (uint32_t i = 0; fd >= 0; i++) {
		uint32_t id;

		attr = (union bpf_attr){ .map_fd = fd,
					 .key = (uintptr_t)&i,
					 .value = (uintptr_t)&id };
		if (programs_bpf(BPF_MAP_LOOKUP_ELEM, &attr) < 0)
			break;
		programs_add(p, id);
	}
}

/* Finds the recording programs of the event pinned in that folder, in progs0, progs1, … */
static inline void programs_find(struct programs *p, const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *d;
	char path[512];

	while (dir && (d = readdir(dir))) {
		if (strncmp(d->d_name, "progs", 5))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, d->d_name);
		programs_in(p, path);
	}
	if (dir)
		closedir(dir);
}

static inline bool programs_hold(const struct programs *p, uint64_t address)
{
	for (size_t i = 0; i < p->n; i++)
		if (address - p->v[i].start < p->v[i].size)
			return true;
	return false;
}
