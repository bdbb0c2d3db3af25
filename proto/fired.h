/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What fired a trigger: in the records of firings and in messages to clients. Included by BPF programs. */
#pragma once

enum pp_fired_by {
	PP_FIRED_BY_RECORD,
	PP_FIRED_BY_HAND, /* by a user (pid and comm are the engine's) */
	/* The end of a pair is missing: pid and tid are the task that its key names, or 0; comm is
	 * empty. */
	PP_FIRED_BY_TIMER,
};
