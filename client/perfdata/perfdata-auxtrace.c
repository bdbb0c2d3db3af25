// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Writes traces of AUX areas into a perf.data file, as perf does: which decoder they are for
 * (AUXTRACE_INFO), and at the end, for each CPU, the kernel's records and AUXTRACE with the trace.
 * perfdata-beside.c has the samples of events beside them.
 */
#include <fcntl.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <string.h>

#include "client/perfdata/perfdata.h"
#include "client/public.h"
#include "proto/io.h"
#include "proto/sideband.h"

#define TRACE_MAX (1ULL << 30) /* of a file that is not a memfd of ours */
#define RECORDS_MAX (1U << 20)
#define CHUNK 65536

/* ── which decoder ──────────────────────────────────────────────────────────────────────── */

static size_t fill_arm_spe(const struct perfpersist_perfdata *d _unused_,
			   const struct pp_auxtrace_header *h _unused_, uint64_t *to)
{
	to[0] = 1; /* of CPUs, not of threads */
	return 1;
}

static size_t fill_clock(const struct pp_auxtrace_header *h, uint64_t *to)
{
	to[0] = h->time_shift;
	to[1] = h->time_mult;
	to[2] = h->time_zero;
	to[3] = !!(h->flags & PP_AUXTRACE_TSC);
	return 4;
}

static size_t fill_intel_bts(const struct perfpersist_perfdata *d _unused_,
			     const struct pp_auxtrace_header *h, uint64_t *to)
{
	size_t n = fill_clock(h, to);

	to[n++] = 1; /* a snapshot */
	return n;
}

/* Bits of the config of intel_pt, which are those of the processor's register. */
#define PT_CYC (1U << 1)
#define PT_MTC (1U << 9)
#define PT_TSC (1U << 10)
#define PT_NORETCOMP (1U << 11)
#define PT_MTC_FREQ (0xfU << 14)

/* The processor's crystal clock counts in this ratio to its TSC; 0: unknown. */
static void find_crystal(uint64_t *ret_tsc, uint64_t *ret_crystal)
{
	uint32_t crystal = 0, tsc = 0, c, d;

#ifdef __x86_64__
	if (!__get_cpuid_count(0x15, 0, &crystal, &tsc, &c, &d))
		crystal = tsc = 0;
#endif
	*ret_tsc = tsc;
	*ret_crystal = crystal;
}

static uint64_t nonturbo_ratio(void)
{
	_cleanup_fclose_ FILE *f =
		fopen("/sys/bus/event_source/devices/intel_pt/max_nonturbo_ratio", "re");
	unsigned ratio;

	return f && fscanf(f, "%u", &ratio) == 1 ? ratio : 0;
}

/* Without the switches of tasks perf does not know which process a CPU's trace is of. */
static bool has_switches(const struct perfpersist_perfdata *d)
{
	for (size_t i = 0; i < d->n_evsels; i++)
		if (!strcmp(d->evsels[i].name, "sched:sched_switch"))
			return true;
	return false;
}

static size_t fill_intel_pt(const struct perfpersist_perfdata *d,
			    const struct pp_auxtrace_header *h, uint64_t *to)
{
	size_t n = fill_clock(h, to);

	to[n++] = PT_TSC;
	to[n++] = PT_NORETCOMP;
	to[n++] = has_switches(d);
	to[n++] = 1; /* a snapshot */
	to[n++] = 1; /* of CPUs, not of threads */
	to[n++] = PT_MTC;
	to[n++] = PT_MTC_FREQ;
	find_crystal(&to[n], &to[n + 1]);
	n += 2;
	to[n++] = PT_CYC;
	to[n++] = nonturbo_ratio();
	to[n++] = 0; /* bytes of a filter of addresses */
	return n;
}

