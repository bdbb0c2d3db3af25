// SPDX-License-Identifier: LGPL-2.1-or-later
/* Error messages for orders that could not be given. */
#include <errno.h>
#include <string.h>

#include "daemon/broker/lifecycle/lifecycle.h"

void lifecycle_explain(const struct lifecycle *l, int err, const char *ns, const char *name,
		       char *buf, size_t size)
{
	switch (err) {
	case -EEXIST:
		snprintf(buf, size,
			 "There is an event %s/%s already; delete it first, or take another name.",
			 ns, name);
		break;
	case -EALREADY:
		snprintf(buf, size, "%s/%s is being deleted already.", ns, name);
		break;
	case -EBUSY:
		snprintf(buf, size,
			 "%s/%s is being created, changed, paused or saved just now; try again "
			 "when that is done.",
			 ns, name);
		break;
	case -ENOTEMPTY:
		snprintf(
			buf, size,
			"What triggers have frozen of %s/%s waits, and there is no room for more: save it "
			"(perfctl snapshots collect --once) or give it up (perfctl trigger release), and "
			"try again.",
			ns, name);
		break;
	case -EMLINK:
		snprintf(buf, size,
			 "%s/%s shares its rings with other names, which would change with it; "
			 "delete these, or create it anew as an event of its own (--no-share).",
			 ns, name);
		break;
	case -ESHUTDOWN:
		snprintf(buf, size,
			 "The daemon is ending, and all events with it (KeepEvents=no); %s/%s is "
			 "not created. Try again when the daemon runs again.",
			 ns, name);
		break;
	case -EDQUOT:
		quota_sentence(l->charges.quota, buf, size);
		break;
	case -EAGAIN:
		snprintf(buf, size,
			 "The engine, which creates, changes and deletes events, is not running "
			 "just now; look at the daemon's log, and try again.");
		break;
	case -ESTALE:
		snprintf(buf, size,
			 "The file of a probe of %s/%s was replaced while it was read; try again.",
			 ns, name);
		break;
	default:
		snprintf(buf, size, "The daemon cannot handle the request for %s/%s: %s.", ns, name,
			 strerror(-err));
	}
}
