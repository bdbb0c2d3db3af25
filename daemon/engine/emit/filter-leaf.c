// SPDX-License-Identifier: LGPL-2.1-or-later
/* Turns comparisons into instructions. See filter-leaf.h. */
#include "daemon/engine/emit/filter-leaf.h"

#include <string.h>

#include "daemon/engine/kernel/cgroup.h"
#include "proto/macro.h"

enum { R0, R1, R2, R3, R4, R5, FRAME = BPF_REG_10 };

/* Below view->stack: the state of emit_text(), then the copy of a text. */
#define STATE_SIZE (8 * GLOB_WORDS)
_Static_assert(STATE_SIZE + TEXT_MAX + 1 == FILTER_STACK, "stack");
_Static_assert(STATE_SIZE + FILTER_COMM_SIZE == FILTER_STACK_SMALL, "stack");

/* Fields that every event has: the current task, and where it runs. */
enum special {
	SPECIAL_NONE,
	SPECIAL_COMM,
	SPECIAL_CPU,
	SPECIAL_PID,
	SPECIAL_TID,
	SPECIAL_UID,
	SPECIAL_IP,
	SPECIAL_CGROUP,
};

static const struct {
	const char *name;
	enum special special;
} specials[] = {
	{ "comm", SPECIAL_COMM },     { "COMM", SPECIAL_COMM },	    { "cpu", SPECIAL_CPU },
	{ "CPU", SPECIAL_CPU },	      { "pid", SPECIAL_PID },	    { "PID", SPECIAL_PID },
	{ "tid", SPECIAL_TID },	      { "TID", SPECIAL_TID },	    { "uid", SPECIAL_UID },
	{ "UID", SPECIAL_UID },	      { "ip", SPECIAL_IP },	    { "IP", SPECIAL_IP },
	{ "cgroup", SPECIAL_CGROUP }, { "CGROUP", SPECIAL_CGROUP },
};

const struct tp_field *filter_find_field(const struct tracepoint *tp, const char *name)
{
	for (size_t i = 0; tp && i < tp->n_fields; i++)
		if (!strcmp(tp->fields[i].name, name))
			return &tp->fields[i];
	return NULL;
}

static enum special find_special(const struct filter_view *view, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(specials); i++)
		if (!strcmp(specials[i].name, name))
			return specials[i].special == SPECIAL_IP && view->ip_offset < 0
				       ? SPECIAL_NONE
				       : specials[i].special;
	return SPECIAL_NONE;
}

/* ── failures ───────────────────────────────────────────────────────────────────────────── */

static const char *event_name(const struct filter_view *view, char *buf, size_t size)
{
	if (!view->tp)
		return "this event";
	snprintf(buf, size, "%s:%s", view->tp->system, view->tp->name);
	return buf;
}

static int fail_field(const struct filter_state *s, const char *name)
{
	const struct tracepoint *tp = s->view->tp;
	char fields[300] = "", event[300];
	size_t used = 0;

	/* Lists the event's own fields; as many as fit. */
	for (size_t i = 0; tp && i < tp->n_fields; i++) {
		const char *field = tp->fields[i].name;

		if (!strncmp(field, "common_", 7))
			continue;
		if (used + strlen(field) + sizeof(", …, ") > sizeof(fields)) {
			used += sprintf(fields + used, "…, ");
			break;
		}
		used += sprintf(fields + used, "%s, ", field);
	}
	return fail(s->f, EINVAL,
		    "The %s asks for the field '%.63s', which %.100s does not have; it can ask for "
		    "%s%s%s.",
		    s->what, name, event_name(s->view, event, sizeof(event)), fields,
		    s->view->ip_offset < 0 ? "" : "ip, ",
		    s->nodes ? "comm, cpu, pid, tid, uid and cgroup" : "cpu, pid, tid and uid");
}

