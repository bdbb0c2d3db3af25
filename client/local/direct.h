/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Answers requests from an instance's registry (proto/places.h), with no daemon: root's way in
 * when there is none.
 */
#pragma once

#include "client/request/request.h"

/* -EACCES: we are not root; -ENOENT: there is no registry. */
int direct_check(const char *registry);

/* Carries out a request and fills in its answer: 0 or a negative errno value. */
int direct_run(const char *registry, struct request *req);

/* For all who read such a directory of an event. "cpu12" → 12; negative: another of its files. */
int direct_ring_cpu(const char *name);

/* When all rings were added: client_event_complete(), and they are put in the order of CPUs. */
int direct_complete(struct perfpersist_event *e);
