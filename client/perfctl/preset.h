/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the commands of perfctl preset: which preset, and where its link goes. */
#pragma once

#include "client/perfctl/events/presets.h"
#include "client/perfctl/perfctl.h"
#include "proto/specifier.h"

struct preset_options {
	const char *links;   /* NULL: the instance's events.d */
	const char *presets; /* NULL: where they are shipped */
};
extern const struct verb_option preset_options[];

/* One that the command line names, or may name. */
struct chosen {
	struct presets presets;
	const struct preset *preset; /* NULL: there is none of that name */
	const char *name;
	char links[PATH_MAX];
	char unit[PP_INSTANCE_SIZE]; /* "": none */
	char link[PATH_MAX];	     /* its link; not of a template without unit */
};

/* Reads the presets, finds events.d, and takes NAME [UNIT]. Returns an exit code; has complained if not
 * EXIT_OK. */
int preset_choose(struct call *call, const struct preset_options *o, struct chosen *ret);
int preset_unknown(const struct chosen *c);
void preset_chosen_done(struct chosen *c);

/* "NAME UNIT", as on the command line. */
void preset_print_name(FILE *f, const struct chosen *c);

extern const struct verb verb_enable_preset, verb_disable_preset;
