/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The layouts that tp_btf programs can record: for each hot tracepoint one or more, since kernels
 * differ, and the program of bpf/hot.bpf.c that builds it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <bpf/btf.h>

#include "daemon/engine/kernel/tracefs.h"

#define FIELDS_MAX 8
#define PARAMETERS_MAX 4

struct layout_field {
	const char *name;
	uint32_t offset, size;
	bool is_data_loc;
};

/* One layout of one tracepoint, and the program that builds it. */
struct layout {
	const char *system, *name;
	const char *program;
	uint32_t record_size; /* the largest, as the verifier sees it */
	/* From BTF: "*NAME": a pointer to that structure, "*": any other pointer, else the size of
	 * a number in bytes. */
	const char *parameters[PARAMETERS_MAX + 1];
	struct layout_field fields[FIELDS_MAX + 1]; /* without the common ones */
};

#define LAYOUTS_N 23

extern const struct layout layouts[LAYOUTS_N];

/* Whether the tracepoint is the layout's, and its format matches field by field. */
bool layout_fits_format(const struct layout *layout, const struct tracepoint *tp);

/* Whether the kernel calls that hot tracepoint with preemption on. */
bool layout_is_preemptible(const char *system, const char *name);

/* Whether the kernel's BTF knows the tracepoint at all. */
bool layout_is_there(const struct layout *layout, const struct btf *btf);

/* Whether the kernel calls the tracepoint's handlers with the parameters the program reads. */
bool layout_fits_prototype(const struct layout *layout, const struct btf *btf);
