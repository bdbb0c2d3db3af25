/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Answers requests from an instance's registry (proto/places.h) without a daemon, for root. */
#pragma once

#include "client/request/request.h"

/* -EACCES: we are not root; -ENOENT: there is no registry. */
int direct_check(const char *registry);

/* Carries out a request and fills in its answer: 0 or a negative errno value. */
int direct_run(const char *registry, struct request *req);

/* For all readers of an event's directory. "cpu12" → 12; negative: another file. */
int direct_ring_cpu(const char *name);

/* Call after adding all rings: client_event_complete(), then sorts them by CPU. */
int direct_complete(struct perfpersist_event *e);
