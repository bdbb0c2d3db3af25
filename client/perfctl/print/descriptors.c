// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/print/descriptors.h"

#include <inttypes.h>

#include "proto/macro.h"

static const char *kind_of(const struct perfpersist_descriptor *d)
{
	static const char *const names[] = {
		[PERFPERSIST_DESCRIPTOR_RING] = "ring",
		[PERFPERSIST_DESCRIPTOR_CATALOG] = "catalog",
		[PERFPERSIST_DESCRIPTOR_PROGRAMS] = "programs",
		[PERFPERSIST_DESCRIPTOR_LINK] = "link",
		[PERFPERSIST_DESCRIPTOR_COUNTER] = "counter",
	};

	return d->kind < ARRAY_SIZE(names) && names[d->kind] ? names[d->kind] : "other";
}

static bool has_generation(const struct perfpersist_descriptor *d)
{
	return d->kind == PERFPERSIST_DESCRIPTOR_RING && d->generation != UINT64_MAX;
}

/* "-" for what there is not. */
static void print_number(FILE *f, bool is_there, uint64_t n, int width)
{
	if (is_there)
		fprintf(f, "%*" PRIu64, width, n);
	else
		fprintf(f, "%*s", width, "-");
}

void descriptors_print(FILE *f, const struct perfpersist_descriptor *v, size_t n)
{
	fprintf(f, "%-8s %5s %8s %8s %10s %10s  %s\n", "KIND", "CPU", "ID", "TASK", "PERF-ID",
		"GENERATION", "ALIVE");
	for (size_t i = 0; i < n; i++) {
		const struct perfpersist_descriptor *d = &v[i];

		fprintf(f, "%-8s", kind_of(d));
		print_number(f, d->cpu >= 0, (uint64_t)d->cpu, 6);
		print_number(f, true, d->id, 9);
		print_number(f, d->tid > 0, (uint64_t)d->tid, 9);
		print_number(f, d->perf_id, d->perf_id, 11);
		print_number(f, has_generation(d), d->generation, 11);
		fprintf(f, "  %s\n", d->alive < 0 ? "unknown" : d->alive ? "yes" : "no");
	}
}

static void json_number(struct json *j, const char *key, bool is_there, uint64_t n)
{
	if (is_there)
		json_unsigned(j, key, n);
	else
		json_null(j, key);
}

void descriptors_json(struct json *j, const struct perfpersist_descriptor *v, size_t n)
{
	json_begin(j, "fds", '[');
	for (size_t i = 0; i < n; i++) {
		const struct perfpersist_descriptor *d = &v[i];

		json_begin(j, NULL, '{');
		json_string(j, "kind", kind_of(d));
		json_number(j, "cpu", d->cpu >= 0, (uint64_t)d->cpu);
		json_unsigned(j, "id", d->id);
		json_number(j, "tid", d->tid > 0, (uint64_t)d->tid);
		json_number(j, "perf_id", d->perf_id, d->perf_id);
		json_number(j, "generation", has_generation(d), d->generation);
		if (d->alive < 0)
			json_null(j, "alive");
		else
			json_bool(j, "alive", d->alive);
		json_end(j, '}');
	}
	json_end(j, ']');
}
