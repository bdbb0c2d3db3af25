// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The table of layouts (bpf/payload.h), and whether the running kernel has them: the tracepoint's
 * `format` must have exactly the fields of the payload, BTF exactly the parameters that the program
 * reads. Loads nothing.
 */
#include "daemon/engine/recorders/layout.h"

#include <string.h>

#include "daemon/engine/bpf/payload.h"
#include "daemon/engine/kernel/kernel.h"
#include "proto/macro.h"

/* clang-format off */
#define F(payload, field) \
	{ #field, offsetof(struct payload, field), sizeof(((struct payload *)0)->field), false }
#define DATA_LOC(payload, field) { #field, offsetof(struct payload, field), 4, true }
#define FIXED(payload) HOT_RECORD_SIZE(sizeof(struct payload))
/* The verifier does not see that a variable size is a multiple of 8: 8 bytes of slack. */
#define DYNAMIC(payload, bytes) (HOT_RECORD_SIZE(sizeof(struct payload) + (bytes)) + 8)

const struct layout layouts[LAYOUTS_N] = {
	{ "raw_syscalls", "sys_enter", "sys_enter", FIXED(payload_sys_enter),
	  { "*pt_regs", "8" },
	  { F(payload_sys_enter, id), F(payload_sys_enter, args) } },
	{ "raw_syscalls", "sys_exit", "sys_exit", FIXED(payload_sys_exit),
	  { "*pt_regs", "8" },
	  { F(payload_sys_exit, id), F(payload_sys_exit, ret) } },

	{ "sched", "sched_switch", "sched_switch", FIXED(payload_sched_switch),
	  { "1", "*task_struct", "*task_struct", "4" },
	  { F(payload_sched_switch, prev_comm), F(payload_sched_switch, prev_pid),
	    F(payload_sched_switch, prev_prio), F(payload_sched_switch, prev_state),
	    F(payload_sched_switch, next_comm), F(payload_sched_switch, next_pid),
	    F(payload_sched_switch, next_prio) } },
#define WAKEUP_FIELDS \
	{ \
		F(payload_sched_wakeup, comm), F(payload_sched_wakeup, pid), \
			F(payload_sched_wakeup, prio), F(payload_sched_wakeup, target_cpu) \
	}
	{ "sched", "sched_waking", "sched_waking", FIXED(payload_sched_wakeup),
	  { "*task_struct" }, WAKEUP_FIELDS },
	{ "sched", "sched_wakeup", "sched_wakeup", FIXED(payload_sched_wakeup),
	  { "*task_struct" }, WAKEUP_FIELDS },
	{ "sched", "sched_process_fork", "sched_process_fork",
	  DYNAMIC(payload_sched_process_fork, 2 * 16),
	  { "*task_struct", "*task_struct" },
	  { DATA_LOC(payload_sched_process_fork, parent_comm),
	    F(payload_sched_process_fork, parent_pid),
	    DATA_LOC(payload_sched_process_fork, child_comm),
	    F(payload_sched_process_fork, child_pid) } },
	{ "sched", "sched_process_fork", "sched_process_fork_fixed",
	  FIXED(payload_sched_process_fork_fixed),
	  { "*task_struct", "*task_struct" },
	  { F(payload_sched_process_fork_fixed, parent_comm),
	    F(payload_sched_process_fork_fixed, parent_pid),
	    F(payload_sched_process_fork_fixed, child_comm),
	    F(payload_sched_process_fork_fixed, child_pid) } },
	{ "sched", "sched_process_exec", "sched_process_exec",
	  DYNAMIC(payload_sched_process_exec, HOT_STRING_MAX),
	  { "*task_struct", "4", "*linux_binprm" },
	  { DATA_LOC(payload_sched_process_exec, filename), F(payload_sched_process_exec, pid),
	    F(payload_sched_process_exec, old_pid) } },
	{ "sched", "sched_process_exit", "sched_process_exit", FIXED(payload_sched_process_exit),
	  { "*task_struct", "1" },
	  { F(payload_sched_process_exit, comm), F(payload_sched_process_exit, pid),
	    F(payload_sched_process_exit, prio), F(payload_sched_process_exit, group_dead) }, },
	{ "sched", "sched_process_exit", "sched_process_exit_plain",
	  FIXED(payload_sched_process_exit_plain),
	  { "*task_struct" },
	  { F(payload_sched_process_exit_plain, comm), F(payload_sched_process_exit_plain, pid),
	    F(payload_sched_process_exit_plain, prio) } },

	{ "irq", "irq_handler_entry", "irq_handler_entry",
	  DYNAMIC(payload_irq_handler_entry, HOT_STRING_MAX),
	  { "4", "*irqaction" },
	  { F(payload_irq_handler_entry, irq), DATA_LOC(payload_irq_handler_entry, name) } },
	{ "irq", "irq_handler_exit", "irq_handler_exit", FIXED(payload_irq_handler_exit),
	  { "4", "*irqaction", "4" },
	  { F(payload_irq_handler_exit, irq), F(payload_irq_handler_exit, ret) } },
	{ "irq", "softirq_entry", "softirq_entry", FIXED(payload_softirq),
	  { "4" }, { F(payload_softirq, vec) } },
	{ "irq", "softirq_exit", "softirq_exit", FIXED(payload_softirq),
	  { "4" }, { F(payload_softirq, vec) } },
	{ "irq", "softirq_raise", "softirq_raise", FIXED(payload_softirq),
	  { "4" }, { F(payload_softirq, vec) } },

#define SETUP_FIELDS \
	{ \
		F(payload_hrtimer_setup, hrtimer), F(payload_hrtimer_setup, clockid), \
			F(payload_hrtimer_setup, mode) \
	}
	{ "timer", "hrtimer_init", "hrtimer_init", FIXED(payload_hrtimer_setup),
	  { "*hrtimer", "4", "4" }, SETUP_FIELDS },
	{ "timer", "hrtimer_setup", "hrtimer_setup", FIXED(payload_hrtimer_setup),
	  { "*hrtimer", "4", "4" }, SETUP_FIELDS },
#define START_FIELDS \
	F(payload_hrtimer_start, hrtimer), F(payload_hrtimer_start, function), \
		F(payload_hrtimer_start, expires), F(payload_hrtimer_start, softexpires), \
		F(payload_hrtimer_start, mode)
	{ "timer", "hrtimer_start", "hrtimer_start", FIXED(payload_hrtimer_start),
	  { "*hrtimer", "4", "1" }, { START_FIELDS, F(payload_hrtimer_start, was_armed) } },
	{ "timer", "hrtimer_start", "hrtimer_start_plain", FIXED(payload_hrtimer_start_plain),
	  { "*hrtimer", "4" }, { START_FIELDS } },
#define EXPIRE_FIELDS \
	{ \
		F(payload_hrtimer_expire_entry, hrtimer), F(payload_hrtimer_expire_entry, now), \
			F(payload_hrtimer_expire_entry, function) \
	}
	{ "timer", "hrtimer_expire_entry", "hrtimer_expire_entry",
	  FIXED(payload_hrtimer_expire_entry),
	  { "*hrtimer", "*" }, EXPIRE_FIELDS },
	{ "timer", "hrtimer_expire_entry", "hrtimer_expire_entry_value", /* since 7.0 */
	  FIXED(payload_hrtimer_expire_entry),
	  { "*hrtimer", "8" }, EXPIRE_FIELDS },
	{ "timer", "hrtimer_expire_exit", "hrtimer_expire_exit", FIXED(payload_hrtimer),
	  { "*hrtimer" }, { F(payload_hrtimer, hrtimer) } },
	{ "timer", "hrtimer_cancel", "hrtimer_cancel", FIXED(payload_hrtimer),
	  { "*hrtimer" }, { F(payload_hrtimer, hrtimer) } },
};
/* clang-format on */

static bool parameter_fits(const struct btf *btf, uint32_t id, const char *want)
{
	const struct btf_type *t = btf__type_by_id(btf, (uint32_t)btf__resolve_type(btf, id));

	if (!t)
		return false;
	if (want[0] != '*')
		return (btf_is_int(t) || btf_is_any_enum(t)) && t->size == (uint32_t)atoi(want);
	/* btf__resolve_type() does not follow pointers: t is the pointer, or there is none. */
	if (!btf_is_ptr(t))
		return false;
	if (!want[1])
		return true;
	id = t->type;
	while ((t = btf__type_by_id(btf, id)) && (btf_is_mod(t) || btf_is_typedef(t)))
		id = t->type;
	return t && btf_is_struct(t) && !strcmp(btf__name_by_offset(btf, t->name_off), want + 1);
}

/* The kernel's type of a tracepoint's BTF handler: typedef to pointer to prototype. */
static const struct btf_type *prototype(const struct btf *btf, const char *name)
{
	const struct btf_type *t;
	char type[128];
	int id;

	if (snprintf(type, sizeof(type), "btf_trace_%s", name) >= (int)sizeof(type))
		return NULL;
	id = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF);
	t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) ? t : NULL;
}

