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

static int make(const char *pin, uint32_t size, int *ret)
{
	_cleanup_close_ int fd = -EBADF;

	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "pp_ringbuf", 0, 0, size, NULL);
	if (fd < 0)
		return fd;
	if (bpf_obj_pin(fd, pin) < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

static int ringbuf_fd(const char *pin, uint32_t size, uid_t broker)
{
	_cleanup_close_ int fd = bpf_obj_get(pin);
	int r = 0;

	/* Never replaced: programs keep writing to the existing one. */
	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd < 0)
		r = make(pin, size, &fd);
	/* Reading it moves the consumer's position: only the broker may. */
	if (r >= 0)
		r = pins_own(pin, broker, 0660);
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