static int fail_type(const struct filter_state *s, const char *name, const char *what,
		     const char *hint)
{
	char event[300];

	return fail(s->f, EINVAL, "The %s's field '%.63s' of %.100s is %s; %s.", s->what, name,
		    event_name(s->view, event, sizeof(event)), what, hint);
}

static const char hint_number[] = "compare it with a number, by == != < <= > >= or &";
static const char hint_fields[] = "take one of at most 8 bytes that is a number";
static const char hint_text[] = "compare it with text in quotes, by == != ~ or !~";

/* ── numbers ────────────────────────────────────────────────────────────────────────────── */

/* Loads a field by steps as wide as its alignment allows: a context takes no others. */
static void emit_field(struct emitter *e, const struct filter_view *view, int dst, int scratch,
		       uint32_t offset, uint32_t size)
{
	uint32_t done = 0;

	while (done < size) {
		uint32_t at = offset + done, part = 8;
		int to = done ? scratch : dst;

		while (done + part > size || at % part)
			part /= 2;
		emit_load(e, (int)part, to, view->base, view->bias + (int)at);
		if (done) {
			emit_alu_imm(e, BPF_LSH, scratch, 8 * (int)done);
			emit_alu(e, BPF_OR, dst, scratch);
		}
		done += part;
	}
}

/* The value as a field of that size holds it; false: it does not fit. As in ftrace, a number may be
 * written with either sign. */
static bool fit_value(const struct pp_filter_node *node, uint32_t size, bool is_signed,
		      uint64_t *ret)
{
	int unused = 64 - 8 * (int)size;
	uint64_t v = node->value;

	if (node->is_negative ? (int64_t)v < INT64_MIN >> unused : v > UINT64_MAX >> unused)
		return false;
	v <<= unused;
	*ret = is_signed ? (uint64_t)((int64_t)v >> unused) : v >> unused;
	return true;
}

struct comparison {
	int unsigned_op, signed_op; /* the jump taken if it holds */
	uint32_t inverse;	    /* enum pp_filter_op: the opposite comparison */
};

static const struct comparison comparisons[] = {
	[PP_FILTER_EQ] = { BPF_JEQ, BPF_JEQ, PP_FILTER_NE },
	[PP_FILTER_NE] = { BPF_JNE, BPF_JNE, PP_FILTER_EQ },
	[PP_FILTER_LT] = { BPF_JLT, BPF_JSLT, PP_FILTER_GE },
	[PP_FILTER_LE] = { BPF_JLE, BPF_JSLE, PP_FILTER_GT },
	[PP_FILTER_GT] = { BPF_JGT, BPF_JSGT, PP_FILTER_LE },
	[PP_FILTER_GE] = { BPF_JGE, BPF_JSGE, PP_FILTER_LT },
};

/* Jumps if (R1 OP value) == sense. R1 holds a number of that size, zero-extended. */
static int emit_number(const struct filter_state *s, const struct pp_filter_node *node,
		       uint32_t size, bool is_signed, bool sense, struct emit_labels *out)
{
	const struct comparison *c;
	uint64_t value;

	if (node->is_text)
		return fail_type(s, node->field, "a number", hint_number);
	if (node->op == PP_FILTER_GLOB || node->op == PP_FILTER_NOT_GLOB)
		return fail_type(s, node->field, "a number", hint_number);
	if (!fit_value(node, size, is_signed, &value))
		return fail(
			s->f, EINVAL,
			"The filter compares '%.63s', a field of %u byte%s, with %s%ju, which is "
			"more than it can hold; give a smaller number.",
			node->field, size, size == 1 ? "" : "s", node->is_negative ? "-" : "",
			(uintmax_t)(node->is_negative ? -node->value : node->value));
	if (is_signed && size < 8) {
		emit_alu_imm(s->e, BPF_LSH, R1, 64 - 8 * (int)size);
		emit_alu_imm(s->e, BPF_ARSH, R1, 64 - 8 * (int)size);
	}
	if (node->op == PP_FILTER_BITS) {
		emit_load_imm64(s->e, R2, value);
		emit_alu(s->e, BPF_AND, R1, R2);
		emit_later(s->e, out, emit_jump_imm(s->e, sense ? BPF_JNE : BPF_JEQ, R1, 0));
		return 0;
	}
	c = &comparisons[node->op];
	if (!sense)
		c = &comparisons[c->inverse];
	emit_later(s->e, out,
		   emit_jump_imm64(s->e, is_signed ? c->signed_op : c->unsigned_op, R1, value, R2));
	return 0;
}

