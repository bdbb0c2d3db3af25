/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Presets: files of events.d that are shipped and off. A symlink in events.d turns one on, so that it
 * follows the file when an upgrade changes it. NAME@.conf is a template, for one UNIT each: its link
 * is NAME@UNIT.conf (proto/specifier.h). Finds and reads them; must not change anything.
 *
 * A preset's comment begins with three lines that people choose by:
 *
 *   # Summary: what it is for
 *   # Cost: what it costs
 *   # History: how long its buffers reach back, at which load
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define PRESETS_DIRECTORY PP_VENDORDIR "/perfpersist/presets"

struct preset {
	char *name; /* without @ and .conf */
	char *path;
	char *text;			/* the file */
	char *summary, *cost, *history; /* never NULL */
	bool is_template;
};

struct presets {
	const char *directory;
	struct preset *all; /* by name */
	size_t n;
};

/* directory: borrowed. 0; -errno: it cannot be read. A file that cannot be read is left out. */
int presets_find(const char *directory, struct presets *ret);
void presets_done(struct presets *p);
const struct preset *presets_by_name(const struct presets *p, const char *name);

/* "/etc/perfpersist[-INSTANCE]/events.d", where an instance's daemon reads. 0; -EINVAL; -ENAMETOOLONG. */
int presets_links_place(const char *instance, char *buf, size_t size);

/* ── what a preset's file makes ── */

struct preset_event {
	char ns[64], name[64];
	bool is_trigger;
	bool is_optional; /* a machine without such an event has none */
};

/* The events and triggers of its sections, in the file's order; *ret is for free(3). unit: of a
 * template; else "". 0; -ENOMEM. */
int preset_events(const struct preset *p, const char *unit, struct preset_event **ret,
		  size_t *ret_n);

/* ── what is on ── */

enum preset_state {
	PRESET_OFF,
	PRESET_ENABLED,
	PRESET_HIDDEN, /* by a file of the user's with that name */
};

/* The name of its link: unit is "" or a template's. */
int preset_link(const char *links, const char *name, const char *unit, char ret[PATH_MAX]);

/* target: the preset's file, which may have gone. */
enum preset_state preset_look(const char *link, const char *target);

/* The units for which a template is enabled, sorted; *ret and its texts are for preset_units_free(). */
int preset_units(const char *links, const struct preset *p, char ***ret, size_t *ret_n);
void preset_units_free(char **units, size_t n);
