// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes the states of rings. See mark.h. */
#include "daemon/engine/registry/mark.h"

#include <bpf/bpf.h>
#include <string.h>

#include "daemon/engine/emit/emit.h"
#include "daemon/engine/emit/program.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/pins.h"
#include "proto/macro.h"

/* A program can name 64 maps. */
#define RINGS_MAX 60

#define STATE_OFFSET (PP_RING_LIVE_OFFSET + (int)offsetof(struct pp_ring_live, state))

/* BPF_PROG_TYPE_SYSCALL (5.14): a program that only user space runs. */
static int mark_some(const int *ring_fds, size_t n, enum pp_ring_state state)
{
	LIBBPF_OPTS(bpf_prog_load_opts, load, .prog_flags = BPF_F_SLEEPABLE);
	LIBBPF_OPTS(bpf_test_run_opts, run);
	_cleanup_(emit_done) struct emitter e = {};
	_cleanup_close_ int fd = -EBADF;

	for (size_t i = 0; i < n; i++) {
		emit_load_map_value(&e, BPF_REG_1, ring_fds[i], 0);
		emit_store_imm(&e, 4, BPF_REG_1, STATE_OFFSET, state);
	}
	emit_mov_imm(&e, BPF_REG_0, 0);
	emit_exit(&e);
	if (e.error)
		return e.error;
	fd = program_load(BPF_PROG_TYPE_SYSCALL, "pp_mark", e.insns, e.n, &load);
	if (fd < 0)
		return fd;
	return bpf_prog_test_run_opts(fd, &run) < 0 ? -errno : 0;
}

int mark_rings(const int *ring_fds, size_t n, enum pp_ring_state state)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i += RINGS_MAX)
		r = mark_some(ring_fds + i, MIN(n - i, (size_t)RINGS_MAX), state);
	return r;
}

int mark_path(const char *event_path, enum pp_ring_state state)
{
	_cleanup_free_ struct meta_map *maps = NULL;
	_cleanup_free_ int *fds = NULL;
	_cleanup_close_ int meta = pins_get(event_path, "meta");
	size_t n_maps, n = 0;
	struct pp_event event;
	int r;

	if (meta < 0)
		return meta;
	r = meta_read_all(meta, &event, NULL, &maps, &n_maps, NULL);
	if (r < 0)
		return r;
	fds = calloc(n_maps, sizeof(*fds));
	if (!fds)
		return -ENOMEM;
	for (size_t i = 0; i < n_maps; i++) {
		int fd = meta_map_open(&maps[i]);

		if (fd >= 0 && maps[i].cpu == UINT32_MAX)
			close_fd(fd);
		else if (fd >= 0)
			fds[n++] = fd;
	}
	r = mark_rings(fds, n, state);
	while (n > 0)
		close_fd(fds[--n]);
	return r;
}
