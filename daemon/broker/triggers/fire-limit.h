/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How often each user may fire triggers by hand, all of them together: each firing is an order, and
 * costs whoever is to save what was frozen. Root is exempt. Must not know triggers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FIRES_MAX 10		  /* of a user, */
#define FIRES_TIME 60000000000ULL /* within so many ns */
#define FIRES_USERS 128		  /* who fire in that time; others wait */

struct fire_limit {
	struct {
		uint32_t uid;
		uint32_t n;
		uint64_t since; /* CLOCK_MONOTONIC, ns */
	} users[FIRES_USERS];
};

/* Whether the user may fire now, which is then counted. now: CLOCK_MONOTONIC, ns. */
bool fire_limit_take(struct fire_limit *l, uint32_t uid, uint64_t now);
