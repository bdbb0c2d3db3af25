/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Whether the format text of a tracepoint has the form in which the kernel writes it. Formats come
 * from files of strangers as well, and libtraceevent, which reads them, trusts their form. So it is
 * given nothing that has not passed here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * 0: all of it is well-formed, and its print fmt uses only what is printed by it (printfmt.c);
 * 1: its fields are, its print fmt is not: *ret_fields (in either case) says how many bytes come
 * before that; -EBADMSG: its fields are not.
 */
int format_check(const char *format, size_t size, size_t *ret_fields);

/* ── format-check-print.c ── */

#define FORMAT_FIELDS_MAX 256

struct format_fields {
	struct format_field {
		const char *name; /* in the text */
		size_t length;
		bool dynamic; /* its word says where its bytes are */
	} all[FORMAT_FIELDS_MAX];
	size_t n;
};

/* Whether a print fmt (what is behind "print fmt: ") is a list of strings and expressions over
 * these fields, as far as they are printed. */
bool format_check_print(const char *text, size_t size, const struct format_fields *fields);