/* All others are called by an interrupt or with interrupts off; but softirqs run in threads on PREEMPT_RT. */
bool layout_is_preemptible(const char *system, const char *name)
{
	static const char *const calls[][2] = {
		{ "raw_syscalls", "sys_enter" },   { "raw_syscalls", "sys_exit" },
		{ "sched", "sched_process_fork" }, { "sched", "sched_process_exec" },
		{ "sched", "sched_process_exit" }, { "timer", "hrtimer_init" },
		{ "timer", "hrtimer_setup" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (!strcmp(calls[i][0], system) && !strcmp(calls[i][1], name))
			return true;
	return !strcmp(system, "irq") && kernel_is_realtime() &&
	       (!strcmp(name, "softirq_entry") || !strcmp(name, "softirq_exit"));
}

bool layout_is_there(const struct layout *layout, const struct btf *btf)
{
	return prototype(btf, layout->name) != NULL;
}

bool layout_fits_prototype(const struct layout *layout, const struct btf *btf)
{
	const struct btf_type *t = prototype(btf, layout->name);
	const struct btf_param *params;
	size_t n = 0;

	if (!t)
		return false;
	while (layout->parameters[n])
		n++;
	if (btf_vlen(t) != n + 1) /* the first is the handler's own data */
		return false;
	params = btf_params(t) + 1;
	for (size_t i = 0; i < n; i++)
		if (!parameter_fits(btf, params[i].type, layout->parameters[i]))
			return false;
	return true;
}

bool layout_fits_format(const struct layout *layout, const struct tracepoint *tp)
{
	const size_t common = 4;
	size_t n = 0;

	if (strcmp(layout->name, tp->name) || strcmp(layout->system, tp->system))
		return false;
	while (layout->fields[n].name)
		n++;
	if (tp->n_fields != common + n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct tp_field *is = &tp->fields[common + i];
		const struct layout_field *want = &layout->fields[i];

		if (strcmp(is->name, want->name) || is->offset != want->offset ||
		    is->size != want->size || is->is_data_loc != want->is_data_loc ||
		    is->is_rel_loc)
			return false;
	}
	return true;
}
