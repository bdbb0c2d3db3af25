// SPDX-License-Identifier: LGPL-2.1-or-later
/* Weighs filters by the bytes of text that they walk. See filter-weight.h. */
#include "daemon/engine/emit/filter-weight.h"

#include "daemon/engine/emit/filter-leaf.h"
#include "proto/macro.h"

#define BYTES_PER_PROGRAM 256 /* at about 3 ns each */
#define BYTES_AT_HAND 16      /* the cost of finding a text in the record, or comm … */
#define BYTES_FETCHED 40      /* … and one that a helper reads from elsewhere */

/* Where a compared text is, and how long it can be; filter-leaf.c, which emits it, decides that. */
static uint32_t text_bytes(const struct tracepoint *tp, const struct pp_filter_node *leaf)
{
	const struct tp_field *field = filter_find_field(tp, leaf->field);
	bool is_glob = filter_is_glob(leaf->op);

	if (!field)
		return BYTES_AT_HAND + text_work(leaf->text, is_glob, FILTER_COMM_SIZE);
	if (field->is_user_copy || field->is_pointer || field->is_data_loc || field->is_rel_loc)
		return BYTES_FETCHED + text_work(leaf->text, is_glob, TEXT_MAX);
	return BYTES_AT_HAND + text_work(leaf->text, is_glob, field->size);
}

uint32_t filter_weight(const struct tracepoint *tp, const struct pp_filter_node *nodes, size_t n)
{
	uint32_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		if (filter_is_leaf(&nodes[i]))
			bytes += nodes[i].is_text ? text_bytes(tp, &nodes[i]) : 1;
	return 1 + bytes / BYTES_PER_PROGRAM;
}