/* ── text ───────────────────────────────────────────────────────────────────────────────── */

/* Copies bytes of a context, which takes only aligned loads, to the stack, aligned as they were. */
static void emit_copy(struct emitter *e, const struct filter_view *view, uint32_t offset,
		      uint32_t size, int to)
{
	for (uint32_t i = 0; i < size;) {
		uint32_t part = 8;

		while (i + part > size || (offset + i) % part || i % part)
			part /= 2;
		emit_load(e, (int)part, R1, view->base, view->bias + (int)(offset + i));
		emit_store(e, (int)part, FRAME, to + (int)i, R1);
		i += part;
	}
}

/* Reads the text at R3 to the stack; takes *unreadable if that fails. Before Linux 6.16 (fce8697d6626) an
 * empty text of user memory has the size 0, and is there nevertheless. */
static void emit_read_text(struct emitter *e, uint32_t size, int to, bool user,
			   struct emit_labels *unreadable)
{
	emit_mov(e, R1, FRAME);
	emit_alu_imm(e, BPF_ADD, R1, to);
	emit_mov_imm(e, R2, (int32_t)size);
	emit_call(e, user ? BPF_FUNC_probe_read_user_str : BPF_FUNC_probe_read_kernel_str);
	emit_later(e, unreadable, emit_jump_imm(e, BPF_JSLT, R0, 0));
}

/* The dynamic part that a word describes; it may lack a NUL. */
static void emit_dynamic_text(struct emitter *e, const struct filter_view *view,
			      const struct tp_field *field, uint32_t size, int to,
			      struct emit_labels *unreadable)
{
	int bias = view->bias + (field->is_rel_loc ? (int)field->offset + 4 : 0);
	emit_label ends;

	emit_field(e, view, R3, R2, field->offset, 4);
	emit_alu_imm(e, BPF_AND, R3, 0xffff);
	emit_mov(e, R1, view->base);
	emit_alu(e, BPF_ADD, R1, R3);
	emit_mov(e, R3, R1);
	if (bias)
		emit_alu_imm(e, BPF_ADD, R3, bias);
	emit_read_text(e, size, to, false, unreadable);
	emit_field(e, view, R1, R2, field->offset, 4);
	emit_alu_imm(e, BPF_RSH, R1, 16);
	ends = emit_jump_imm(e, BPF_JGE, R1, (int32_t)size - 1);
	emit_mov(e, R2, FRAME);
	emit_alu(e, BPF_ADD, R2, R1);
	emit_store_imm(e, 1, R2, to, 0);
	emit_land(e, ends);
}

static bool reads_user_memory(const struct filter_view *view)
{
	return view->user_memory || !strcmp(view->tp->system, "syscalls");
}

/* Finds where the field's text can be read, and copies it first if it must. */
static int emit_find_text(const struct filter_state *s, const struct pp_filter_node *node,
			  const struct text_pattern *pattern, struct text_place *ret,
			  struct emit_labels *unreadable)
{
	const struct filter_view *view = s->view;
	const struct tp_field *field = filter_find_field(view->tp, node->field);
	uint32_t needed = text_needed(pattern), size = ALIGN_TO(needed + 1, 8U);
	int to = view->stack - STATE_SIZE - (int)size;
	struct emitter *e = s->e;

