/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by sources.c, sources-resolve.c and sources-restore.c only. */
#pragma once

#include "daemon/engine/sources/sources.h"

/* Room for n. -ENOMEM, with a message. */
int sources_allocate(struct sources *s, size_t n, struct failure *f);

/* Initializes a source before it is planned; tp: the place of its tracepoint, if it has one. */
void source_begin(const struct pp_spec *spec, const struct pp_parsed *parsed,
		  const struct pp_source *term, struct tracepoint *tp, struct source *ret);

/* Plans it with the best recorder that can record it; only: of that kind, if not 0. */
int source_plan(struct source *s, uint32_t only, struct failure *f);
