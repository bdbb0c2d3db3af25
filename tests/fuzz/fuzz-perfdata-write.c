// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Feeds a perf.data writer with arbitrary sideband files, traces and notes: rejected input leaves
 * no output, and accepted input yields whole records.
 */
#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "client/perfdata/perfdata.h"
#include "proto/sideband.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_with(int side, bool pipe)
{
	const struct perfpersist_perfdata_options o = { .sz = sizeof(o), .pipe = pipe };
	struct perfpersist_perfdata *d = NULL;
	int file = memfd_create("file", MFD_CLOEXEC);

	assert(perfpersist_perfdata_new(file, &o, &d) == 0);
	if (perfpersist_perfdata_sideband(d, side) == 0)
		assert(perfpersist_perfdata_finish(d) == 0);
	perfpersist_perfdata_free(d);
	close(file);
}

/* The same with a valid header, so that the fuzzer reaches the records. */
static void write_records(const uint8_t *data, size_t size)
{
	struct pp_sideband_header h = {
		.magic = PP_SIDEBAND_MAGIC,
		.version = PP_SIDEBAND_VERSION,
		.header_size = sizeof(h),
		.size = sizeof(h) + size,
	};
	int side = memfd_create("sideband", MFD_CLOEXEC);

	if (write(side, &h, sizeof(h)) == sizeof(h) && write(side, data, size) == (ssize_t)size)
		write_with(side, size % 2);
	close(side);
}

/* A file with one event, whose trace this is, and n more beside it. One that is cut short is found out
 * when it is written. */
static void write_trace(int trace, uint32_t n, bool pipe)
{
	const struct perfpersist_perfdata_options o = { .sz = sizeof(o), .pipe = pipe };
	struct perfpersist_perfdata *d = NULL;
	int file = memfd_create("file", MFD_CLOEXEC);

	assert(perfpersist_perfdata_new(file, &o, &d) == 0);
	d->events = calloc(1, sizeof(*d->events));
	d->evsels = calloc(4, sizeof(*d->evsels)); /* room for the sideband's, too */
	assert(d->events && d->evsels && n < 3);
	for (uint32_t i = 0; i <= n; i++) {
		assert(evsel_init_sideband(&d->evsels[i]) == 0);
		d->evsels[i].attr.sample_type |= PERF_SAMPLE_IP;
		d->evsels[i].source_type = d->evsels[i].attr.sample_type;
	}
	d->events[0].n = n + 1;
	d->n_events = 1;
	d->n_evsels = n + 1;
	if (perfpersist_perfdata_auxtrace(d, 0, trace) == 0)
		perfpersist_perfdata_finish(d);
	perfpersist_perfdata_free(d);
	close(file);
}

/* With n events beside it, all but a quarter is of their samples. */
static void write_traces(const uint8_t *data, size_t size, uint32_t n)
{
	struct pp_auxtrace_header h = {
		.magic = PP_AUXTRACE_MAGIC,
		.version = PP_AUXTRACE_VERSION,
		.header_size = sizeof(h),
		.size = sizeof(h) + size,
		.records = n ? size / 8 : size / 2,
		.trace = n ? size / 8 : size - size / 2,
		.samples = n ? size - size / 8 * 2 : 0,
		.n_beside = n,
		.time_mult = 1,
	};
	int trace = memfd_create("trace", MFD_CLOEXEC);

	if (write(trace, &h, sizeof(h)) == sizeof(h) && write(trace, data, size) == (ssize_t)size)
		write_trace(trace, n, size % 2);
	close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int side = memfd_create("sideband", MFD_CLOEXEC);
	uint8_t build_id[20];

	if (write(side, data, size) == (ssize_t)size) {
		write_with(side, false);
		write_trace(side, 0, false);
		assert(build_id_of_file(side, build_id) <= sizeof(build_id));
	}
	assert(build_id_in_notes(data, size, build_id) <= sizeof(build_id));
	close(side);
	write_records(data, size);
	for (uint32_t n = 0; n < 3; n++)
		write_traces(data, size, n);
	return 0;
}
