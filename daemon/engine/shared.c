// SPDX-License-Identifier: LGPL-2.1-or-later
/* Maps that all events of the instance share. */
#include "daemon/engine/shared.h"

#include <bpf/bpf.h>
#include <sys/stat.h>

#include "daemon/counts.h"
#include "daemon/wakeup.h"
#include "proto/macro.h"

/* At one wakeup per ring and PP_WAKEUP_INTERVAL: what 256 CPUs of 100 events send while the
 * broker is busy for 5 ms, and a multiple of every page size. What does not fit is no loss: the
 * next one tells as much. */
#define WAKEUPS_SIZE (256 * 1024)

struct shared {
	const char *pin, *name;
	enum bpf_map_type type;
	uint32_t key, value, n, flags;
};

static int make(const struct shared *s, int *ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = s->flags);
	_cleanup_close_ int fd = bpf_map_create(s->type, s->name, s->key, s->value, s->n, &opts);

	if (fd < 0)
		return fd;
	if (bpf_obj_pin(fd, s->pin) < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

/*
 * Who reads wakeups moves the consumer's position: nobody but the broker. The group is root's, so
 * that the engine finds it again without CAP_DAC_OVERRIDE; and the mode comes first, because chmod
 * of what is another's would need CAP_FOWNER.
 */
static int grant(const char *pin, uid_t broker)
{
	struct stat st;

	if (stat(pin, &st) < 0)
		return -errno;
	if (st.st_uid == 0 && chmod(pin, 0660) < 0)
		return -errno;
	return chown(pin, broker, 0) < 0 ? -errno : 0;
}

static int get(const struct shared *s, uid_t broker)
{
	_cleanup_close_ int fd = bpf_obj_get(s->pin);
	int r = 0;

	/* Never another in its place: programs that write to the one that is there run on. */
	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd < 0)
		r = make(s, &fd);
	if (r >= 0)
		r = grant(s->pin, broker);
	return r < 0 ? r : TAKE_FD(fd);
}

int shared_wakeups(uid_t broker)
{
	static const struct shared wakeups = {
		.pin = PP_WAKEUPS,
		.name = "pp_wakeups",
		.type = BPF_MAP_TYPE_RINGBUF,
		.n = WAKEUPS_SIZE,
	};

	return get(&wakeups, broker);
}

int shared_counts(uid_t broker)
{
	static const struct shared counts = {
		.pin = PP_COUNTS,
		.name = "pp_counts",
		.type = BPF_MAP_TYPE_ARRAY,
		.key = sizeof(uint32_t),
		.value = sizeof(struct pp_counts),
		.n = 1,
		.flags = BPF_F_MMAPABLE,
	};

	return get(&counts, broker);
}
