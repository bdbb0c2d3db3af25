/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A recorder's message to the broker when its event wakes readers: one of these in a
 * BPF_MAP_TYPE_RINGBUF of the instance (pinned as +wakeups, owned by the broker's user).
 *
 * A ring sends at most one in PP_WAKEUP_INTERVAL (limit.woken): a woken reader looks again after
 * that interval, so that it does not miss a record that came right behind.
 */
#pragma once

#include <linux/types.h>

#define PP_WAKEUP_INTERVAL 10000000ULL /* ns */
#define PP_WAKEUPS "+wakeups"

struct pp_wakeup {
	__u64 event_id;
	__u32 cpu;
	__u32 reserved;
};
