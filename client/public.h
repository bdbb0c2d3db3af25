/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What every file of the library uses: the mark of a public function, and the sentence about
 * the last failure of this thread. Knows no object of the library.
 */
#pragma once

#include "proto/macro.h"

/* All else is hidden (-fvisibility=hidden), and libperfpersist.map lists these once more. */
#define _public_ __attribute__((visibility("default")))

#define CLIENT_SENTENCE_SIZE 768

/* Notes one sentence on what failed and returns error (negative), to be returned in turn. */
int client_fail(int error, const char *fmt, ...) _printf_(2, 3);

/* The thread's last sentence; never NULL. */
const char *client_sentence(void);

/*
 * Whether an option or info struct of the caller (its sz) is one this version can serve; all
 * members of the given type were there in version 0.1.
 */
#define SZ_IS_VALID(p) ((p)->sz >= sizeof(*(p)))
