// SPDX-License-Identifier: LGPL-2.1-or-later
/* Emits and loads entries. See entry.h. */
#include "daemon/engine/entry.h"

#include "daemon/engine/emit.h"
#include "daemon/engine/program.h"
#include "proto/macro.h"

int entry_load(enum bpf_prog_type type, enum bpf_attach_type expected, uint32_t attach_btf_id,
	       const struct recorder_slot *slot, int32_t ret_value, int *ret_fd)
{
	_cleanup_(emit_done) struct emitter e = {};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = expected,
		    .attach_btf_id = attach_btf_id);
	int fd;

	/* R1 is the context already. */
	emit_load_map(&e, BPF_REG_2, slot->fd);
	emit_mov_imm(&e, BPF_REG_3, (int32_t)slot->index);
	emit_call(&e, BPF_FUNC_tail_call);
	emit_mov_imm(&e, BPF_REG_0, ret_value);
	emit_exit(&e);
	if (e.error)
		return e.error;
	fd = program_load(type, "pp_entry", e.insns, e.n, &opts);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
