// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts firings by hand. See fire-limit.h. */
#include "daemon/broker/triggers/fire-limit.h"

#include <stddef.h>

bool fire_limit_take(struct fire_limit *l, uint32_t uid, uint64_t now)
{
	size_t place = FIRES_USERS;

	if (uid == 0)
		return true;
	for (size_t i = 0; i < FIRES_USERS; i++) {
		if (now - l->users[i].since >= FIRES_TIME)
			l->users[i].n = 0;
		if (!l->users[i].n)
			place = place == FIRES_USERS ? i : place;
		else if (l->users[i].uid == uid)
			return l->users[i].n < FIRES_MAX && ++l->users[i].n;
	}
	if (place == FIRES_USERS)
		return false;
	l->users[place].uid = uid;
	l->users[place].n = 1;
	l->users[place].since = now;
	return true;
}
