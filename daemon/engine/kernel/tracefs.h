/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The kernel's tracepoints: id, format text, and the fields parsed from it. Owns the access to
 * tracefs (mounts one for this process alone if none is mounted).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tp_field {
	char name[64];
	uint32_t offset;  /* from the start of the payload, common fields included */
	uint32_t size;	  /* a __data_loc or __rel_loc field: 4, its word */
	bool is_data_loc; /* the word is (length << 16 | offset from the payload's start) */
	bool is_rel_loc;  /* … offset from the word's own end */
	bool is_signed;
	bool is_array;	 /* not one number; dynamic parts are arrays, too */
	bool is_text;	 /* … of characters */
	bool is_pointer; /* char *: the address of text */
	/* A copy of user memory that a system call's argument points at. perf and ftrace make it;
	 * programs do not see it. Offsets of its address and number of bytes; 0: it is text. */
	bool is_user_copy;
	uint32_t user_address, user_size;
};

struct tracepoint {
	char system[128], name[128];
	uint32_t id;  /* perf_event_attr.config */
	char *format; /* text from tracefs */
	size_t format_size;
	struct tp_field *fields; /* in the order of the format, the four common ones first */
	size_t n_fields;
	uint32_t fixed_size; /* bytes to the end of the last field */
	uint32_t given_size; /* … of the last field that programs see */
	bool has_dynamic;    /* any __data_loc or __rel_loc */
};

/*
 * -ENOENT (no such tracepoint in this kernel), -ENOMEDIUM (no tracefs, and it cannot be
 * mounted), -EBADMSG (an unreadable format), another -errno of reading.
 */
int tracepoint_read(const char *system, const char *name, struct tracepoint *ret);

/* The same from a given format text. -EBADMSG, -ENOMEM. */
int tracepoint_parse(const char *system, const char *name, const char *format, size_t size,
		     struct tracepoint *ret);

struct tracepoint_name {
	char system[128], name[128];
};

/*
 * All tracepoints that can be attached to and whose system and name match these globs (* ? [...]),
 * sorted; *ret is for free(3), NULL if *ret_n is 0. -ENOMEDIUM, another -errno of reading.
 */
int tracepoint_list(const char *system, const char *name, struct tracepoint_name **ret,
		    size_t *ret_n);

void tracepoint_done(struct tracepoint *tp);
