// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the calls of bpf(2); a libbpf for two of them would be too much to ask of a client. */
#include "client/bpf.h"

#include <linux/bpf.h>
#include <sys/syscall.h>

#include "client/public.h"

int client_bpf_open_pin(const char *path)
{
	union bpf_attr attr = { .pathname = (uintptr_t)path };
	long fd = syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

size_t client_bpf_value_size(int fd)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr attr = {
		.info = { .bpf_fd = (uint32_t)fd,
			  .info_len = sizeof(info),
			  .info = (uintptr_t)&info },
	};

	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)) < 0 ||
	    attr.info.info_len < offsetof(struct bpf_map_info, max_entries) + sizeof(uint32_t) ||
	    info.type != BPF_MAP_TYPE_ARRAY || info.max_entries != 1)
		return 0;
	return info.value_size;
}
