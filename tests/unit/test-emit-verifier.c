// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernel's verifier must accept the generic recorder's program for every tracepoint of this
 * machine: in all its forms or, at the short length, each tracepoint in some of them.
 */
#include <stdio.h>

#include "emit-fixture.h"

#include "daemon/engine/emit/filter-emit.h"
#include "daemon/log.h"

#define DATA_SIZE (1 << 16)
#define SPILL_SIZE 65536

enum {
	IDENTIFIED = 1,
	NESTS = 2,
	LIMITED = 4,
	WAKES = 8,
	FILTERED = 16,
	LOOKS_UP = 32, /* rings are looked up, not known by address */
	CHAINED = 64,
	SHORT = 128,  /* chains of one entry */
	DUMPED = 256, /* registers and stack of user space */
};

static const unsigned forms[] = {
	0,
	LOOKS_UP,
	IDENTIFIED,
	IDENTIFIED | NESTS,
	FILTERED,
	LIMITED | WAKES,
	IDENTIFIED | NESTS | LIMITED | WAKES | FILTERED | LOOKS_UP,
	CHAINED | WAKES,
	CHAINED | IDENTIFIED | NESTS | LIMITED | WAKES | FILTERED,
	CHAINED | SHORT,
	CHAINED | DUMPED,
	CHAINED | DUMPED | IDENTIFIED | NESTS | LIMITED | WAKES | FILTERED,
};

static struct fixture rings;
static struct pp_filter_node nodes[2 * PP_FILTER_NODES_MAX];

/* A leaf for each comparable field, and one of each other kind; every leaf is evaluated. */
static size_t make_filter(const struct tracepoint *tp)
{
	size_t n = 0, leaves = 0;

	for (size_t i = 0; i <= tp->n_fields; i++) {
		const struct tp_field *f = &tp->fields[i];
		struct pp_filter_node *leaf;

		if (i < tp->n_fields &&
		    (f->is_text ? 0 : f->is_array || (f->size & (f->size - 1)) || f->size > 8))
			continue;
		nodes[n++] = (struct pp_filter_node){ .op = PP_FILTER_AND };
		leaf = &nodes[n++];
		*leaf = (struct pp_filter_node){ .op = PP_FILTER_NE, .value = 77 };
		leaves++;
		if (i == tp->n_fields || f->is_text || f->is_pointer) {
			leaf->is_text = 1;
			leaf->op = i % 2 ? PP_FILTER_NE : PP_FILTER_NOT_GLOB;
			strcpy(leaf->text, i % 2 ? "not this" : "*n[!a-f]t*this?*");
		}
		strcpy(leaf->field, i < tp->n_fields ? f->name : "comm");
	}
	nodes[n++] = (struct pp_filter_node){ .op = PP_FILTER_LT, .value = 4096, .field = "cpu" };
	ck_assert_uint_le(n, ARRAY_SIZE(nodes));
	ck_assert_uint_gt(leaves, 0);
	return n;
}

static void try(struct tracepoint *tp, unsigned form)
{
	const struct pp_source parsed = { .kind = PP_SOURCE_TRACEPOINT };
	const struct pp_spec spec = { .flags = form & CHAINED ? PP_EVENT_CALLCHAIN : 0,
				      .max_stack = form & SHORT ? 1 : 0,
				      .stack_user = form & DUMPED ? PP_STACK_USER_MAX : 0 };
	struct source source = {
		.spec = &spec, .parsed = &parsed, .tp = tp, .id = form & IDENTIFIED ? 5 << 12 : 0
	};
	struct recorder_target target = rings.target;
	struct failure f = {};
	int fd = -EBADF, r;

	if (form & FILTERED) {
		source.filter = nodes;
		source.n_filter = make_filter(tp);
	}
	target.nests = form & NESTS;
	target.max_rate = form & LIMITED ? 1000 : 0;
	target.wakeup_fd = form & WAKES ? rings.wakeups : -EBADF;
	target.n = form & LOOKS_UP ? 0 : rings.n;
	r = recorder_generic.plan(&source, &f);
	ck_assert_msg(r == 0, "%s:%s: plan: %d %s", tp->system, tp->name, r, f.sentence);
	r = recorder_generic.load(&source, &target, &fd, &f);
	ck_assert_msg(r == 0,
		      "%s:%s in form %#x: %d %s (PERFPERSIST_DEBUG=1 shows the verifier's "
		      "reason)",
		      tp->system, tp->name, form, r, f.sentence);
	close(fd);
}

START_TEST(every_tracepoint)
{
	FILE *list = fopen("/sys/kernel/tracing/available_events", "re");
	unsigned n = 0, programs = 0;
	char line[256];

	ck_assert_ptr_nonnull(list);
	fixture_make(&rings, DATA_SIZE, SPILL_SIZE, true);
	while (fgets(line, sizeof(line), list)) {
		struct tracepoint tp;
		char *name;

		line[strcspn(line, "\n")] = '\0';
		name = strchr(line, ':');
		ck_assert_ptr_nonnull(name);
		*name++ = '\0';
		if (tracepoint_read(line, name, &tp) < 0)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
			if (is_full_length() || i == n % ARRAY_SIZE(forms)) {
				try(&tp, forms[i]);
				programs++;
			}
		tracepoint_done(&tp);
		n++;
	}
	fclose(list);
	fixture_done(&rings);
	printf("%u tracepoints, %zu forms: %u programs accepted\n", n, ARRAY_SIZE(forms), programs);
	ck_assert_uint_gt(n, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("emit-verifier");
	TCase *tc = tcase_create("all");

	log_open("test-emit-verifier");
	need(no_bpf());
	need(no_tracefs());
	tcase_add_test(tc, every_tracepoint);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
