/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The file that `perfctl create --boot` leaves behind:
 * /var/lib/perfpersist[-INSTANCE]/events.d/NAMESPACE.NAME.conf, in the same form as people write
 * files for events.d. The file is complete and on the disk, or it does not exist.
 */
#pragma once

#include "daemon/broker/state/namespace.h"
#include "proto/protocol.h"

struct boot_file {
	const char *folder; /* events.d; created if only the last component is missing */
	const struct pp_msg_create_request *request;
	uint32_t creator;
	const struct namespace *ns; /* to be written too; or NULL */
};

/* 0; a negative errno value with an error message. -EINVAL: a file cannot express the request;
 * -ENOSPC: the folder has as many files as are read (DROPINS_FILES_MAX). */
int boot_file_write(const struct boot_file *b, char *sentence, size_t size);

/* A missing file is no failure. durable: the removal is on the disk at return. 0; a negative errno
 * value with an error message. */
int boot_file_remove(const char *path, const char *ns, const char *event, bool durable,
		     char *sentence, size_t size);
