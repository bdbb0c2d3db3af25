// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Feeds a perf.data writer with arbitrary sideband files and notes: rejected input leaves no
 * output, and accepted input yields whole records.
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int side = memfd_create("sideband", MFD_CLOEXEC);
	uint8_t build_id[20];

	if (write(side, data, size) == (ssize_t)size) {
		write_with(side, false);
		assert(build_id_of_file(side, build_id) <= sizeof(build_id));
	}
	assert(build_id_in_notes(data, size, build_id) <= sizeof(build_id));
	close(side);
	write_records(data, size);
	return 0;
}
