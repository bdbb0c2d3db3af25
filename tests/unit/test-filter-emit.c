// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Filters in the kernel: parses, emits, loads and runs generated expressions over payloads, each as
 * a context and as memory, and compares them with this file's own evaluator.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#undef fail /* an old macro of check; we use the name */
#include "daemon/engine/emit/filter-emit.h"
#include "daemon/engine/emit/program.h"
#include "daemon/engine/kernel/cgroup.h"
#include "daemon/log.h"
#include "proto/macro.h"
#include "needs.h"
#include "tests/unit/needs.h"

#define EXPRESSIONS 3000 /* a third of them at the short length */
#define PAYLOADS 12
#define SIZE 512
#define COMM "filter-test"

static struct tp_field fields[] = {
	{ .name = "common_type", .offset = 0, .size = 2 },
	{ .name = "common_flags", .offset = 2, .size = 1 },
	{ .name = "common_preempt_count", .offset = 3, .size = 1 },
	{ .name = "common_pid", .offset = 4, .size = 4, .is_signed = true },
	{ .name = "u8", .offset = 8, .size = 1 },
	{ .name = "s8", .offset = 9, .size = 1, .is_signed = true },
	{ .name = "u16", .offset = 10, .size = 2 },
	{ .name = "s16", .offset = 12, .size = 2, .is_signed = true },
	{ .name = "u32", .offset = 16, .size = 4 },
	{ .name = "s32", .offset = 20, .size = 4, .is_signed = true },
	{ .name = "u64", .offset = 24, .size = 8 },
	{ .name = "s64", .offset = 32, .size = 8, .is_signed = true },
	{ .name = "odd32", .offset = 41, .size = 4, .is_signed = true },
	{ .name = "odd64", .offset = 47, .size = 8 },
	{ .name = "name", .offset = 56, .size = 16, .is_array = true, .is_text = true },
	{ .name = "shifted", .offset = 76, .size = 10, .is_array = true, .is_text = true },
	{ .name = "dynamic",
	  .offset = 88,
	  .size = 4,
	  .is_data_loc = true,
	  .is_array = true,
	  .is_text = true },
	{ .name = "open",
	  .offset = 92,
	  .size = 4,
	  .is_data_loc = true,
	  .is_array = true,
	  .is_text = true },
	{ .name = "relative",
	  .offset = 96,
	  .size = 4,
	  .is_rel_loc = true,
	  .is_array = true,
	  .is_text = true },
	{ .name = "pointer", .offset = 104, .size = 8, .is_pointer = true },
	{ .name = "numbers", .offset = 112, .size = 12, .is_array = true },
};
#define FIXED 124

static struct tracepoint tp = {
	.system = "made",
	.name = "up",
	.id = 777,
	.fields = fields,
	.n_fields = ARRAY_SIZE(fields),
	.fixed_size = FIXED,
	.has_dynamic = true,
};

static const char *const words[] = {
	"",
	"a",
	"ab",
	"abc",
	"nginx",
	"nginx-worker",
	"bash",
	"[x]",
	"a*b",
	"zzz/y",
	"aaaaaab",
	"abababc",
	"\\q",
	"\xc3\xa4",
	"-",
	"nginx-worker-01",
	("a rather long text that has more than one word of sixty-four bytes, and still more: "
	 "0123456789"),
};

static const char *const globs[] = {
	"*",
	"?",
	"a*",
	"*b",
	"*a*b*",
	"nginx*",
	"n?inx*",
	"[a-n]*",
	"[!a]*",
	"*[0-9]",
	"[]x]*",
	"\\[x\\]",
	"[x",
	"a*b*c",
	"*ab*abc",
	"abc",
	"??",
	"*-*-*",
	"[!-]*",
	"*\\*b",
	"",
	"a\\",
	"*more than*word*still*9",
	"a rather long text that has more than one word of sixty-four byte?, and *: 01[0-9]3456789",
	"?rather*",
	"[\xc3]?",
	"*/[x-z]",
};

static uint32_t seed = 20251121;

