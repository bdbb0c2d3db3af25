// SPDX-License-Identifier: LGPL-2.1-or-later
/* Features of the running kernel. */
#include "daemon/engine/kernel/kernel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "proto/macro.h"

static struct btf *kept; /* until kernel_btf_forget() */

bool kernel_lacks_for_now(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE || r == -EAGAIN || r == -EINTR;
}

bool kernel_has_btf(void)
{
	return access("/sys/kernel/btf/vmlinux", R_OK) == 0;
}

static bool is_vmlinux(__u32 id)
{
	char name[16] = "";
	struct bpf_btf_info info = { .name = (uintptr_t)name, .name_len = sizeof(name) };
	_cleanup_close_ int fd = bpf_btf_get_fd_by_id(id);
	__u32 size = sizeof(info);

	return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && info.kernel_btf &&
	       !strcmp(name, "vmlinux");
}

/*
 * By its id (5.11): one system call copies it, while the file gives out a page at each, 1,400 times. Its
 * id is the first, because the kernel parses it before any program's or module's; no kernel promises
 * that, so another first one means to read the file.
 */
const struct btf *kernel_btf(void)
{
	__u32 id = 0;

	if (!kept && bpf_btf_get_next_id(0, &id) == 0 && is_vmlinux(id))
		kept = btf__load_from_kernel_by_id(id);
	if (!kept)
		kept = btf__load_vmlinux_btf();
	return kept;
}

void kernel_btf_forget(void)
{
	btf__free(kept);
	kept = NULL;
}

/* "none integrity [confidentiality]" */
bool kernel_is_confidential(void)
{
	_cleanup_fclose_ FILE *file = fopen("/sys/kernel/security/lockdown", "re");
	char line[128];

	return file && fgets(line, sizeof(line), file) && strstr(line, "[confidentiality]");
}

bool kernel_is_realtime(void)
{
	struct utsname u;

	return uname(&u) >= 0 && strstr(u.version, "PREEMPT_RT");
}

bool kernel_is_at_least(int major, int minor)
{
	struct utsname u;
	int has_major, has_minor;

	if (uname(&u) < 0 || sscanf(u.release, "%d.%d", &has_major, &has_minor) != 2)
		return false;
	return has_major > major || (has_major == major && has_minor >= minor);
}

/* In bytes, also in the anonymous structures that a randomized layout has. */
static int member_offset(const struct btf *btf, int id, const char *name)
{
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	int inner = -ENOENT;

	if (!t || !btf_is_composite(t))
		return -ENOENT;
	for (uint16_t i = 0; i < btf_vlen(t); i++) {
		const struct btf_member *m = &btf_members(t)[i];
		int at = (int)(btf_member_bit_offset(t, i) / 8);

		if (!strcmp(btf__name_by_offset(btf, m->name_off), name))
			return at;
		if (!m->name_off)
			inner = member_offset(btf, (int)m->type, name);
		if (inner >= 0)
			return at + inner;
	}
	return -ENOENT;
}

/* Facts from the kernel's BTF, read once. If there is no memory for it now, what costs speed and no
 * record, on any kernel. */
static const struct facts {
	bool preempts_tracepoints, preempts_syscalls;
	int task_mm;
} * facts(void)
{
	static const struct facts careful = { true, true, -ENOMEM };
	static struct facts f;
	static bool known;
	const struct btf *btf;

	if (known)
		return &f;
	btf = kernel_btf();
	if (!btf && kernel_lacks_for_now(-errno))
		return &careful;
	known = true;
	if (!btf) {
		/* Without BTF there is no tp_btf; `true` is right for syscalls:* on all kernels. */
		f.preempts_syscalls = kernel_is_at_least(7, 0);
		f.task_mm = -ENOENT;
		return &f;
	}
	f.preempts_syscalls =
		btf__find_by_name_kind(btf, "trace_call_bpf_faultable", BTF_KIND_FUNC) > 0;
	/* Until 6.12 another SRCU had this name, for tracepoints called on idle CPUs. */
	f.preempts_tracepoints =
		kernel_is_at_least(6, 13) &&
		btf__find_by_name_kind(btf, "tracepoint_srcu_srcu_data", BTF_KIND_VAR) > 0;
	f.task_mm = member_offset(btf, btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT),
				  "mm");
	return &f;
}

bool kernel_preempts_tracepoints(void)
{
	return facts()->preempts_tracepoints;
}

bool kernel_preempts_syscalls(void)
{
	return facts()->preempts_syscalls;
}

int kernel_task_mm(void)
{
	return facts()->task_mm;
}

/* The coarse clocks advance with the ticks; their resolution is the tick. */
uint64_t kernel_tick(void)
{
	struct timespec t = { .tv_nsec = 10000000 };

	clock_getres(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_nsec;
}