/* perf's decoders, by the names of PMUs, and what they want to know beside the PMU's number. */
static const struct decoder {
	const char *pmu; /* or what its name begins with */
	enum perf_file_auxtrace type;
	/* the words behind that number. Returns how many they are */
	size_t (*fill)(const struct perfpersist_perfdata *d, const struct pp_auxtrace_header *h,
		       uint64_t *to);
} decoders[] = {
	{ "intel_pt/", PERF_FILE_AUXTRACE_INTEL_PT, fill_intel_pt },
	{ "intel_bts/", PERF_FILE_AUXTRACE_INTEL_BTS, fill_intel_bts },
	{ "arm_spe_", PERF_FILE_AUXTRACE_ARM_SPE, fill_arm_spe },
};

static const struct decoder *find_decoder(const char *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(decoders); i++)
		if (!strncmp(event, decoders[i].pmu, strlen(decoders[i].pmu)))
			return &decoders[i];
	return NULL;
}

static const struct perfdata_evsel *evsel_of(const struct perfpersist_perfdata *d, size_t event)
{
	return &d->evsels[d->events[event].first];
}

/* perf divides by time_mult in any case. */
static void put_clock(struct perfpersist_perfdata *d, const struct pp_auxtrace_header *h)
{
	struct perf_file_time_conv clock = {
		.header = { .type = PERF_FILE_TIME_CONV, .size = sizeof(clock) },
		.time_shift = h->time_shift,
		.time_mult = h->time_mult,
		.time_zero = h->time_zero,
		.cap_user_time_zero = !!(h->flags & PP_AUXTRACE_TSC),
	};

	output_put(&d->out, &clock, sizeof(clock));
}

void traces_put_info(struct perfpersist_perfdata *d)
{
	const struct perfdata_evsel *evsel = d->n_traces ? evsel_of(d, d->traces[0].event) : NULL;
	const struct decoder *decoder = evsel ? find_decoder(evsel->name) : NULL;
	struct perf_file_auxtrace_info info = { .header.type = PERF_FILE_AUXTRACE_INFO };
	size_t n;

	beside_put_index(d);
	if (!decoder)
		return;
	info.type = decoder->type;
	info.priv[0] = evsel->attr.type;
	n = 1 + decoder->fill(d, &d->traces[0].header, info.priv + 1);
	info.header.size = (uint16_t)(offsetof(struct perf_file_auxtrace_info, priv) +
				      n * sizeof(info.priv[0]));
	put_clock(d, &d->traces[0].header);
	output_put(&d->out, &info, info.header.size);
}

/* ── traces ─────────────────────────────────────────────────────────────────────────────── */

static bool header_is_sound(const struct pp_auxtrace_header *h)
{
	return h->magic == PP_AUXTRACE_MAGIC && h->version == PP_AUXTRACE_VERSION &&
	       h->header_size >= sizeof(*h) && h->header_size % 8 == 0 &&
	       h->header_size <= RECORDS_MAX && h->records <= RECORDS_MAX &&
	       h->trace <= TRACE_MAX && h->time_mult && h->time_shift < 64 &&
	       h->samples <= TRACE_MAX && h->samples / sizeof(uint64_t) >= h->n_beside &&
	       h->size == h->header_size + h->records + h->trace + h->samples;
}

static bool is_of_same_pmu(const struct perfpersist_perfdata *d, size_t event)
{
	return d->n_traces == 0 ||
	       evsel_of(d, event)->attr.type == evsel_of(d, d->traces[0].event)->attr.type;
}

