/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What fires a trigger, and what that does: on the wire, and in pins. Programs in the kernel include
 * this, too. */
#pragma once

enum pp_fired_by {
	PP_FIRED_BY_RECORD,
	PP_FIRED_BY_HAND, /* by a user (pid and comm are the engine's) */
	/* The end of a pair is missing: pid and tid are the task that its key names, or 0; comm is
	 * empty. */
	PP_FIRED_BY_TIMER,
};

/* Each but NOTIFY has targets. */
enum pp_action {
	PP_ACTION_SNAPSHOT, /* freezes them; a service saves that, and releases it */
	PP_ACTION_FREEZE,   /* likewise, but it waits until somebody asks for either */
	PP_ACTION_PAUSE,    /* pauses them, until somebody resumes them */
	PP_ACTION_NOTIFY,   /* nothing: it is only told */
	PP_ACTIONS,
};

#define PP_TARGETS_MAX 64 /* events that one trigger turns */

/* What users call the trigger of a tape, once it is removed; so no trigger has this name. */
#define PP_TRIGGER_REMOVED "deleted"

/* By these numbers, as users type them. */
#define PP_ACTION_NAMES                                 \
	{                                               \
		"snapshot", "freeze", "pause", "notify" \
	}
