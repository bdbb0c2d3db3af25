// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfctl reload: makes the daemon read its configuration again. */
#include <string.h>

#include "client/perfctl/output/output.h"
#include "client/perfctl/perfctl.h"

static void report(const struct call *call, const struct perfpersist_reload_result *r)
{
	struct json j = { .f = stdout };

	if (!call->json) {
		printf("%u created, %u changed, %u deleted, %u failed\n", r->created, r->changed,
		       r->deleted, r->failed);
		return;
	}
	json_begin(&j, NULL, '{');
	json_unsigned(&j, "created", r->created);
	json_unsigned(&j, "changed", r->changed);
	json_unsigned(&j, "deleted", r->deleted);
	json_unsigned(&j, "failed", r->failed);
	if (r->message[0])
		json_string(&j, "message", r->message);
	else
		json_null(&j, "message");
	json_end(&j, '}');
	putchar('\n');
}

static int run(struct call *call)
{
	_cleanup_(cleanup_perfpersist) struct perfpersist *p = NULL;
	struct perfpersist_reload_result result = { .sz = sizeof(result) };
	int r;

	if (!options_read(call, NULL))
		return call->code;
	r = call_connect(call, &p);
	if (r)
		return r;
	r = perfpersist_reload(p, &result);
	if (r < 0)
		return call_failed(p, r);
	report(call, &result);
	if (!result.failed)
		return EXIT_OK;
	complain("%s", result.message[0]
			       ? result.message
			       : "some of the configuration could not be applied; see the "
				 "daemon's log");
	return EXIT_FAILED;
}

const struct verb verb_reload = {
	.name = "reload",
	.synopsis = "",
	.summary = "make the daemon read its configuration again",
	.run = run,
	.help = "Applies only differences: an event whose file did not change keeps recording. The exit\n"
		"code is 1 if some of the configuration could not be applied; the rest applies.\n"
		"\n"
		"Examples:\n"
		"  perfctl reload\n",
};
