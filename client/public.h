/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Common to all files of the library: the mark of a public function, and this thread's last error
 * message. Knows no object of the library. */
#pragma once

#include "proto/macro.h"

/* All other symbols are hidden (-fvisibility=hidden); libperfpersist.map lists these again. */
#define _public_ __attribute__((visibility("default")))

#define CLIENT_SENTENCE_SIZE 768

/* Stores an error message and returns error (negative), for the caller to return. */
int client_fail(int error, const char *fmt, ...) _printf_(2, 3);

/* The thread's last error message; never NULL. */
const char *client_sentence(void);

/* Whether this version can serve an option or info struct of the caller (its sz): all members of
 * the given type existed in version 0.1. */
#define SZ_IS_VALID(p) ((p)->sz >= sizeof(*(p)))
