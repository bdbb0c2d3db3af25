/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the machine of an incident was like, and how the daemon is configured. */
#pragma once

#include "client/perfctl/output/outdir.h"

/* Appends to about.txt and config.txt of the directory what is there and may be read. instance may be NULL. */
void machine_tell(const struct outdir *o, const char *instance);