static uint32_t any(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* ── payloads ───────────────────────────────────────────────────────────────────────────── */

struct payload {
	_Alignas(8) uint8_t bytes[SIZE];
	char pointed[128];
	const char *dynamic, *open, *relative; /* expected results */
	size_t open_size;
};

static struct payload payloads[PAYLOADS];

static void make_payload(struct payload *p)
{
	static const uint8_t edges[] = { 0, 1, 0x7f, 0x80, 0xff, 42 };
	uint32_t word, at = FIXED;

	for (size_t i = 8; i < sizeof(p->bytes); i++)
		p->bytes[i] = any(4) ? edges[any(sizeof(edges))] : (uint8_t)any(256);
	memset(p->bytes + 56, 0, 16);
	strncpy((char *)p->bytes + 56, words[any(ARRAY_SIZE(words) - 1)], any(2) ? 16 : 15);
	strncpy((char *)p->bytes + 76, words[any(ARRAY_SIZE(words))], 10);

	p->dynamic = words[any(ARRAY_SIZE(words))];
	word = (uint32_t)(strlen(p->dynamic) + 1) << 16 | at;
	memcpy(p->bytes + 88, &word, 4);
	strcpy((char *)p->bytes + at, p->dynamic);
	at += strlen(p->dynamic) + 1;

	p->open = words[any(ARRAY_SIZE(words))];
	p->open_size = any(strlen(p->open) + 1);
	word = (uint32_t)p->open_size << 16 | at;
	memcpy(p->bytes + 92, &word, 4);
	memcpy(p->bytes + at, p->open, strlen(p->open));
	at += strlen(p->open);

	p->relative = words[any(ARRAY_SIZE(words))];
	word = (uint32_t)(strlen(p->relative) + 1) << 16 | (at - 100);
	memcpy(p->bytes + 96, &word, 4);
	strcpy((char *)p->bytes + at, p->relative);

	strcpy(p->pointed, words[any(ARRAY_SIZE(words))]);
	*(const char **)(p->bytes + 104) = any(5) ? p->pointed : NULL;
}

/* ── the evaluator ──────────────────────────────────────────────────────────────────────── */

static bool text_holds(const struct pp_filter_node *n, const char *text)
{
	switch (n->op) {
	case PP_FILTER_EQ:
		return !strcmp(text, n->text);
	case PP_FILTER_NE:
		return strcmp(text, n->text) != 0;
	case PP_FILTER_GLOB:
		return pp_glob_match(n->text, text);
	default:
		return !pp_glob_match(n->text, text);
	}
}

static bool number_holds(const struct pp_filter_node *n, __int128 is, __int128 other)
{
	switch (n->op) {
	case PP_FILTER_EQ:
		return is == other;
	case PP_FILTER_NE:
		return is != other;
	case PP_FILTER_LT:
		return is < other;
	case PP_FILTER_LE:
		return is <= other;
	case PP_FILTER_GT:
		return is > other;
	case PP_FILTER_GE:
		return is >= other;
	default:
		return ((uint64_t)is & (uint64_t)other) != 0;
	}
}

/* The value after conversion to the field's type. */
static __int128 as_field(uint64_t v, uint32_t size, bool is_signed)
{
	switch (size) {
	case 1:
		return is_signed ? (__int128)(int8_t)v : (__int128)(uint8_t)v;
	case 2:
		return is_signed ? (__int128)(int16_t)v : (__int128)(uint16_t)v;
	case 4:
		return is_signed ? (__int128)(int32_t)v : (__int128)(uint32_t)v;
	default:
		return is_signed ? (__int128)(int64_t)v : (__int128)v;
	}
}

static bool field_holds(const struct pp_filter_node *n, const struct payload *p, int cpu)
{
	char text[SIZE] = "";
	uint64_t v = 0;

	if (!strcmp(n->field, "comm"))
		return text_holds(n, COMM);
	if (!strcmp(n->field, "cpu"))
		return number_holds(n, cpu, as_field(n->value, 4, false));
	if (!strcmp(n->field, "pid"))
		return number_holds(n, getpid(), as_field(n->value, 4, false));
	if (!strcmp(n->field, "TID"))
		return number_holds(n, gettid(), as_field(n->value, 4, false));
	if (!strcmp(n->field, "uid"))
		return number_holds(n, getuid(), as_field(n->value, 4, false));
	if (!strcmp(n->field, "common_type"))
		return number_holds(n, 777, as_field(n->value, 2, false));
	if (!strcmp(n->field, "common_pid"))
		return number_holds(n, gettid(), as_field(n->value, 4, true));
	if (!strcmp(n->field, "dynamic"))
		return text_holds(n, p->dynamic);
	if (!strcmp(n->field, "relative"))
		return text_holds(n, p->relative);
	if (!strcmp(n->field, "open")) {
		memcpy(text, p->open, p->open_size);
		return text_holds(n, text);
	}
	if (!strcmp(n->field, "pointer") && n->is_text)
		return *(char *const *)(p->bytes + 104) && text_holds(n, p->pointed);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct tp_field *f = &fields[i];

		if (strcmp(f->name, n->field))
			continue;
		if (f->is_text) {
			memcpy(text, p->bytes + f->offset, f->size);
			return text_holds(n, text);
		}
		memcpy(&v, p->bytes + f->offset, f->size);
		return number_holds(n, as_field(v, f->size, f->is_signed),
				    as_field(n->value, f->size, f->is_signed));
	}
	ck_abort_msg("no field %s", n->field);
}

