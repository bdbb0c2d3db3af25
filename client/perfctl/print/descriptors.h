/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What an event consists of, as a table and as JSON. */
#pragma once

#include <stdio.h>

#include "client/perfctl/output/output.h"
#include "client/perfpersist.h"

void descriptors_print(FILE *f, const struct perfpersist_descriptor *v, size_t n);

/* The member "fds" of an object. */
void descriptors_json(struct json *j, const struct perfpersist_descriptor *v, size_t n);
