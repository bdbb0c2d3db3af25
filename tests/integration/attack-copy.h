/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A part of ring-attack.c: tries every known way to change a copy of a ring, or to get at more than
 * the copy. No byte of the copy may change. Knows the ring's layout and the kernel's memory files.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/falloc.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "proto/ring.h"
#include "tests/integration/attack.h"

/* ── through memory ─────────────────────────────────────────────────────────────────────── */

static void attack_mapped_copy(void *map, size_t size)
{
	struct iovec from = { .iov_base = (void *)FORGED, .iov_len = sizeof(FORGED) };
	struct iovec to = { .iov_base = map, .iov_len = sizeof(FORGED) };
	_cleanup_close_ int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	ATTEMPT("madvise(MADV_REMOVE)", madvise(map, size, MADV_REMOVE) == 0);
	ATTEMPT("madvise(MADV_POPULATE_WRITE)", madvise(map, size, MADV_POPULATE_WRITE) == 0);
	ATTEMPT("read(/dev/zero) into the mapping", read(zero, map, size) > 0);
	ATTEMPT("process_vm_writev(over the mapping)",
		process_vm_writev(getpid(), &from, 1, &to, 1, 0) > 0);
}

/* ── through the file ───────────────────────────────────────────────────────────────────── */

static void attack_by_pipe(int fd)
{
	int pipes[2];
	loff_t at = 0;

	if (pipe2(pipes, O_CLOEXEC) < 0 ||
	    write(pipes[1], FORGED, sizeof(FORGED)) != sizeof(FORGED)) {
		tell("pipe", strerrorname_np(errno));
		return;
	}
	ATTEMPT("splice(into it)", splice(pipes[0], NULL, fd, &at, sizeof(FORGED), 0) > 0);
	close(pipes[0]);
	close(pipes[1]);
}

/* Opens another descriptor of the file, whose access rights may exceed those of the given one. */
static void attack_copy_file(int fd, size_t size)
{
	_cleanup_close_ int other = memfd_create("forged", MFD_CLOEXEC);
	struct iovec iov = { .iov_base = (void *)FORGED, .iov_len = sizeof(FORGED) };
	loff_t in = 0, out = 0;
	off_t offset = 0;

	if (other < 0 || write(other, FORGED, sizeof(FORGED)) < 0) {
		tell("memfd_create", strerrorname_np(errno));
		return;
	}
	ATTEMPT("write(fd)", write(fd, FORGED, sizeof(FORGED)) >= 0);
	ATTEMPT("pwrite(fd)", pwrite(fd, FORGED, sizeof(FORGED), 0) >= 0);
	ATTEMPT("pwritev2(fd)", pwritev2(fd, &iov, 1, 0, RWF_DSYNC) >= 0);
	ATTEMPT("copy_file_range(into it)",
		copy_file_range(other, &in, fd, &out, sizeof(FORGED), 0) > 0);
	ATTEMPT("sendfile(into it)", sendfile(fd, other, &offset, sizeof(FORGED)) > 0);
	attack_by_pipe(fd);
	ATTEMPT("ftruncate(fd, 0)", ftruncate(fd, 0) == 0);
	ATTEMPT("ftruncate(fd, twice its size)", ftruncate(fd, 2 * (off_t)size) == 0);
	ATTEMPT("fallocate(fd)", fallocate(fd, 0, 0, 2 * (off_t)size) == 0);
	ATTEMPT("fallocate(fd, FALLOC_FL_PUNCH_HOLE)",
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size) == 0);
	ATTEMPT("fallocate(fd, FALLOC_FL_ZERO_RANGE)",
		fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, (off_t)size) == 0);
	ATTEMPT("fcntl(F_ADD_SEALS)", fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) == 0);
}