static bool holds(const struct pp_filter_node **n, const struct payload *p, int cpu)
{
	const struct pp_filter_node *node = (*n)++;
	bool a, b;

	if (node->op == PP_FILTER_NOT)
		return !holds(n, p, cpu);
	if (node->op != PP_FILTER_AND && node->op != PP_FILTER_OR)
		return field_holds(node, p, cpu);
	a = holds(n, p, cpu);
	b = holds(n, p, cpu);
	return node->op == PP_FILTER_AND ? a && b : a || b;
}

/* ── expressions ────────────────────────────────────────────────────────────────────────── */

static void put_leaf(FILE *out)
{
	static const char *const texts[] = { "name",	 "shifted", "dynamic", "open",
					     "relative", "pointer", "comm" };
	static const char *const ops[] = { "==", "!=", "<", "<=", ">", ">=", "&" };
	static const struct {
		const char *name;
		int bits;
	} numbers[] = {
		{ "u8", 8 },	 { "s8", 8 },	  { "u16", 16 },	 { "s16", 16 },
		{ "u32", 32 },	 { "s32", 32 },	  { "u64", 64 },	 { "s64", 64 },
		{ "odd32", 32 }, { "odd64", 64 }, { "cpu", 32 },	 { "pid", 32 },
		{ "TID", 32 },	 { "uid", 32 },	  { "common_type", 16 }, { "common_pid", 32 },
	};
	uint64_t values[] = {
		0, 1, 42, 0x7f, 0x80, 0xff, (uint64_t)getpid(), UINT64_MAX, 0x7f7f7f7f7f7f7f7f, 777
	};

	if (any(5) < 2) {
		const char *field = texts[any(ARRAY_SIZE(texts))];

		if (any(2))
			fprintf(out, "%s %s \"", field, any(2) ? "==" : "!=");
		else
			fprintf(out, "%s %s \"", field, any(2) ? "~" : "!~");
		fprintf(out, "%s\"",
			any(2) ? words[any(ARRAY_SIZE(words))] : globs[any(ARRAY_SIZE(globs))]);
	} else {
		size_t i = any(ARRAY_SIZE(numbers));
		uint64_t v = values[any(ARRAY_SIZE(values))] & UINT64_MAX >> (64 - numbers[i].bits);

		fprintf(out, "%s %s ", numbers[i].name, ops[any(ARRAY_SIZE(ops))]);
		if (any(4) == 0)
			fprintf(out, "-%u", any(100) + 1);
		else if (any(2))
			fprintf(out, "%#jx", (uintmax_t)v);
		else
			fprintf(out, "%ju", (uintmax_t)v);
	}
}

static void put_expression(FILE *out, unsigned depth)
{
	unsigned kind = depth ? any(6) : 5;

	switch (kind) {
	case 0:
	case 1:
	case 2:
		fputc('(', out);
		put_expression(out, depth - 1);
		fputs(kind == 1 ? " || " : " && ", out);
		put_expression(out, depth - 1);
		fputc(')', out);
		break;
	case 3:
		fputs("!(", out);
		put_expression(out, depth - 1);
		fputc(')', out);
		break;
	default:
		put_leaf(out);
	}
}

/* ── programs ───────────────────────────────────────────────────────────────────────────── */

enum { R0, R1, R6 = 6 };

