/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the engine's iterators tell of the processes and of the BPF programs that are there, when
 * their descriptors are read: one of these after the other, each of `size` bytes, a multiple of 8.
 * BPF programs write it, so that whoever reads needs no right to look into others' /proc. The
 * kernel cuts reads where it likes: an entry may be split over two.
 */
#pragma once

#include <linux/types.h>

#define PP_TASK 1	  /* of the iterator of tasks: each thread */
#define PP_TASK_MAP 2	  /* of the iterator of mappings: each executable one of each process */
#define PP_TASK_PROGRAM 3 /* of the iterator of BPF programs: each piece of code of each */

#define PP_TASK_PATH_SIZE 512 /* of a file, with its NUL; longer ones are cut at the front */

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
	/* with the NUL; perf's names for what is no file: "[vdso]", "//anon", "[stack]", "[heap]" */
	__u32 path_size;
	char path[];
};

/* They come by their ids, and the parts of a program behind it: its functions that stand apart. */
struct pp_task_program {
	__u32 type, size; /* as above, with the name */
	__u32 id, part;	  /* part 0: the program itself */
	__u64 loaded;	  /* when its loading began, CLOCK_MONOTONIC, ns */
	/* address of the code; 0: of part 0, which then has none, or none to be seen */
	__u64 start;
	__u32 length;	 /* bytes of the code */
	__u32 name_size; /* with the NUL; a symbol as in /proc/kallsyms: "bpf_prog_TAG_NAME" */
	__u8 tag[8];
	char name[];
};
