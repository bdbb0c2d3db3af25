/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes requests from the caller's arguments. Only checks that texts fit into their fields: the
 * daemon judges them. Sends nothing.
 *
 * Each returns 0, and the caller owns *ret; -EINVAL; -ENOMEM.
 */
#pragma once

#include "client/request/request.h"

/* For operations without arguments. */
int make_plain(struct perfpersist *p, enum pp_op op, struct request **ret);

/* For an event by name or id: show, delete, wakeup, open, change, fire, release. */
int make_by_name(struct perfpersist *p, enum pp_op op, const char *ns, const char *name,
		 struct request **ret);
int make_by_id(struct perfpersist *p, enum pp_op op, uint64_t id, struct request **ret);

/* op: LIST, TRIGGERS, TAPES. */
int make_list(struct perfpersist *p, enum pp_op op, const char *ns, struct request **ret);
int make_watch(struct perfpersist *p, const char *ns, struct request **ret);
int make_create(struct perfpersist *p, const char *ns, const char *name,
		const struct perfpersist_create_options *opts, struct request **ret);
int make_trigger(struct perfpersist *p, const char *ns, const char *name,
		 const struct perfpersist_trigger_options *opts, struct request **ret);
int make_change(struct perfpersist *p, const char *ns, const char *name,
		const struct perfpersist_change_options *opts, struct request **ret);
/* name NULL: all events of the namespace. */
int make_pause(struct perfpersist *p, const char *ns, const char *name, bool pause,
	       struct request **ret);
