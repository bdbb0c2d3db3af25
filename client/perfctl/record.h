/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A record as a person or a program reads it.
 */
#ifndef PERFCTL_RECORD_H
#define PERFCTL_RECORD_H

#include "client/perfctl/decode.h"
#include "client/perfpersist.h"

/* info: of the event; d: decodes its payloads, or NULL if nothing can. */
void record_print(const struct perfpersist_info *info, struct decoder *d,
		  const struct perfpersist_sample *s, FILE *f);
/* One object on a line of its own. */
void record_json(const struct perfpersist_info *info, struct decoder *d,
		 const struct perfpersist_sample *s, FILE *f);

#endif