/* The filter over the context, or over the map's value; the program returns its result. */
static int load(const struct pp_filter_node *nodes, size_t n, int map, struct failure *f)
{
	_cleanup_(emit_labels_done) struct emit_labels no = {};
	_cleanup_(emit_done) struct emitter e = {};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .prog_flags = BPF_F_SLEEPABLE);
	struct filter_view view = {
		.tp = &tp,
		.base = R6,
		.is_context = map < 0,
		.size = FIXED,
		.ip_offset = -1,
		.user_memory = true,
	};
	int r;

	if (map < 0)
		emit_mov(&e, R6, R1);
	else
		emit_load_map_value(&e, R6, map, 0);
	r = filter_emit(&e, nodes, n, &view, &no, f);
	if (r < 0)
		return r;
	emit_mov_imm(&e, R0, 1);
	emit_exit(&e);
	emit_land_all(&e, &no);
	emit_mov_imm(&e, R0, 0);
	emit_exit(&e);
	ck_assert_int_eq(e.error, 0);
	return program_load(BPF_PROG_TYPE_SYSCALL, "filter", e.insns, e.n, &opts);
}

static bool run(int fd, struct payload *p, bool as_context)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = as_context ? p->bytes : NULL,
		    .ctx_size_in = as_context ? SIZE : 0);

	ck_assert_int_eq(bpf_prog_test_run_opts(fd, &opts), 0);
	return opts.retval;
}

START_TEST(agreement)
{
	static struct pp_filter_node nodes[PP_FILTER_NODES_MAX];
	int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "payload", 4, SIZE, 1, NULL);
	int expressions = is_full_length() ? EXPRESSIONS : EXPRESSIONS / 3;
	uint32_t key = 0, true_ones = 0, runs = 0;
	cpu_set_t cpus;
	int cpu = sched_getcpu();

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	prctl(PR_SET_NAME, COMM);
	ck_assert_int_ge(map, 0);
	for (int i = 0; i < expressions; i++) {
		char *text = NULL, sentence[PP_SENTENCE_SIZE] = "";
		struct failure f = {};
		size_t size;
		FILE *out = open_memstream(&text, &size);
		int n, fds[2];

		put_expression(out, 4);
		fclose(out);
		n = pp_filter_parse(text, nodes, ARRAY_SIZE(nodes), sentence, sizeof(sentence));
		ck_assert_msg(n > 0, "%s: %s", text, sentence);
		fds[0] = load(nodes, n, -1, &f);
		fds[1] = load(nodes, n, map, &f);
		ck_assert_msg(fds[0] >= 0 && fds[1] >= 0, "%s: %d %d %s", text, fds[0], fds[1],
			      f.sentence);
		for (int k = 0; k < PAYLOADS; k++) {
			struct payload *p = &payloads[k];
			const struct pp_filter_node *at = nodes;
			bool want;

			if (i % 10 == 0)
				make_payload(p);
			want = holds(&at, p, cpu);
			ck_assert_int_eq(bpf_map_update_elem(map, &key, p->bytes, 0), 0);
			for (int context = 0; context < 2; context++)
				ck_assert_msg(run(fds[!context], p, context) == want,
					      "%s: not %d (%s) for name=%.16s shifted=%.10s "
					      "dynamic=%s open=%.*s relative=%s pointer=%s",
					      text, want, context ? "context" : "memory",
					      p->bytes + 56, p->bytes + 76, p->dynamic,
					      (int)p->open_size, p->open, p->relative, p->pointed);
			true_ones += want;
			runs++;
		}
		close(fds[0]);
		close(fds[1]);
		free(text);
	}
	close(map);
	printf("%d expressions, %u evaluations twice, %u of them true\n", expressions, runs,
	       true_ones);
	ck_assert_uint_gt(true_ones, runs / 10);
	ck_assert_uint_lt(true_ones, runs * 9 / 10);
}
END_TEST

/* ── what else there is ─────────────────────────────────────────────────────────────────── */

static int try(const char *text, struct failure *f)
{
	static struct pp_filter_node nodes[PP_FILTER_NODES_MAX];
	int n = pp_filter_parse(text, nodes, ARRAY_SIZE(nodes), f->sentence, sizeof(f->sentence));

	ck_assert_msg(n > 0, "%s: %s", text, f->sentence);
	return load(nodes, n, -1, f);
}

