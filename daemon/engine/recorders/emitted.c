// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/engine/recorders/emitted.h"

#include "daemon/engine/emit/filter-emit.h"
#include "daemon/engine/emit/program.h"
#include "proto/macro.h"

int emitted_load(enum bpf_prog_type type, const char *name, const struct source *source,
		 const struct recorder_target *target,
		 int (*emit)(struct emitter *e, const struct source *source,
			     const struct recorder_target *target, struct failure *f),
		 int *ret_fd, struct failure *f)
{
	_cleanup_(emit_done) struct emitter e = {};
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	int fd, r;

	if (target->spill_size < source->spill_size)
		return -EINVAL;
	r = emit(&e, source, target, f);
	if (r < 0)
		return r;
	emit_function(&e);
	if (e.error)
		return e.error;
	fd = program_load(type, name, e.insns, e.n, &opts);
	if (fd == -E2BIG && recorder_filters(source, target))
		return filter_too_large(f);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}
