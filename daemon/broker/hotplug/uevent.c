// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Parses a uevent: bytes that need not be text. An added CPU is only present; a second uevent
 * reports that it comes online, and that one counts.
 */
#include "daemon/broker/hotplug/uevent.h"

#include <string.h>

#include "daemon/text.h"

/* The text after the prefix, up to the NUL; NULL: the uevent does not begin with the prefix. */
static const char *after(const char *notice, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(notice, prefix, n) == 0 ? notice + n : NULL;
}

bool uevent_parse(const void *notice, size_t size, struct uevent *ret)
{
	const char *text = notice, *number;
	struct uevent u = { .online = true };

	if (size == 0 || !memchr(text, '\0', size))
		return false;
	number = after(text, "online@/devices/system/cpu/cpu");
	if (!number) {
		u.online = false;
		number = after(text, "offline@/devices/system/cpu/cpu");
	}
	/* Digits only: pp_parse_u32 would accept hexadecimal, too. */
	if (!number || number[strspn(number, "0123456789")] != '\0' ||
	    pp_parse_u32(number, &u.cpu) < 0 || u.cpu >= PP_CPUS_MAX)
		return false;
	*ret = u;
	return true;
}
