/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What sources.c, sources-resolve.c and sources-restore.c share, and nobody else sees. */
#pragma once

#include "daemon/engine/sources/sources.h"

/* Room for n. -ENOMEM, with a sentence. */
int sources_allocate(struct sources *s, size_t n, struct failure *f);

/* What a source is before it is planned; tp: where its tracepoint is, if it has one. */
void source_begin(const struct pp_spec *spec, const struct pp_parsed *parsed,
		  const struct pp_source *term, struct tracepoint *tp, struct source *ret);

/* Has it planned by the best recorder that can do it; only: of that kind, if not 0. */
int source_plan(struct source *s, uint32_t only, struct failure *f);
