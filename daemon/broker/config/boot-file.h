/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What `perfctl create --boot` leaves behind: /var/lib/perfpersist[-INSTANCE]/events.d/
 * NAMESPACE.NAME.conf, a file as people write them for events.d. It is there, whole and on the
 * disk, or it is not.
 */
#pragma once

#include "daemon/broker/state/namespace.h"
#include "proto/protocol.h"

struct boot_file {
	const char *folder; /* events.d; made if only it is missing */
	const struct pp_msg_create_request *request;
	uint32_t creator;
	const struct namespace *ns; /* to be written down, too; or NULL */
};

/* 0; a negative errno value with a sentence. -EINVAL: a file cannot say what is in the request. */
int boot_file_write(const struct boot_file *b, char *sentence, size_t size);

/* One that is not there is no failure. 0; a negative errno value with a sentence. */
int boot_file_remove(const char *path, const char *ns, const char *event, char *sentence,
		     size_t size);
