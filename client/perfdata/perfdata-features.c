// SPDX-License-Identifier: LGPL-2.1-or-later
/* The layout of a perf.data file's features, which describe the file, its events, and the machine
 * that wrote it. perfdata-machine.c collects the facts about the machine. */
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

#include "client/perfdata/perfdata.h"

static void put_uname(enum perf_file_feature feature, struct blob *b)
{
	struct utsname u;

	if (uname(&u) < 0)
		return;
	blob_string(b, feature == FEATURE_HOSTNAME    ? u.nodename
		       : feature == FEATURE_OSRELEASE ? u.release
						      : u.machine);
}

static void put_nrcpus(struct blob *b)
{
	blob_u32(b, (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
	blob_u32(b, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN));
}

static void put_total_mem(struct blob *b)
{
	struct sysinfo s;

	if (sysinfo(&s) == 0)
		blob_u64(b, (uint64_t)s.totalram * s.mem_unit / 1024);
}

static void put_cmdline(const struct perfpersist_perfdata *d, struct blob *b)
{
	if (!d->argc)
		return;
	blob_u32(b, (uint32_t)d->argc);
	for (size_t i = 0; i < d->argc; i++)
		blob_string(b, d->argv[i]);
}

static void put_event_desc(const struct perfpersist_perfdata *d, struct blob *b)
{
	blob_u32(b, (uint32_t)d->n_evsels);
	blob_u32(b, PERFDATA_ATTR_SIZE);
	for (size_t i = 0; i < d->n_evsels; i++) {
		blob_put(b, &d->evsels[i].attr, PERFDATA_ATTR_SIZE);
		blob_u32(b, 1);
		blob_string(b, d->evsels[i].name);
		blob_u64(b, d->evsels[i].id);
	}
}

static void put_sample_time(const struct perfpersist_perfdata *d, struct blob *b)
{
	if (!d->last_time)
		return;
	blob_u64(b, d->first_time);
	blob_u64(b, d->last_time);
}

static void put_clockid(struct blob *b)
{
	struct timespec t;

	if (clock_getres(CLOCK_MONOTONIC, &t) == 0)
		blob_u64(b, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec);
}

/* Both clocks at one instant; any instant does, so this is the first sample's. */
static void put_clock_data(const struct perfpersist_perfdata *d, struct blob *b)
{
	blob_u32(b, 1); /* version */
	blob_u32(b, CLOCK_MONOTONIC);
	blob_u64(b, d->realtime_offset + d->first_time);
	blob_u64(b, d->first_time);
}

void perfdata_feature(const struct perfpersist_perfdata *d, enum perf_file_feature feature,
		      struct blob *b)
{
	switch (feature) {
	case FEATURE_TRACING_DATA:
		return perfdata_tracing_data(d, b);
	case FEATURE_BUILD_ID:
		return blob_put(b, d->build_ids.entries.bytes, d->build_ids.entries.n);
	case FEATURE_OSRELEASE:
		return d->is_other_boot ? (void)0 : put_uname(feature, b);
	case FEATURE_HOSTNAME:
	case FEATURE_ARCH:
		return put_uname(feature, b);
	case FEATURE_VERSION:
		return blob_string(b, "perfpersist " PP_VERSION);
	case FEATURE_NRCPUS:
		return put_nrcpus(b);
	case FEATURE_CPUDESC:
		return perfdata_cpudesc(b);
	case FEATURE_CPUID:
		return perfdata_cpuid(b);
	case FEATURE_TOTAL_MEM:
		return put_total_mem(b);
	case FEATURE_CMDLINE:
		return put_cmdline(d, b);
	case FEATURE_EVENT_DESC:
		return put_event_desc(d, b);
	case FEATURE_CPU_TOPOLOGY:
		return perfdata_cpu_topology(b);
	case FEATURE_PMU_MAPPINGS:
		return perfdata_pmu_mappings(b);
	case FEATURE_SAMPLE_TIME:
		return put_sample_time(d, b);
	case FEATURE_CLOCKID:
		return put_clockid(b);
	case FEATURE_CLOCK_DATA:
		return put_clock_data(d, b);
	default:
		return;
	}
}
