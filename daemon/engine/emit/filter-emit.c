// SPDX-License-Identifier: LGPL-2.1-or-later
/* Turns filters into instructions: the tree of comparisons. See filter-emit.h. */
#include "daemon/engine/emit/filter-emit.h"

#include "daemon/engine/emit/condition.h"
#include "daemon/engine/emit/filter-leaf.h"
#include "proto/macro.h"

enum { R0, R1, PAYLOAD = BPF_REG_6 };

/* Jumps to *out if the tree's value is `sense`; else falls through. */
static int emit_tree(const struct filter_state *s, const struct pp_filter_node *node, bool sense,
		     struct emit_labels *out)
{
	_cleanup_(emit_labels_done) struct emit_labels decided = {};
	const struct pp_filter_node *second;
	bool decisive; /* an operand with this value decides the result */
	int r;

	if (node->op == PP_FILTER_NOT)
		return emit_tree(s, node + 1, !sense, out);
	if (node->op != PP_FILTER_AND && node->op != PP_FILTER_OR)
		return filter_emit_leaf(s, node, sense, out);

	decisive = node->op == PP_FILTER_OR;
	second = node + 1 + pp_filter_span(node + 1);
	r = emit_tree(s, node + 1, decisive, decisive == sense ? out : &decided);
	if (r < 0)
		return r;
	r = emit_tree(s, second, sense, out);
	emit_land_all(s->e, &decided);
	return r;
}

/* Makes all patterns of the filter, with their tables in one map. */
static int make_patterns(struct filter_state *s, size_t n)
{
	int r;

	s->patterns = calloc(n, sizeof(*s->patterns));
	if (!s->patterns)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (!filter_is_leaf(&s->nodes[i]) || !s->nodes[i].is_text)
			continue;
		r = text_pattern(s->nodes[i].text, filter_is_glob(s->nodes[i].op), &s->tables,
				 &s->patterns[i]);
		if (r < 0)
			return r;
	}
	r = text_tables_make(&s->tables);
	if (s->tables.fd >= 0)
		emit_keep_fd(s->e, s->tables.fd);
	return r;
}

int filter_emit(struct emitter *e, const struct pp_filter_node *nodes, size_t n,
		const struct filter_view *view, struct emit_labels *no, struct failure *f)
{
	struct filter_state s = {
		.e = e,
		.view = view,
		.nodes = nodes,
		.f = f,
		.tables = { .fd = -EBADF },
		.what = "filter",
	};
	int r;

	r = make_patterns(&s, n);
	if (r >= 0)
		r = emit_tree(&s, nodes, false, no);
	text_tables_done(&s.tables);
	free(s.patterns);
	return r < 0 ? r : e->error;
}

int filter_too_large(struct failure *f)
{
	return fail(f, E2BIG,
		    "The filter is more than this kernel's verifier will follow; make it shorter: "
		    "above all globs with stars in the middle cost it much.");
}

int filter_subprogram(const struct source *source, const struct recorder_target *target,
		      uint32_t payload_size, struct emitter *ret, struct failure *f)
{
	_cleanup_(emit_labels_done) struct emit_labels no = {};
	const struct filter_view view = {
		.tp = source->tp,
		.base = PAYLOAD,
		.size = payload_size,
		.ip_offset = source->tp ? -1 : 0,
	};
	int r;

	emit_mov(ret, PAYLOAD, R1);
	r = condition_emit(ret, source, target, &view, &no, f);
	if (r < 0)
		return r;
	emit_mov_imm(ret, R0, 1);
	emit_exit(ret);
	/* A filter that always holds (`comm ~ "*"`) has no jump to this place, and the verifier
	 * wants one. */
	if (no.n) {
		emit_land_all(ret, &no);
		emit_mov_imm(ret, R0, 0);
		emit_exit(ret);
	}
	emit_function(ret);
	return ret->error;
}
