/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks that the format text of a tracepoint has the kernel's form. Formats also come from
 * strangers' files, and libtraceevent, which parses them, trusts their form. So it gets only
 * formats that have passed here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * 0: well-formed, and its print fmt uses only supported constructs (printfmt.c); 1: only its fields
 * are well-formed. In either case *ret_fields says how many bytes precede the print fmt. -EBADMSG:
 * its fields are malformed.
 */
int format_check(const char *format, size_t size, size_t *ret_fields);

/* ── format-check-print.c ── */

#define FORMAT_FIELDS_MAX 256

struct format_fields {
	struct format_field {
		const char *name; /* in the text */
		size_t length;
		bool dynamic; /* a word in the payload gives its place */
	} all[FORMAT_FIELDS_MAX];
	size_t n;
};

/* Whether a print fmt (the text behind "print fmt: ") is a list of strings and supported
 * expressions over these fields. */
bool format_check_print(const char *text, size_t size, const struct format_fields *fields);
