// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Takes a notice of the kernel apart: bytes that need not be text. A CPU that is added is only
 * there; what counts is that it comes online, of which a notice of its own tells.
 */
#include "daemon/broker/hotplug/uevent.h"

#include <string.h>

#include "daemon/text.h"

/* What stands behind the prefix, up to the NUL; NULL: the notice does not begin so. */
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
	/* Digits alone: pp_parse_u32 would take hexadecimal, too. */
	if (!number || number[strspn(number, "0123456789")] != '\0' ||
	    pp_parse_u32(number, &u.cpu) < 0 || u.cpu >= PP_CPUS_MAX)
		return false;
	*ret = u;
	return true;
}
