// SPDX-License-Identifier: LGPL-2.1-or-later
/* Converts a record's time to calendar time: one offset for the whole event. */
#include <string.h>

#include "client/public.h"
#include "client/rings/event.h"
#include "proto/clock.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static int hex_digit(int c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c > 0 ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

static bool is_this_boot(const uint8_t boot_id[16])
{
	_cleanup_fclose_ FILE *f = fopen(BOOT_ID, "re");
	unsigned n = 0;
	int c;

	while (f && n < 32 && (c = fgetc(f)) != EOF) {
		int digit = hex_digit(c);

		if (digit < 0)
			continue;
		if (digit != (n % 2 ? boot_id[n / 2] & 15 : boot_id[n / 2] >> 4))
			return false;
		n++;
	}
	return n == 32;
}

bool client_event_is_of_this_boot(const struct perfpersist_event *e)
{
	return !e->n || is_this_boot(e->header.boot_id);
}

/* The offset from CLOCK_MONOTONIC to CLOCK_REALTIME, modulo 2^64. */
static uint64_t find_offset(const struct perfpersist_event *e)
{
	const struct pp_ring_header *h = &e->header;

	if (e->base.saved)
		return e->base.saved - e->base.saved_mono;
	if (!client_event_is_of_this_boot(e))
		return h->created - h->created_mono;
	return pp_clock_offset();
}

_public_ uint64_t perfpersist_event_realtime(struct perfpersist_event *e, uint64_t time)
{
	if (!e->has_clock) {
		e->clock_offset = find_offset(e);
		e->has_clock = true;
	}
	return e->clock_offset + time;
}
