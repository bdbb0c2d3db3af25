/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes every call that a process can make on a readable descriptor, one after the other: for
 * reader-cost.c, whose readers do nothing else. The results of the calls do not matter. Knows no
 * library and no rights.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proto/macro.h"

struct burn {
	size_t size; /* most bytes to read from a descriptor */
	char *buf;   /* of that size */
	int sink;    /* /dev/null */
	int pipe[2]; /* empty between calls */
	int pair[2]; /* sockets */
	int file;    /* in memory, our own */
	int epoll, inotify;
	const char *folder; /* of the copied event, in the registry */
	const char *pin;    /* of its ring */
	uint64_t calls, refused;
};

#define BURN(b, call)                       \
	do {                                \
		(b)->refused += (call) < 0; \
		(b)->calls++;               \
	} while (0)

static inline int burn_begin(struct burn *b, size_t size, const char *folder, const char *pin)
{
	*b = (struct burn){ .size = size, .folder = folder, .pin = pin };
	b->buf = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	b->sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
	b->file = memfd_create("burn", MFD_CLOEXEC);
	b->epoll = epoll_create1(EPOLL_CLOEXEC);
	b->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (b->buf == MAP_FAILED || b->sink < 0 || b->file < 0 || b->epoll < 0 || b->inotify < 0 ||
	    pipe2(b->pipe, O_CLOEXEC | O_NONBLOCK) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, b->pair) < 0)
		return -errno;
	return 0;
}

/* Treats it as a map, which a copy is not. */
static inline void burn_bpf(struct burn *b, int fd)
{
	static const int commands[] = { BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM,
					BPF_MAP_DELETE_ELEM, BPF_MAP_GET_NEXT_KEY,
					BPF_MAP_FREEZE,	     BPF_MAP_LOOKUP_AND_DELETE_ELEM };
	union bpf_attr attr;
	__u32 key = 0, n = 1;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		attr = (union bpf_attr){ .map_fd = (__u32)fd };
		if (commands[i] != BPF_MAP_FREEZE) {
			attr.key = (uintptr_t)&key;
			attr.value = (uintptr_t)b->buf;
		}
		BURN(b, syscall(SYS_bpf, commands[i], &attr, sizeof(attr)));
	}
	attr = (union bpf_attr){ .batch = { .out_batch = (uintptr_t)&n,
					    .keys = (uintptr_t)&key,
					    .values = (uintptr_t)b->buf,
					    .count = 1,
					    .map_fd = (__u32)fd } };
	BURN(b, syscall(SYS_bpf, BPF_MAP_LOOKUP_BATCH, &attr, sizeof(attr)));
	attr = (union bpf_attr){
		.info = { .bpf_fd = (__u32)fd, .info_len = 64, .info = (uintptr_t)b->buf }
	};
	BURN(b, syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)));
	/* Tries the ring itself, which another user pinned. */
	attr = (union bpf_attr){ .pathname = (uintptr_t)b->pin, .file_flags = BPF_F_RDONLY };
	BURN(b, syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr)));
	attr = (union bpf_attr){ .map_id = 0 };
	BURN(b, syscall(SYS_bpf, BPF_MAP_GET_NEXT_ID, &attr, sizeof(attr)));
}

static inline void burn_mapped(struct burn *b, int fd, size_t size)
{
	static const int advice[] = { MADV_WILLNEED,	  MADV_SEQUENTIAL, MADV_RANDOM,
				      MADV_POPULATE_READ, MADV_COLD,	   MADV_PAGEOUT,
				      MADV_HUGEPAGE,	  MADV_REMOVE,	   MADV_DONTNEED };
	char *p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	struct iovec from = { p, MIN(size, 65536U) }, to = { b->buf, MIN(size, 65536U) };

	b->calls++;
	if (p == MAP_FAILED)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(advice); i++)
		BURN(b, madvise(p, size, advice[i]));
	BURN(b, mprotect(p, size, PROT_READ | PROT_WRITE));
	BURN(b, mlock(p, MIN(size, 65536U)));
	BURN(b, mincore(p, MIN(size, 65536U), (unsigned char *)b->buf));
	BURN(b, msync(p, size, MS_SYNC));
	BURN(b, process_vm_readv(getpid(), &to, 1, &from, 1, 0));
	BURN(b, syscall(SYS_futex, p, FUTEX_WAKE, 1, NULL, NULL, 0));
	BURN(b, write(b->pair[0], p, 4096));
	BURN(b, recv(b->pair[1], b->buf, b->size, MSG_TRUNC));
	memcpy(b->buf, p, MIN(size, b->size));
	munmap(p, size);
	b->calls++;
}