static void attack_anew(int fd, size_t size)
{
	static const struct {
		int flags;
		const char *what;
	} ways[] = {
		{ O_RDWR, "open(/proc/self/fd/N, O_RDWR), and through that" },
		{ O_WRONLY, "open(/proc/self/fd/N, O_WRONLY), and through that" },
		{ O_RDONLY | O_TRUNC, "open(/proc/self/fd/N, O_TRUNC)" },
		{ O_WRONLY | O_APPEND, "open(/proc/self/fd/N, O_APPEND), and through that" },
	};
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		_cleanup_close_ int again = open(path, ways[i].flags | O_CLOEXEC);
		bool opened = again >= 0;

		/* Root may open it, which changes nothing; only O_TRUNC would. */
		if (opened && ways[i].flags & O_TRUNC)
			tell(ways[i].what, NULL);
		else if (opened && (write(again, FORGED, sizeof(FORGED)) >= 0 ||
				    ftruncate(again, (off_t)size / 2) == 0))
			tell(ways[i].what, NULL);
		else
			tell(ways[i].what, strerrorname_np(errno));
	}
	/* Anyone but root needs these for O_RDWR. */
	if (geteuid() != 0) {
		ATTEMPT("fchmod(fd, 0666)", fchmod(fd, 0666) == 0);
		ATTEMPT("fchown(fd, us)", fchown(fd, geteuid(), getegid()) == 0);
		ATTEMPT("chmod(/proc/self/fd/N, 0666)", chmod(path, 0666) == 0);
	}
	ATTEMPT("truncate(/proc/self/fd/N)", truncate(path, 0) == 0);
}

/* A copy is not a map: bpf(2) offers no way from it to the ring. */
static void attack_as_map(int fd, void *value)
{
	static const struct {
		int cmd;
		const char *what;
	} ways[] = {
		{ BPF_MAP_LOOKUP_ELEM, "bpf(BPF_MAP_LOOKUP_ELEM)" },
		{ BPF_MAP_UPDATE_ELEM, "bpf(BPF_MAP_UPDATE_ELEM)" },
		{ BPF_MAP_FREEZE, "bpf(BPF_MAP_FREEZE)" },
	};
	struct bpf_map_info info = { 0 };
	union bpf_attr attr;
	__u32 key = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		attr = (union bpf_attr){ .map_fd = fd,
					 .key = (uintptr_t)&key,
					 .value = (uintptr_t)value };
		if (ways[i].cmd == BPF_MAP_FREEZE)
			attr = (union bpf_attr){ .map_fd = fd };
		ATTEMPT(ways[i].what, syscall(SYS_bpf, ways[i].cmd, &attr, sizeof(attr)) == 0);
	}
	attr = (union bpf_attr){
		.info = { .bpf_fd = fd, .info_len = sizeof(info), .info = (uintptr_t)&info }
	};
	ATTEMPT("bpf(BPF_OBJ_GET_INFO_BY_FD)",
		syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) == 0);
}

/* ── all attacks ────────────────────────────────────────────────────────────────────────── */

static void check_seals(int fd)
{
	const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
	int seals = fcntl(fd, F_GET_SEALS);
	bool sealed = seals >= 0 && (seals & wanted) == wanted;

	if (!sealed)
		let_through++;
	printf("  %-52s %s\n", "its seals", sealed ? "against all" : "NOT ALL");
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY) {
		let_through++;
		puts("  it is OPEN FOR WRITING");
	}
}

static int attack_copy(int fd)
{
	_cleanup_free_ void *before = NULL;
	const struct pp_ring_header *h;
	struct stat st;
	size_t size;
	void *map;
	bool ok;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < PP_RING_PAGE) {
		fprintf(stderr, "ring-attack: descriptor %d is no copy\n", fd);
		return 2;
	}
	size = (size_t)st.st_size;
	map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	before = malloc(size);
	if (map == MAP_FAILED || !before) {
		fprintf(stderr, "ring-attack: descriptor %d cannot be mapped to read: %m\n", fd);
		return 2;
	}
	memcpy(before, map, size);
	h = before;
	if (h->magic != PP_RING_MAGIC) {
		fprintf(stderr, "ring-attack: descriptor %d is not a ring's copy\n", fd);
		return 2;
	}
	printf("copy of the ring of CPU %u, event id %llu, %zu bytes, mode %04o; as uid %u:\n",
	       h->cpu, (unsigned long long)h->event_id, size, st.st_mode & 07777, getuid());

	check_seals(fd);
	attack_mapping(fd, map, size);
	attack_mapped_copy(map, size);
	attack_copy_file(fd, size);
	attack_anew(fd, size);
	attack_as_map(fd, before);

	/* If it had shrunk, reading its end would raise SIGBUS. */
	ok = fstat(fd, &st) == 0 && (size_t)st.st_size == size && memcmp(before, map, size) == 0;
	tell_unchanged("its bytes afterwards", ok);
	munmap(map, size);
	return 0;
}
