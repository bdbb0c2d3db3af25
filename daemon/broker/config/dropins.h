/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The folders of files that say what always records, like the drop-ins of systemd.unit(5):
 *
 *   /etc/perfpersist[-INSTANCE]/events.d/NAME.conf    the administrator's
 *   /run/perfpersist[-INSTANCE]/events.d/NAME.conf    until the next boot
 *   /usr/lib/perfpersist[-INSTANCE]/events.d/NAME.conf   from packages
 *   /var/lib/perfpersist[-INSTANCE]/events.d/NAME.conf   from perfctl create --boot
 *
 * A file hides files of the same name in folders further down; an empty one, or a symlink to
 * /dev/null, counts as missing. The remaining files are read in the order of their names,
 * regardless of their folders. With --config FILE there are FILE.d/ and the one below /var/lib
 * instead.
 */
#pragma once

#include <limits.h>

#include "daemon/broker/config/dropin-file.h"

#define DROPINS_FILES_MAX 4096 /* in one folder: members can write to one of them (--boot) */

struct dropin_places {
	char folders[4][PATH_MAX];
	size_t n;
	size_t written; /* index of the folder that the daemon itself writes to */
};

/* instance: may be NULL; config: the argument of --config, or NULL. 0; -EINVAL; -ENAMETOOLONG. */
int dropin_places(const char *instance, const char *config, struct dropin_places *ret);

/* Whether a file of this name in one of the folders is read. */
bool dropin_is_named_so(const char *name);

/* "/var/lib/perfpersist[-INSTANCE]" + leaf. 0; -EINVAL; -ENAMETOOLONG. */
int dropin_state_place(const char *instance, const char *leaf, char *buf, size_t size);

/*
 * Reads all files. Their namespaces override those in config. Each fault goes to complaints as one
 * line, with file and line number, and costs its section; an unreadable file is left out. 0;
 * -ENOMEM.
 */
int dropins_load(const struct dropin_places *places, struct config *config, FILE *complaints,
		 struct dropins **ret);
