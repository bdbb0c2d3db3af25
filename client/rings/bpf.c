// SPDX-License-Identifier: LGPL-2.1-or-later
/* The calls of bpf(2); a client should not need libbpf for so few. */
#include "client/rings/bpf.h"

#include <linux/bpf.h>
#include <sys/syscall.h>

#include "client/public.h"

int client_bpf_open_pin(const char *path)
{
	union bpf_attr attr = { .pathname = (uintptr_t)path };
	long fd = syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

/* Whether the kernel gave the fields that we need. */
static bool get_info(int fd, struct bpf_map_info *ret)
{
	union bpf_attr attr = {
		.info = { .bpf_fd = (uint32_t)fd,
			  .info_len = sizeof(*ret),
			  .info = (uintptr_t)ret },
	};

	*ret = (struct bpf_map_info){ 0 };
	return syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) >= 0 &&
	       attr.info.info_len >= offsetof(struct bpf_map_info, max_entries) + sizeof(uint32_t);
}

size_t client_bpf_value_size(int fd)
{
	struct bpf_map_info info;

	if (!get_info(fd, &info) || info.type != BPF_MAP_TYPE_ARRAY || info.max_entries != 1)
		return 0;
	return info.value_size;
}

bool client_bpf_is_array(int fd, size_t value_size)
{
	struct bpf_map_info info;

	return get_info(fd, &info) && info.type == BPF_MAP_TYPE_ARRAY &&
	       info.key_size == sizeof(uint32_t) && info.value_size == value_size;
}

int client_bpf_lookup(int fd, const void *key, void *value)
{
	union bpf_attr attr = {
		.map_fd = (uint32_t)fd,
		.key = (uintptr_t)key,
		.value = (uintptr_t)value,
	};

	return syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)) < 0 ? -errno : 0;
}

int client_bpf_link_perf(int program, int fd)
{
	union bpf_attr attr = {
		.link_create = { .prog_fd = (uint32_t)program,
				 .target_fd = (uint32_t)fd,
				 .attach_type = BPF_PERF_EVENT },
	};
	long link = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return link < 0 ? -errno : (int)link;
}

uint32_t client_bpf_link_id(int link)
{
	struct bpf_link_info info = { 0 };
	union bpf_attr attr = {
		.info = { .bpf_fd = (uint32_t)link,
			  .info_len = sizeof(info),
			  .info = (uintptr_t)&info },
	};

	return syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) < 0 ? 0 : info.id;
}

bool client_bpf_is_sampling(int program)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attr = {
		.info = { .bpf_fd = (uint32_t)program,
			  .info_len = sizeof(info),
			  .info = (uintptr_t)&info },
	};

	return syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) >= 0 &&
	       info.type == BPF_PROG_TYPE_PERF_EVENT;
}
