// SPDX-License-Identifier: LGPL-2.1-or-later
/* The instance's ring buffers. See wakeups.h. */
#include "daemon/engine/registry/wakeups.h"

#include <bpf/bpf.h>

#include "daemon/engine/registry/pins.h"
#include "daemon/trigger.h"
#include "daemon/wakeup.h"
#include "proto/macro.h"

/* At one wakeup per ring and PP_WAKEUP_INTERVAL: the messages of 256 CPUs with 100 events while the
 * broker is busy for 5 ms; also a multiple of every page size. Dropping more is no loss: the next
 * wakeup has the same effect. */
#define WAKEUPS_SIZE (256 * 1024)

/* A thousand firings. Those that find no room are counted, and the broker looks at the counts every
 * ten seconds. */
#define FIRINGS_SIZE (64 * 1024)

#define PP_SENDING "+sending"

static int make_ringbuf(uint32_t size)
{
	return bpf_map_create(BPF_MAP_TYPE_RINGBUF, "pp_ringbuf", 0, 0, size, NULL);
}

static int make_sending(uint32_t size)
{
	return bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "pp_sending", sizeof(uint32_t), size, 1,
			      NULL);
}

static int map_fd(const char *pin, int (*make)(uint32_t size), uint32_t size)
{
	_cleanup_close_ int fd = bpf_obj_get(pin);

	/* Never replaced: programs keep writing to the existing one. */
	if (fd >= 0)
		return TAKE_FD(fd);
	if (errno != ENOENT)
		return -errno;
	fd = make(size);
	if (fd < 0)
		return fd;
	return bpf_obj_pin(fd, pin) < 0 ? -errno : TAKE_FD(fd);
}

static int ringbuf_fd(const char *pin, uint32_t size, uid_t broker)
{
	_cleanup_close_ int fd = map_fd(pin, make_ringbuf, size);
	/* Reading it moves the consumer's position: only the broker may. */
	int r = fd < 0 ? fd : pins_own(pin, broker, 0660);

	return r < 0 ? r : TAKE_FD(fd);
}

int wakeups_fd(uid_t broker)
{
	return ringbuf_fd(PP_WAKEUPS, WAKEUPS_SIZE, broker);
}

int firings_fd(uid_t broker)
{
	return ringbuf_fd(PP_FIRINGS, FIRINGS_SIZE, broker);
}

int sending_fd(void)
{
	return map_fd(PP_SENDING, make_sending, sizeof(uint64_t));
}