static inline void burn_read(struct burn *b, int fd, size_t size)
{
	size_t some = MIN(size, 65536U);
	struct iovec iov = { b->buf, some };
	loff_t at = 0, to = 0;
	off_t offset = 0;

	BURN(b, pread(fd, b->buf, MIN(size, b->size), 0));
	BURN(b, preadv2(fd, &iov, 1, 0, RWF_NOWAIT));
	BURN(b, lseek(fd, 0, SEEK_SET));
	BURN(b, read(fd, b->buf, some));
	BURN(b, lseek(fd, 0, SEEK_DATA));
	BURN(b, lseek(fd, 0, SEEK_HOLE));
	BURN(b, lseek(fd, 0, SEEK_END));
	BURN(b, sendfile(b->sink, fd, &offset, size));
	BURN(b, copy_file_range(fd, &at, b->file, &to, some, 0));
	at = 0;
	BURN(b, splice(fd, &at, b->pipe[1], NULL, 4096, SPLICE_F_NONBLOCK));
	BURN(b, tee(b->pipe[0], b->pipe[1], 4096, SPLICE_F_NONBLOCK));
	BURN(b, splice(b->pipe[0], NULL, b->sink, NULL, 65536, SPLICE_F_NONBLOCK));
	BURN(b, syscall(SYS_readahead, fd, 0, size));
	BURN(b, posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	BURN(b, sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
	BURN(b, fsync(fd));
	BURN(b, ftruncate(fd, 0));
	BURN(b, fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
	BURN(b, write(fd, b->buf, 1));
}

static inline void burn_descriptor(struct burn *b, int fd)
{
	static const unsigned long requests[] = { FIONREAD,	   FIGETBSZ,	  FIBMAP,
						  FS_IOC_GETFLAGS, FS_IOC_FIEMAP, BLKGETSIZE64 };
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN | POLLOUT };
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	struct statfs fs;
	struct statx stx;
	struct stat st;
	char path[64];
	int again;

	BURN(b, fstat(fd, &st));
	BURN(b, statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &stx));
	BURN(b, fstatfs(fd, &fs));
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		memset(b->buf, 0, 64);
		BURN(b, ioctl(fd, requests[i], b->buf));
	}
	BURN(b, fcntl(fd, F_GETFL));
	BURN(b, fcntl(fd, F_SETFL, O_NONBLOCK));
	BURN(b, fcntl(fd, F_GET_SEALS));
	BURN(b, fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	BURN(b, fcntl(fd, F_OFD_SETLK, &lock));
	lock.l_type = F_UNLCK;
	BURN(b, fcntl(fd, F_OFD_SETLK, &lock));
	BURN(b, fcntl(fd, F_SETLEASE, F_RDLCK));
	BURN(b, fcntl(fd, F_SETLEASE, F_UNLCK));
	BURN(b, fcntl(fd, F_NOTIFY, 0));
	BURN(b, flock(fd, LOCK_SH | LOCK_NB));
	BURN(b, flock(fd, LOCK_UN));
	BURN(b, fchmod(fd, 0666));
	BURN(b, poll(&poll_fd, 1, 0));
	BURN(b, epoll_ctl(b->epoll, EPOLL_CTL_ADD, fd, &event));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	BURN(b, inotify_add_watch(b->inotify, path, IN_ALL_EVENTS));
	BURN(b, open(path, O_RDWR | O_CLOEXEC));
	again = open(path, O_RDONLY | O_CLOEXEC);
	BURN(b, again);
	close_fd(again);
	BURN(b, read(b->inotify, b->buf, 4096));
	BURN(b, readlink(path, b->buf, 64));
	again = dup(fd);
	BURN(b, again);
	close_fd(again);
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	again = open(path, O_RDONLY | O_CLOEXEC);
	BURN(b, read(again, b->buf, 4096));
	close_fd(again);
}

/* Reads the event's text files, where their mode allows it. */
static inline void burn_texts(struct burn *b)
{
	static const char *const names[] = { "info", "stat", "cpu0", "meta", "" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[300];
		int fd;

		snprintf(path, sizeof(path), "%s/%s", b->folder, names[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		BURN(b, fd);
		BURN(b, read(fd, b->buf, 4096));
		close_fd(fd);
	}
}

static inline void burn_all(struct burn *b, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return;
	burn_texts(b);
	burn_bpf(b, fd);
	burn_descriptor(b, fd);
	burn_read(b, fd, (size_t)st.st_size);
	burn_mapped(b, fd, (size_t)st.st_size);
}
