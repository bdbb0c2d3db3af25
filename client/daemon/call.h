/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocking calls: a request, and the wait for its answer. */
#pragma once

#include "client/request/request.h"

/*
 * Sends req and waits. made: what making it returned; if that is negative there is no req, and the
 * call fails with it. The answer is the caller's to end with answer_done(), whatever the outcome;
 * it must have been initialized.
 */
int call(struct perfpersist *p, int made, struct request *req, struct answer *ret);

#define _cleanup_answer_ _cleanup_(answer_done)
