// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/overwrite.h"

#include <inttypes.h>
#include <signal.h>

#include "client/perfctl/events/take.h"
#include "client/perfctl/output/dated.h"
#include "client/perfctl/output/outfile.h"
#include "client/perfctl/perfctl.h"
#include "client/perfctl/print/info.h"
#include "client/perfctl/print/rates.h"
#include "proto/clock.h"

static int write_one(struct call *call, struct perfpersist *p, char **names, size_t n_names,
		     struct selection *selection, const char *output)
{
	_cleanup_(outfile_done) struct outfile out = OUTFILE_NONE;
	_cleanup_free_ char *path = NULL;
	struct take_result result = {};
	int code, r = outfile_open(output, &out);

	if (r < 0)
		return outfile_failed(output, r);
	code = take(call, p, names, n_names, selection, out.fd, false, false, &result);
	if (code != EXIT_OK)
		return code;
	r = dated_commit(&out, output, &path);
	if (r < 0)
		return outfile_failed(output, r);
	fprintf(stderr, "perfctl record: %" PRIu64 " records, %" PRIu64 " bytes: %s\n",
		result.records, result.bytes, path);
	return EXIT_OK;
}

int overwrite(struct call *call, struct perfpersist *p, char **names, size_t n_names,
	      struct selection *selection, const char *output, uint64_t until, struct workload *w)
{
	int code = workload_start(w), r, failed = EXIT_OK;

	if (code != EXIT_OK)
		return code;
	while (!signals_caught() && !workload_ended(w)) {
		uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);

		if (now >= until)
			break;
		if (!signals_take(SIGUSR2)) {
			signals_wait(until - now, -1);
			continue;
		}
		/* The one at the end has what one that is interrupted would have had. */
		r = write_one(call, p, names, n_names, selection, output);
		if (r != EXIT_OK && !signals_caught())
			failed = r;
	}
	r = write_one(call, p, names, n_names, selection, output);
	return r != EXIT_OK ? r : failed;
}
