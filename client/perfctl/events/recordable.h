/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What this machine can record, as `perfctl create -e` takes it: tracepoints from tracefs, counters of
 * which the kernel opens a sampling event for the caller, events of PMUs from sysfs.
 */
#pragma once

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

enum recordable_kind {
	RECORDABLE_SOFTWARE,
	RECORDABLE_HARDWARE,
	RECORDABLE_CACHE,
	RECORDABLE_PMU,
	RECORDABLE_TRACEPOINT,
	RECORDABLE_FORM, /* parts of it, in capitals, are the user's to say */
	RECORDABLE_KINDS,
};

struct recordable {
	enum recordable_kind kind;
	char *name;
	const char *about; /* of a form; else NULL */
	bool is_unsure;	   /* only root may ask the kernel for it */
};

struct recordables {
	struct recordable *all;
	size_t n;
	int no_tracepoints; /* -errno: why none could be read; 0: these are all */
	bool some_unsure;
};

/* Where to look; tests have others. */
struct recordable_machine {
	const char *tracefs; /* with a slash at its end */
	const char *devices;
	int (*sample)(struct perf_event_attr *attr); /* perf_event_open(2): 0 or -errno */
};

extern const char *const recordable_kinds[RECORDABLE_KINDS];

/* machine NULL: this one. -ENOMEM. */
int recordables_find(const struct recordable_machine *machine, struct recordables *ret);
void recordables_done(struct recordables *r);

/* The event most similar to the text, which is none itself; NULL: none is similar, or the text is one of
 * them. */
const char *recordables_nearest(const struct recordables *r, const char *text);
