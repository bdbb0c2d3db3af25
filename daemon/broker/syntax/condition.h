/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The text of a trigger's condition (struct pp_condition in daemon/trigger.h):
 *
 *   KEY    FIELD[,FIELD]          what begins and what ends a pair have in common
 *   RATE   over N/s for TIME      whole seconds: 5s, 1m
 */
#pragma once

#include <stdbool.h>

#include "daemon/order.h"

/* Each sets its part of *c. 0; a negative errno value with an error message. */
int condition_parse_key(const char *text, struct pp_condition *c, char *sentence, size_t size);
int condition_parse_rate(const char *text, struct pp_condition *c, char *sentence, size_t size);

/*
 * Completes a condition whose parts are set as far as they were given; until: the last selection of the
 * request ends the pairs that the others begin. The request's texts can be parsed. -EINVAL with a message:
 * the parts do not make a condition; -ENOMEM, too.
 */
int condition_settle(struct pp_condition *c, const struct pp_msg_create_request *request,
		     bool until, char *sentence, size_t size);

/* The text again; empty: there is none. */
void condition_print_key(const struct pp_condition *c, char buf[PP_KEY_SIZE]);
void condition_print_rate(const struct pp_condition *c, char buf[PP_RATE_SIZE]);
