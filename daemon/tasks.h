/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The output of the engine's iterators, which list processes and BPF programs: entries of `size`
 * bytes each, a multiple of 8. BPF programs write them, so that the reader needs no right to look
 * into others' /proc. The kernel cuts reads anywhere: an entry may be split over two.
 */
#pragma once

#include <linux/types.h>

#define PP_TASK 1	  /* iterator of tasks: each thread */
#define PP_TASK_MAP 2	  /* iterator of mappings: each executable mapping of each process */
#define PP_TASK_PROGRAM 3 /* iterator of BPF programs: each piece of code of each program */

#define PP_TASK_PATH_SIZE 512 /* a file's, with its NUL; longer ones are cut at the front */

struct pp_task {
	__u32 type, size;
	/* of the initial namespace, as perf has them; tgid is pid */
	__u32 pid, tid, ppid, reserved;
	__u64 started; /* CLOCK_MONOTONIC, ns */
	char comm[16];
};

struct pp_task_map {
	__u32 type, size;	  /* with the path, NUL, and zeroes up to a multiple of 8 */
	__u32 pid, prot;	  /* PROT_* */
	__u64 start, end, offset; /* addresses; bytes in the file */
	__u64 inode;
	__u32 major, minor;
	__u32 flags; /* MAP_PRIVATE, MAP_SHARED */
	/* with the NUL; perf's names for other mappings: "[vdso]", "//anon", "[stack]", "[heap]" */
	__u32 path_size;
	char path[];
};

/* Sorted by id; each program is followed by its parts: functions with code of their own. */
struct pp_task_program {
	__u32 type, size; /* as above, with the name */
	__u32 id, part;	  /* part 0: the program itself */
	__u64 loaded;	  /* when its loading began, CLOCK_MONOTONIC, ns */
	/* address of the code; 0 for part 0: no code, or none that may be seen */
	__u64 start;
	__u32 length;	 /* bytes of the code */
	__u32 name_size; /* with the NUL; a symbol as in /proc/kallsyms: "bpf_prog_TAG_NAME" */
	__u8 tag[8];
	char name[];
};