	if (!field) { /* comm */
		to = view->stack - STATE_SIZE - FILTER_COMM_SIZE;
		emit_mov(e, R1, FRAME);
		emit_alu_imm(e, BPF_ADD, R1, to);
		emit_mov_imm(e, R2, FILTER_COMM_SIZE);
		emit_call(e, BPF_FUNC_get_current_comm);
		*ret = (struct text_place){ FRAME, to, FILTER_COMM_SIZE };
	} else if (field->is_user_copy) {
		emit_field(e, view, R3, R2, field->user_address, sizeof(uint64_t));
		emit_read_text(e, size, to, true, unreadable);
		*ret = (struct text_place){ FRAME, to, size };
	} else if (field->is_pointer) {
		emit_field(e, view, R3, R2, field->offset, field->size);
		emit_read_text(e, size, to, reads_user_memory(view), unreadable);
		*ret = (struct text_place){ FRAME, to, size };
	} else if (field->is_data_loc || field->is_rel_loc) {
		emit_dynamic_text(e, view, field, size, to, unreadable);
		*ret = (struct text_place){ FRAME, to, size };
	} else if (view->is_context) {
		emit_copy(e, view, field->offset, MIN(needed, field->size), to);
		*ret = (struct text_place){ FRAME, to, MIN(needed, field->size) };
	} else {
		*ret = (struct text_place){ view->base, view->bias + (int)field->offset,
					    field->size };
	}
	return 0;
}

/* Jumps if the comparison's result is `sense`. */
static int emit_text_leaf(const struct filter_state *s, const struct pp_filter_node *node,
			  bool sense, struct emit_labels *out)
{
	_cleanup_(emit_labels_done) struct emit_labels mismatch = {}, unreadable = {};
	const struct text_pattern *pattern = &s->patterns[node - s->nodes];
	bool wants_match = node->op == PP_FILTER_EQ || node->op == PP_FILTER_GLOB;
	struct text_place place;
	int r;

	if (!node->is_text)
		return fail_type(s, node->field, "text", hint_text);
	if (!filter_is_glob(node->op) && node->op != PP_FILTER_EQ && node->op != PP_FILTER_NE)
		return fail_type(s, node->field, "text", hint_text);
	r = emit_find_text(s, node, pattern, &place, &unreadable);
	if (r < 0)
		return r;
	emit_text(s->e, pattern, &place, s->tables.fd, s->view->stack, &mismatch);
	if (wants_match == sense) {
		emit_later(s->e, out, emit_always(s->e, R1));
		emit_land_all(s->e, &mismatch);
	} else {
		for (size_t i = 0; i < mismatch.n; i++)
			emit_later(s->e, out, mismatch.at[i]);
	}
	/* A comparison with unreadable text does not hold. */
	if (sense)
		emit_land_all(s->e, &unreadable);
	else
		for (size_t i = 0; i < unreadable.n; i++)
			emit_later(s->e, out, unreadable.at[i]);
	return 0;
}

/* ── leaves ─────────────────────────────────────────────────────────────────────────────── */

static int emit_cgroup_leaf(const struct filter_state *s, const struct pp_filter_node *node,
			    bool sense, struct emit_labels *out)
{
	bool equal = node->op == PP_FILTER_EQ;
	unsigned level = 0;
	uint64_t id = 0;
	int r;

	if (!node->is_text || (!equal && node->op != PP_FILTER_NE))
		return fail_type(s, node->field, "a cgroup",
				 "compare it with a path in quotes, by == or !=");
	r = cgroup_find(node->text, &id, &level, s->f);
	if (r < 0)
		return r;
	/* The ancestor at that depth below the root; 0 if the current cgroup is not as deep. */
	emit_mov_imm(s->e, R1, (int32_t)level);
	emit_call(s->e, BPF_FUNC_get_current_ancestor_cgroup_id);
	emit_later(s->e, out,
		   emit_jump_imm64(s->e, equal == sense ? BPF_JEQ : BPF_JNE, R0, id, R1));
	return 0;
}

