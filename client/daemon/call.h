/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Blocking calls: send a request and wait for its answer. */
#pragma once

#include "client/request/request.h"

/*
 * Sends req and waits. made: the result of making it; if negative, there is no req, and the call
 * fails with that error. *ret must be initialized; the caller ends it with answer_done(), whatever
 * the outcome.
 */
int call(struct perfpersist *p, int made, struct request *req, struct answer *ret);

#define _cleanup_answer_ _cleanup_(answer_done)
