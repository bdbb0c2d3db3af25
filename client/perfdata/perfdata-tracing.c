// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The tracing data of a perf.data file: the formats of its tracepoints, in the form of a trace.dat
 * of version 0.6. Parts about ftrace's own buffers are empty: perf has none, but readers expect
 * them.
 */
#include <string.h>

#include "client/perfdata/perfdata.h"

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

static const char header_event[] = "# compressed entry header\n"
				   "\ttype_len    :    5 bits\n"
				   "\ttime_delta  :   27 bits\n"
				   "\tarray       :   32 bits\n"
				   "\n"
				   "\tpadding     : type == 29\n"
				   "\ttime_extend : type == 30\n"
				   "\ttime_stamp : type == 31\n"
				   "\tdata max type_len  == 28\n";

static void put_text(struct blob *b, const char *s)
{
	blob_put(b, s, strlen(s) + 1);
}

static void put_sized(struct blob *b, const char *bytes, size_t n)
{
	blob_u64(b, n);
	blob_put(b, bytes, n);
}

static size_t system_size(const struct perfdata_evsel *evsel)
{
	return strcspn(evsel->name, ":");
}

static bool is_written(const struct perfdata_evsel *evsel)
{
	return evsel->format && !evsel->is_known;
}

static bool is_of_system(const struct perfdata_evsel *evsel, const struct perfdata_evsel *other)
{
	size_t n = system_size(evsel);

	return is_written(evsel) && is_written(other) && system_size(other) == n &&
	       !memcmp(evsel->name, other->name, n);
}

/* Whether no earlier source has the same system. */
static bool is_first_of_system(const struct perfpersist_perfdata *d, size_t i)
{
	if (!is_written(&d->evsels[i]))
		return false;
	/* A glob's sources are neighbours of one system: the previous one is the likeliest. */
	for (size_t j = i; j-- > 0;)
		if (is_of_system(&d->evsels[i], &d->evsels[j]))
			return false;
	return true;
}

static void put_system(const struct perfpersist_perfdata *d, size_t first, struct blob *b)
{
	const struct perfdata_evsel *evsel = &d->evsels[first];
	uint32_t n = 0;

	blob_put(b, evsel->name, system_size(evsel));
	blob_fill(b, 1);
	for (size_t i = first; i < d->n_evsels; i++)
		n += is_of_system(evsel, &d->evsels[i]);
	blob_u32(b, n);
	for (size_t i = first; i < d->n_evsels; i++)
		if (is_of_system(evsel, &d->evsels[i]))
			put_sized(b, d->evsels[i].format, d->evsels[i].format_size);
}

void perfdata_tracing_data(const struct perfpersist_perfdata *d, struct blob *b)
{
	static const uint8_t magic[] = { 23, 8, 68, 't', 'r', 'a', 'c', 'i', 'n', 'g' };
	const uint8_t machine[] = { __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, sizeof(long) };
	uint32_t systems = 0;

	for (size_t i = 0; i < d->n_evsels; i++)
		systems += is_first_of_system(d, i);
	if (!systems)
		return;
	blob_put(b, magic, sizeof(magic));
	put_text(b, "0.6");
	blob_put(b, machine, sizeof(machine));
	blob_u32(b, (uint32_t)sysconf(_SC_PAGESIZE));
	put_text(b, "header_page");
	put_sized(b, header_page, strlen(header_page));
	put_text(b, "header_event");
	put_sized(b, header_event, strlen(header_event));
	blob_u32(b, 0); /* formats of ftrace's own events */
	blob_u32(b, systems);
	for (size_t i = 0; i < d->n_evsels; i++)
		if (is_first_of_system(d, i))
			put_system(d, i, b);
	blob_u32(b, 0); /* kallsyms */
	blob_u32(b, 0); /* printk's formats */
	blob_u64(b, 0); /* saved command lines: sideband has them */
}
