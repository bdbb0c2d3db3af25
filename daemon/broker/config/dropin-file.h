/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A file of events.d, which says what always records:
 *
 *   [namespace NAME]        as in perfpersistd.conf
 *   [event NAMESPACE/NAME]
 *   Event= …                keys.c has them
 *
 * A section that comes later, in the same file or another, overrides what an earlier one of the
 * same event or namespace says, key by key. A section with a fault in it is left out. What the
 * daemon itself wrote counts only where people have no section of that event or namespace.
 */
#pragma once

#include "daemon/broker/config/config.h"

struct packed_request;

/* An event that is wanted, or is not (enabled). */
struct dropin_event {
	char ns[PP_NAME_SIZE], name[PP_NAME_SIZE];
	const char *path; /* of its last section; the set's */
	unsigned line;
	/* Of its texts, where they stand in that section; else 0. */
	unsigned event_lines[PP_SELECTIONS_MAX], filter_lines[PP_SELECTIONS_MAX];
	bool enabled, optional;
	bool faulty;			/* a section of it was left out */
	bool written;			/* by the daemon itself: nobody else has a section of it */
	uint32_t creator;		/* uid */
	struct packed_request *request; /* NULL: it has no section that counts */
};

/* A section of an event, while it is read or to be written. */
struct dropin_draft {
	struct dropin_event event; /* with no request */
	struct pp_msg_create_request request;
	bool has_texts; /* Event= was in this section */
};

/* What a number of files say together, but for namespaces: these are the config's. */
struct dropins {
	struct dropin_event **events; /* sorted by namespace, then name */
	size_t n, room;
	char **paths;
	size_t n_paths;
	/* Something could not be read, or was too wrong to say what it is about: what is not in
	 * here may be wanted all the same. */
	bool incomplete;
	unsigned faults; /* complaints */
};

/*
 * Adds what the text of a file says. written: by the daemon itself; its sections give way to
 * those that people wrote. Every fault is told to complaints, a sentence a line. 0; -ENOMEM.
 */
int dropin_parse(struct dropins *d, struct config *config, const char *path, bool written,
		 const char *text, size_t size, FILE *complaints);

/* The one of this name, or NULL. */
const struct dropin_event *dropins_event(const struct dropins *d, const char *ns, const char *name);

/* All of *ret: what is not used is zeroed. e->request is there. */
void dropin_request(const struct dropin_event *e, struct pp_msg_create_request *ret);

/* Whether it is this one. e->request is there. */
bool dropin_is_request(const struct dropin_event *e, const struct pp_msg_create_request *request);

/* Frees what is in it. */
void dropins_done(struct dropins *d);
void dropins_free(struct dropins *d);
void cleanup_dropins(struct dropins **d);
