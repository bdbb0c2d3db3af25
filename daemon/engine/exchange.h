/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* An order on its way to its answer, with the broker. */
#pragma once

#include "daemon/engine/registry/tapes.h"
#include "daemon/order.h"
#include "proto/packet.h"

struct exchange {
	int connection; /* the broker's; < 0: none */
	uid_t broker;
	struct pp_order order; /* too large for the stack */
	struct pp_answer answer;
	struct pp_fds fds; /* sent with it, then closed */
};

/* One order, from packet to answer. < 0: the connection is unusable. */
int exchange_serve(struct exchange *x);

/* An answer; serial 0: one that nobody asked for. */
void answer_begin(struct exchange *x, uint64_t serial, enum pp_answer_type type);
void answer_tape(struct exchange *x, uint64_t serial, const struct tape *tape);
int answer_send(struct exchange *x);