START_TEST(refusals)
{
	static const struct {
		const char *text;
		int error;
		const char *says;
	} cases[] = {
		{ "nothing == 1", -EINVAL, "u8, s8, u16" },
		{ "ip == 1", -EINVAL, "'ip'" },
		{ "u8 == 256", -EINVAL, "256" },
		{ "s8 == -129", -EINVAL, "-129" },
		{ "u32 ~ \"x\"", -EINVAL, "is a number" },
		{ "u32 == \"x\"", -EINVAL, "is a number" },
		{ "name == 5", -EINVAL, "quotes" },
		{ "numbers == 5", -EINVAL, "'numbers'" },
		{ "cgroup == \"/..\"", -EINVAL, "/.." },
		{ "cgroup ~ \"/*\"", -EINVAL, "path" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct failure f = {};
		int r = try(cases[i].text, &f);

		/* The parser's refusal is covered elsewhere. */
		ck_assert_msg(r == cases[i].error, "%s: %d %s", cases[i].text, r, f.sentence);
		ck_assert_int_eq(f.error, -r);
		ck_assert_msg(strstr(f.sentence, cases[i].says) != NULL, "%s: %s", cases[i].text,
			      f.sentence);
	}
}
END_TEST

/* cgroups of version 2, all of which must be visible. */
static const char *no_cgroups(void)
{
	static struct failure f;
	unsigned level;
	uint64_t id;

	return cgroup_find("/", &id, &level, &f) == 0 ? NULL : f.sentence;
}

START_TEST(cgroups)
{
	char line[4096] = "", text[4200];
	FILE *file = fopen("/proc/self/cgroup", "re");
	struct failure f = {};
	int fd;

	while (fgets(line, sizeof(line), file) && strncmp(line, "0::", 3))
		;
	fclose(file);
	ck_assert_int_eq(try("cgroup == \"no-such.service\"", &f), -ENOENT);
	ck_assert_msg(strstr(f.sentence, "no slice under") != NULL, "%s", f.sentence);
	f = (struct failure){};
	ck_assert_int_eq(try("cgroup == \"/cgroup.procs\"", &f), -ENOTDIR);
	f = (struct failure){};
	ck_assert_int_eq(try("cgroup == \"/no/such/cgroup\"", &f), -ENOENT);
	ck_assert_msg(strstr(f.sentence, "/no/such/cgroup") != NULL, "%s", f.sentence);
	f = (struct failure){};
	fd = try("cgroup == \"/\"", &f);
	ck_assert_msg(fd >= 0, "%s", f.sentence);
	ck_assert(run(fd, &payloads[0], true));
	close(fd);
	fd = try("cgroup != \"/\"", &f);
	ck_assert(!run(fd, &payloads[0], true));
	close(fd);
	line[strcspn(line, "\n")] = '\0';
	snprintf(text, sizeof(text), "cgroup == \"%s\"", line + 3);
	fd = try(text, &f);
	ck_assert_msg(fd >= 0, "%s", f.sentence);
	ck_assert(run(fd, &payloads[0], true));
	close(fd);
}
END_TEST

/* As many of the most expensive leaves as fit: the verifier must accept them. */
START_TEST(large)
{
	char text[8192] = "";
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);
	struct failure f = {};
	int fd;

	for (int i = 0; i < 30; i++)
		sprintf(text + strlen(text),
			"%sdynamic ~ \"*%c[a-z]*?x*%d*more than one word of sixty-four bytes %d*\"",
			i ? i % 2 ? " && " : " || " : "", 'a' + i, i, i);
	fd = try(text, &f);
	ck_assert_msg(fd >= 0, "%d %s", fd, f.sentence);
	ck_assert_int_eq(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	printf("30 globs: %u instructions verified\n", info.verified_insns);
	ck_assert_uint_lt(info.verified_insns, 500000);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("filter-emit");
	TCase *tc = tcase_create("all");

	log_open("test-filter-emit");
	need(no_bpf());
	for (int i = 0; i < PAYLOADS; i++)
		make_payload(&payloads[i]);
	tcase_add_test(tc, agreement);
	tcase_add_test(tc, refusals);
	add_test_unless(no_cgroups(), tc, cgroups);
	tcase_add_test(tc, large);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
