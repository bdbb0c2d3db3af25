/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Why an order failed: an errno value and the message for the user. */
#pragma once

#include "daemon/order.h"
#include "proto/macro.h"

struct failure {
	int error; /* positive; 0: none */
	char sentence[PP_SENTENCE_SIZE];
};

/* Notes a failure and returns -error, for `return fail(f, EEXIST, "…")`. The first failure stays:
 * those of the cleanup do not hide it. */
int fail(struct failure *f, int error, const char *fmt, ...) _printf_(3, 4);
