/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file of events.d, which says what always records:
 *
 *   [namespace NAME]        as in perfpersistd.conf
 *   [event NAMESPACE/NAME]
 *   Event= …                keys.c has them
 *   [trigger NAMESPACE/NAME]
 *   On= …                   likewise
 *
 * A later section, in the same file or another, overrides an earlier one of the same event or
 * namespace key by key. A section with a fault is left out. A section that the daemon itself wrote
 * only counts where people have no section of that event or namespace.
 */
#pragma once

#include "daemon/broker/config/config.h"
#include "daemon/trigger.h"

struct packed_request;

/* An event that is wanted or, if not enabled, unwanted. */
struct dropin_event {
	char ns[PP_NAME_SIZE], name[PP_NAME_SIZE];
	const char *path; /* of its last section; the set owns it */
	unsigned line;
	/* Lines of its texts in that section; else 0. */
	unsigned event_lines[PP_SELECTIONS_MAX], filter_lines[PP_SELECTIONS_MAX];
	bool is_trigger;
	/* Without targets: none are written yet. Its condition is not settled (dropin_trigger()). */
	struct pp_trigger_spec trigger;
	bool until; /* the last text ends pairs */
	bool enabled, optional;
	bool faulty;			/* one of its sections was left out */
	bool written;			/* by the daemon itself: nobody else has a section for it */
	uint32_t creator;		/* uid */
	struct packed_request *request; /* NULL: it has no section that counts */
};

/* A section of an event or trigger, while it is read or written. */
struct dropin_draft {
	struct dropin_event event; /* with no request */
	struct pp_msg_create_request request;
	bool has_texts; /* Event= was in this section */
};

/* The merged contents of several files, except namespaces: those are in the config. */
struct dropins {
	struct dropin_event **events; /* sorted by namespace, then name */
	size_t n, room;
	char **paths;
	size_t n_paths;
	/* A file or section could not be read, or its subject could not be determined: an event
	 * that is missing here may still be wanted. */
	bool incomplete;
	unsigned faults; /* complaints */
};

/*
 * Adds the contents of a file. written: by the daemon itself; its sections yield to those that
 * people wrote. Each fault goes to complaints as one line. 0; -ENOMEM.
 */
int dropin_parse(struct dropins *d, struct config *config, const char *path, bool written,
		 const char *text, size_t size, FILE *complaints);

/* The event with this name, or NULL. */
const struct dropin_event *dropins_event(const struct dropins *d, const char *ns, const char *name);

/* Fills all of *ret; unused parts are zeroed. e->request is not NULL. */
void dropin_request(const struct dropin_event *e, struct pp_msg_create_request *ret);

/* Whether the event's request equals this one. e->request is not NULL. */
bool dropin_is_request(const struct dropin_event *e, const struct pp_msg_create_request *request);

/* Frees its contents. */
void dropins_done(struct dropins *d);
void dropins_free(struct dropins *d);
void cleanup_dropins(struct dropins **d);
