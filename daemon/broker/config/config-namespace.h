/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* [namespace NAME] sections, which perfpersistd.conf and the files of events.d have alike. */
#pragma once

#include "daemon/broker/config/config.h"
#include "daemon/broker/config/settings.h"

/* Each of these complains of what it cannot take, and leaves its output as it was. */

/* A whole number from 1 to max. */
void config_take_limit(struct settings *s, const char *key, const char *value, uint64_t max,
		       uint64_t *field);

/* A size, or a part of the machine's memory. */
void config_take_memory(struct settings *s, const char *key, const char *value, uint64_t *field);

/* Whether a namespace can have this name. */
bool config_take_name(struct settings *s, const char *name);

void config_take_namespace_key(struct settings *s, struct config_namespace *ns, const char *key,
			       const char *value);

/* NAME, if the section is [namespace NAME]; else NULL. */
const char *config_section_namespace(const char *section);
