/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Replaces a pinned map by one that another version of perfpersist, or damage, might have left. The
 * map must be a ring or an event's meta.
 *
 *   newer-pin newer  PATH    version + 1
 *   newer-pin larger PATH    version + 1, and 512 bytes more than this version knows
 *   newer-pin damage PATH    overwrites magic and version
 *   newer-pin rate   PATH    of a meta: an older version's rate of 2^61, in whose bits there are user stacks now
 *
 * Flags, the frozen state, owner and mode stay. Both kinds of map begin with a u64 magic and a u32
 * version.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "daemon/engine/registry/meta.h"
#include "proto/macro.h"

#define VERSION_OFFSET 8
#define LARGER_BY 512

static int bpf(int cmd, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

static int open_pin(const char *path)
{
	union bpf_attr attr = { .pathname = (uintptr_t)path };

	return bpf(BPF_OBJ_GET, &attr);
}

static int pin_info(int fd, struct bpf_map_info *ret)
{
	union bpf_attr attr = {
		.info = { .bpf_fd = (unsigned)fd,
			  .info_len = sizeof(*ret),
			  .info = (uintptr_t)ret },
	};

	*ret = (struct bpf_map_info){ 0 };
	return bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
}

static int copy_value(int cmd, int fd, void *value)
{
	unsigned key = 0;
	union bpf_attr attr = {
		.map_fd = (unsigned)fd,
		.key = (uintptr_t)&key,
		.value = (uintptr_t)value,
	};

	return bpf(cmd, &attr);
}

static void change(char *value, const char *how)
{
	struct pp_meta *meta = (void *)value;
	unsigned version;

	if (!strcmp(how, "rate")) {
		meta->event.spec.stack_user = 8192;
		return;
	}
	if (!strcmp(how, "damage")) {
		memset(value, 0xa5, VERSION_OFFSET + sizeof(version));
		return;
	}
	memcpy(&version, value + VERSION_OFFSET, sizeof(version));
	version++;
	memcpy(value + VERSION_OFFSET, &version, sizeof(version));
}

static int make_map(const struct bpf_map_info *info, const void *value)
{
	union bpf_attr attr = {
		.map_type = info->type,
		.key_size = info->key_size,
		.value_size = info->value_size,
		.max_entries = info->max_entries,
		.map_flags = info->map_flags,
	};
	_cleanup_close_ int fd = bpf(BPF_MAP_CREATE, &attr);
	int r = fd < 0 ? fd : copy_value(BPF_MAP_UPDATE_ELEM, fd, (void *)(uintptr_t)value);

	return r < 0 ? r : TAKE_FD(fd);
}

static int freeze(int fd)
{
	union bpf_attr attr = { .map_fd = (unsigned)fd };

	return bpf(BPF_MAP_FREEZE, &attr);
}

static int replace_pin(const char *path, int fd)
{
	union bpf_attr attr = { .pathname = (uintptr_t)path, .bpf_fd = (unsigned)fd };
	struct stat st;
	int r;

	if (stat(path, &st) < 0 || unlink(path) < 0)
		return -errno;
	r = bpf(BPF_OBJ_PIN, &attr);
	if (r < 0)
		return r;
	return chmod(path, st.st_mode & 07777) < 0 || chown(path, st.st_uid, st.st_gid) < 0 ? -errno
											    : 0;
}

static int run(const char *how, const char *path)
{
	_cleanup_close_ int old = open_pin(path), new = -EBADF;
	_cleanup_free_ char *value = NULL;
	struct bpf_map_info info;
	int r = old < 0 ? old : pin_info(old, &info);

	if (r < 0)
		return r;
	if (info.value_size < 16)
		return -EINVAL;
	value = calloc(1, ALIGN_TO((size_t)info.value_size + LARGER_BY, (size_t)8));
	if (!value)
		return -ENOMEM;
	r = copy_value(BPF_MAP_LOOKUP_ELEM, old, value);
	if (r < 0)
		return r;
	change(value, how);
	if (!strcmp(how, "larger"))
		info.value_size += LARGER_BY;
	new = make_map(&info, value);
	if (new < 0)
		return new;
	/* Rings are frozen, and no other map of ours can be mapped. */
	r = info.map_flags & BPF_F_MMAPABLE ? freeze(new) : 0;
	return r < 0 ? r : replace_pin(path, new);
}

int main(int argc, char **argv)
{
	int r;

	if (argc != 3 || (strcmp(argv[1], "newer") && strcmp(argv[1], "larger") &&
			  strcmp(argv[1], "damage") && strcmp(argv[1], "rate"))) {
		fprintf(stderr, "usage: newer-pin newer|larger|damage|rate PATH\n");
		return 2;
	}
	r = run(argv[1], argv[2]);
	if (r < 0)
		fprintf(stderr, "newer-pin: %s: %s\n", argv[2], strerror(-r));
	return r < 0;
}
