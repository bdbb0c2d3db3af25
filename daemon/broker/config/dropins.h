/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The folders of files that say what always records, as systemd.unit(5) has it for drop-ins:
 *
 *   /etc/perfpersist[-INSTANCE]/events.d/NAME.conf    the administrator's
 *   /run/perfpersist[-INSTANCE]/events.d/NAME.conf    until the next boot
 *   /usr/lib/perfpersist[-INSTANCE]/events.d/NAME.conf   what packages bring
 *   /var/lib/perfpersist[-INSTANCE]/events.d/NAME.conf   what perfctl create --boot wrote
 *
 * A file hides those of the same name in folders further down; an empty one, or a symlink to
 * /dev/null, stands for none. All that remain are read in the order of their names, whatever
 * folder they are in. With --config FILE there are FILE.d/ and the one below /var/lib instead.
 */
#pragma once

#include <limits.h>

#include "daemon/broker/config/dropin-file.h"

#define DROPINS_FILES_MAX 4096 /* in one folder: members write to one of them (--boot) */

struct dropin_places {
	char folders[4][PATH_MAX];
	size_t n;
	size_t written; /* index of the one that the daemon itself writes to */
};

/* instance: may be NULL; config: what --config gave, or NULL. 0; -EINVAL; -ENAMETOOLONG. */
int dropin_places(const char *instance, const char *config, struct dropin_places *ret);

/* "/var/lib/perfpersist[-INSTANCE]" + leaf. 0; -EINVAL; -ENAMETOOLONG. */
int dropin_state_place(const char *instance, const char *leaf, char *buf, size_t size);

/*
 * Reads all of them. Their namespaces go into config, over those that are there. Every fault is
 * told to complaints, a sentence a line, with file and line, and costs its section, or a file
 * that cannot be read. 0; -ENOMEM.
 */
int dropins_load(const struct dropin_places *places, struct config *config, FILE *complaints,
		 struct dropins **ret);