_public_ int perfpersist_perfdata_auxtrace(struct perfpersist_perfdata *d, int event, int fd)
{
	struct perfdata_trace trace = { .fd = -EBADF, .event = (uint32_t)event };
	ssize_t n;

	if (d->is_started)
		return client_fail(-EBUSY,
				   "cannot add a trace to perf.data: records have been written");
	if (event < 0 || (size_t)event >= d->n_events || !d->events[event].n)
		return client_fail(-EINVAL, "cannot add a trace: there is no event %d", event);
	if (!is_of_same_pmu(d, (size_t)event))
		return client_fail(
			-EINVAL,
			"cannot add a trace of '%s': the file has another PMU's, and perf "
			"decodes one in a file",
			evsel_of(d, (size_t)event)->name);
	n = pp_pread_all(fd, &trace.header, sizeof(trace.header), 0);
	if (n < 0)
		return client_fail((int)n, "cannot read a trace: %s", strerror((int)-n));
	if ((size_t)n < sizeof(trace.header) || !header_is_sound(&trace.header) ||
	    !beside_is_sound(d, &trace))
		return client_fail(-EBADMSG, "cannot add a trace: the file is damaged");
	if (!GROW(d->traces, d->n_traces))
		return client_fail(-ENOMEM, "cannot add a trace: out of memory");
	trace.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (trace.fd < 0)
		return client_fail(-errno, "cannot keep a trace: %s", strerror(errno));
	d->traces[d->n_traces++] = trace;
	return 0;
}

/* The kernel's records get the event's id in this file. What follows a damaged one is left out. */
static void put_records(struct perfpersist_perfdata *d, const struct perfdata_trace *t)
{
	const struct pp_auxtrace_header *h = &t->header;
	uint64_t id = evsel_of(d, t->event)->id;
	_cleanup_free_ uint8_t *bytes = malloc(h->records + 1);
	size_t size;
	ssize_t n;

	if (!bytes) {
		d->out.error = -ENOMEM;
		return;
	}
	n = pp_pread_all(t->fd, bytes, h->records, h->header_size);
	for (size_t at = 0; n > 0 && at < (size_t)n; at += size) {
		size = pp_record_extent(bytes + at, (size_t)n - at, PP_SIDEBAND_SAMPLE_TYPE);
		if (size == 0)
			break;
		memcpy(bytes + at + size - sizeof(id), &id, sizeof(id));
		output_put(&d->out, bytes + at, size);
	}
}

static void put_bytes(struct perfpersist_perfdata *d, const struct perfdata_trace *t)
{
	uint64_t at = t->header.header_size + t->header.records, end = at + t->header.trace;
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK);

	if (!chunk)
		d->out.error = -ENOMEM;
	while (at < end && d->out.error >= 0) {
		ssize_t n = pp_pread_all(t->fd, chunk, MIN(end - at, (uint64_t)CHUNK), at);

		if (n <= 0) {
			d->out.error = n < 0 ? (int)n : -EBADMSG;
			break;
		}
		output_put(&d->out, chunk, (size_t)n);
		at += (uint64_t)n;
	}
	output_fill(&d->out, ALIGN_TO(t->header.trace, (uint64_t)8) - t->header.trace);
}

static void put_trace(struct perfpersist_perfdata *d, const struct perfdata_trace *t, uint32_t idx)
{
	const struct pp_auxtrace_header *h = &t->header;
	/* An aux_head in the area says nothing of how often it has wrapped: perf counts one. */
	uint64_t begin = h->head < h->trace ? h->head : h->head - h->trace;
	struct perf_file_auxtrace_data data = {
		.header = { .type = PERF_FILE_AUXTRACE, .size = sizeof(data) },
		.size = ALIGN_TO(h->trace, (uint64_t)8),
		.offset = begin,
		.reference = h->counter,
		.idx = idx,
		.tid = UINT32_MAX,
		.cpu = h->cpu,
	};

	put_records(d, t);
	if (h->trace > 0) {
		output_put(&d->out, &data, sizeof(data));
		put_bytes(d, t);
	}
	beside_put(d, idx);
}

void traces_put(struct perfpersist_perfdata *d)
{
	for (size_t i = 0; i < d->n_traces; i++)
		put_trace(d, &d->traces[i], (uint32_t)i);
}

void traces_done(struct perfpersist_perfdata *d)
{
	for (size_t i = 0; i < d->n_traces; i++)
		close_fd(d->traces[i].fd);
	free(d->traces);
}
