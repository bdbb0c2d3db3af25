/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is known of an event, kept in a small map beside its rings: the struct pp_event that
 * recovery reads, and the text that `cat info` shows. Shared with bpf/tree.bpf.c.
 */
#ifndef PP_META_H
#define PP_META_H

#define PP_META_MAGIC 0x6174656d2d70702bULL /* "+pp-meta" */
#define PP_META_VERSION 1
#define PP_META_TEXT_SIZE 4096 /* a power of two: the program masks text_size with it */

/* The map's value begins so in every version. */
struct pp_meta_head {
	unsigned long long magic;
	unsigned int version;
	unsigned int size;	/* of struct pp_meta */
	unsigned int text_size; /* bytes used of text */
	unsigned int deleted;	/* 1: on its way out; the recorder may be gone */
	char text[PP_META_TEXT_SIZE];
};

#ifndef __bpf__
#include "daemon/order.h"

struct pp_meta {
	struct pp_meta_head head;
	struct pp_event event;
};

/* Makes the map with all of it. *ret_fd is the caller's. -errno. */
int meta_create(const struct pp_event *event, int *ret_fd);

/*
 * Reads and checks it. 0; -EBADMSG (not ours, or damaged); -EPROTONOSUPPORT (of a newer
 * version); -errno.
 */
int meta_read(int fd, struct pp_event *ret);

/* Says in it that the event is on its way out. */
int meta_mark_deleted(int fd);
#endif

#endif