static void emit_mov32(struct emitter *e, int dst, int src)
{
	if (dst != src)
		emit_mov(e, dst, src);
	emit_alu_imm(e, BPF_LSH, dst, 32);
	emit_alu_imm(e, BPF_RSH, dst, 32);
}

/* R1 = what all events have. */
static int emit_special(const struct filter_state *s, const char *name, enum special special,
			struct filter_number *ret)
{
	*ret = (struct filter_number){ .size = 4 };
	switch (special) {
	case SPECIAL_CPU:
		emit_call(s->e, BPF_FUNC_get_smp_processor_id);
		emit_mov32(s->e, R1, R0);
		return 0;
	case SPECIAL_PID:
		emit_call(s->e, BPF_FUNC_get_current_pid_tgid);
		emit_mov(s->e, R1, R0);
		emit_alu_imm(s->e, BPF_RSH, R1, 32);
		return 0;
	case SPECIAL_TID:
		emit_call(s->e, BPF_FUNC_get_current_pid_tgid);
		emit_mov32(s->e, R1, R0);
		return 0;
	case SPECIAL_UID:
		emit_call(s->e, BPF_FUNC_get_current_uid_gid);
		emit_mov32(s->e, R1, R0);
		return 0;
	case SPECIAL_IP:
		ret->size = 8;
		emit_field(s->e, s->view, R1, R2, (uint32_t)s->view->ip_offset, ret->size);
		return 0;
	case SPECIAL_COMM:
	case SPECIAL_CGROUP:
		return fail_type(s, name, "no number", hint_fields);
	case SPECIAL_NONE:
		break;
	}
	return fail_field(s, name);
}

/* The recorders make the common fields up: type and pid are known, the others are 0. */
static void emit_common_field(const struct filter_state *s, const struct tp_field *field)
{
	if (!strcmp(field->name, "common_pid")) {
		emit_call(s->e, BPF_FUNC_get_current_pid_tgid);
		emit_mov32(s->e, R1, R0);
	} else {
		emit_mov_imm(s->e, R1,
			     strcmp(field->name, "common_type") ? 0 : (int32_t)s->view->tp->id);
	}
}

int filter_emit_number(const struct filter_state *s, const char *name, struct filter_number *ret)
{
	const struct tp_field *field = filter_find_field(s->view->tp, name);

	if (!field)
		return emit_special(s, name, find_special(s->view, name), ret);
	if (!field->is_user_copy && field->offset + field->size > s->view->size)
		return fail_field(s, name);
	if (field->is_text || field->is_array ||
	    (field->size != 1 && field->size != 2 && field->size != 4 && field->size != 8))
		return fail_type(s, field->name,
				 field->is_text ? "text" : "neither a number nor text",
				 s->nodes ? "filters cannot look into it" : hint_fields);
	if (!strncmp(field->name, "common_", 7))
		emit_common_field(s, field);
	else
		emit_field(s->e, s->view, R1, R2, field->offset, field->size);
	*ret = (struct filter_number){ field->size, field->is_signed };
	return 0;
}

/* A pointer to text is also an address. */
static bool is_text(const struct filter_state *s, const struct pp_filter_node *node)
{
	const struct tp_field *field = filter_find_field(s->view->tp, node->field);

	if (!field)
		return find_special(s->view, node->field) == SPECIAL_COMM;
	return (field->is_user_copy || field->offset + field->size <= s->view->size) &&
	       (field->is_text || (field->is_pointer && node->is_text));
}

int filter_emit_leaf(const struct filter_state *s, const struct pp_filter_node *node, bool sense,
		     struct emit_labels *out)
{
	struct filter_number number;
	int r;

	if (is_text(s, node))
		return emit_text_leaf(s, node, sense, out);
	if (!filter_find_field(s->view->tp, node->field) &&
	    find_special(s->view, node->field) == SPECIAL_CGROUP)
		return emit_cgroup_leaf(s, node, sense, out);
	r = filter_emit_number(s, node->field, &number);
	return r < 0 ? r : emit_number(s, node, number.size, number.is_signed, sense, out);
}
