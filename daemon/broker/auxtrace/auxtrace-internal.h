/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by auxtrace*.c only. */
#pragma once

#include "daemon/broker/auxtrace/auxtrace.h"

/* ── auxtrace-held.c ── */

/* NULL: the keeper has no such area. */
struct held_area *aux_held_find(const struct auxtrace *a, uint64_t event, uint32_t cpu);
/* The first area of an event that is not below this one, or NULL. */
struct held_area *aux_held_from(const struct auxtrace *a, uint64_t event);
/* The keeper has this area, in place of one of the same event and CPU. NULL: there is no memory. */
struct held_area *aux_held_put(struct auxtrace *a, const struct pp_keep_area *area);
void aux_held_drop(struct auxtrace *a, uint64_t event, uint32_t cpu);
/* The keeper must be asked what it has. Until all has been listed, the list is the earlier one: an
 * area that is listed again rests as long as it was to. */
void aux_held_forget(struct auxtrace *a);
/* The next page of its answer. False: it is not sorted, or there is no memory. */
bool aux_held_list(struct auxtrace *a, const struct pp_keep_area *areas, size_t n, bool more);

/* ── auxtrace.c ── */

/* Sends keeper.out, with descriptors or NULL. If that fails, the connection has ended. */
void auxtrace_ask(struct auxtrace *a, const struct pp_fds *fds);

/* ── auxtrace-order.c ── */

/* The event with AUX areas that owns rings of this id, or NULL. */
struct event *auxtrace_owner(const struct auxtrace *a, uint64_t origin);

/* Whether the event has its area on each online CPU with a ring. */
bool auxtrace_is_complete(const struct auxtrace *a, const struct event *e);

/* An area that is held where another is wanted, since its CPU was away. NULL: none, or nothing can be ordered now. */
const struct pp_keep_area *auxtrace_stale(const struct auxtrace *a);

/* Orders the perf events of the first event that lacks areas. Whether the engine has an order. */
bool auxtrace_order(struct auxtrace *a);

/* The engine or the keeper cannot give the event an area: retried later. error: positive. */
void auxtrace_refused(struct auxtrace *a, uint64_t id, int error, const char *sentence);

/* ── auxtrace-take.c ── */

/* Asks for the next copy. Whether there was one to ask for. */
bool aux_takings_ask(struct auxtrace *a);
void aux_takings_answered(struct auxtrace *a, const struct pp_keep_answer *answer,
			  struct pp_fds *fds);
/* The request at the keeper fails. */
void aux_takings_break(struct auxtrace *a, int error);
/* All others fail. */
void aux_takings_end(struct auxtrace *a, int error);

/* Those who wait for an event that traces now, cannot, or is gone. */
void aux_waits_check(struct auxtrace *a);
bool aux_waits_for(const struct auxtrace *a, uint64_t id);
void aux_waits_end(struct auxtrace *a, uint64_t id, int error, const char *sentence);
