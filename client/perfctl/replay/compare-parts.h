/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The internals of the comparison, for its files. */
#pragma once

#include "client/perfctl/pictures/hash.h"
#include "client/perfctl/replay/compare.h"
#include "client/perfctl/trace/process-table.h"
#include "proto/macro.h"

#define COMPARE_MOMENT 10 /* slices of the moment, at most */

struct compare {
	struct compare_grid grid;
	struct compare_item *items;
	size_t n_items;
	struct keytable by_key;
	char **names;
	size_t n_names;
	struct hash name_hash;
	struct compare_change *changes;
	size_t n_changes;
};

/* ── compare-judge.c ── */

int compare_judge(struct compare *c);
