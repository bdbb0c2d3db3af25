// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the step from a template to a program: copies libbpf's relocated instructions, replaces
 * maps, constants and the hook in them, and loads the result. Knows nothing of the program's
 * purpose, nor of pins and links.
 *
 * The copy has no line information, and function information only if it has a callback: there the
 * verifier demands it.
 */
#include "daemon/engine/emit/template.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>

#include "daemon/engine/emit/program.h"
#include "proto/macro.h"

static bool is_map_load(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW) &&
	       (insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_VALUE);
}

/* The instructions of a program that is being made. */
struct draft {
	struct bpf_insn *insns;
	size_t n;
};

/* A 64-bit load takes two instructions; the second is no instruction of its own. */
#define DRAFT_FOREACH(i, d)            \
	for (size_t i = 0; i < (d)->n; \
	     i += (d)->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) ? 2 : 1)

static bool is_for(const struct bpf_insn *load, const struct template_map *map)
{
	if (map->template_fd >= 0)
		return is_map_load(load) && load->imm == map->template_fd;
	return load[0].code == (BPF_LD | BPF_IMM | BPF_DW) && load[0].src_reg == 0 &&
	       load[0].imm == (int32_t)(uint32_t)map->mark &&
	       load[1].imm == (int32_t)(uint32_t)(map->mark >> 32);
}

static void replace_map(struct bpf_insn *load, const struct template_map *map)
{
	if (map->fd >= 0) {
		load->imm = map->fd;
		if (map->template_fd < 0) {
			load[0].src_reg = BPF_PSEUDO_MAP_FD;
			load[1].imm = 0;
		}
		return;
	}
	/* The verifier demands a map even where it never gets to. */
	load[0].src_reg = 0;
	load[0].imm = load[1].imm = 0;
}

static void replace_maps(struct draft *d, const struct template_map *maps, size_t n_maps)
{
	DRAFT_FOREACH(i, d)
	{
		for (size_t m = 0; m < n_maps; m++)
			if (is_for(&d->insns[i], &maps[m])) {
				replace_map(&d->insns[i], &maps[m]);
				break;
			}
	}
}

/* ── constants ──────────────────────────────────────────────────────────────────────────── */

/* A jump to the next instruction, which the verifier removes. */
static const struct bpf_insn nothing = { .code = BPF_JMP | BPF_JA };

/*
 * Whether these are the address of a constant and the load of it, in one register, so that no other
 * instruction can use the address: then *ret is the value.
 */
static bool is_constant(const struct bpf_insn *insn, const struct template_changes *c,
			uint64_t *ret)
{
	const struct bpf_insn *load = insn + 2;
	uint64_t offset, size = 0;

	if (!is_map_load(insn) || insn->imm != c->rodata_fd || BPF_CLASS(load->code) != BPF_LDX ||
	    BPF_MODE(load->code) != BPF_MEM || load->src_reg != insn->dst_reg ||
	    load->dst_reg != insn->dst_reg)
		return false;
	if (BPF_SIZE(load->code) == BPF_B)
		size = 1;
	else if (BPF_SIZE(load->code) == BPF_DW)
		size = 8;
	offset = (uint64_t)insn[1].imm + (uint64_t)load->off;
	if (!size || offset + size > c->constants_size)
		return false;
	*ret = size == 1 ? *((const uint8_t *)c->constants + offset) : 0;
	if (size == 8)
		memcpy(ret, (const uint8_t *)c->constants + offset, 8);
	return true;
}

static void settle_constants(struct draft *d, const struct template_changes *c)
{
	DRAFT_FOREACH(i, d)
	{
		struct bpf_insn *insn = &d->insns[i];
		uint64_t value;

		if (i + 2 >= d->n || !is_constant(insn, c, &value))
			continue;
		insn[0].src_reg = 0;
		insn[0].imm = (int32_t)(uint32_t)value;
		insn[1].imm = (int32_t)(uint32_t)(value >> 32);
		insn[2] = nothing;
	}
}

/* Constants that are not immediates are still read from a map. */
static int replace_rodata(struct draft *d, const struct template_changes *c, int *ret_fd)
{
	bool is_read = false;
	int r;

	DRAFT_FOREACH(i, d)
	is_read |= is_map_load(&d->insns[i]) && d->insns[i].imm == c->rodata_fd;
	if (!is_read)
		return 0;
	r = template_constants(c->constants, c->constants_size, ret_fd);
	if (r < 0)
		return r;
	replace_maps(d, &(struct template_map){ .template_fd = c->rodata_fd, .fd = *ret_fd }, 1);
	return 0;
}

/* ── the hook ───────────────────────────────────────────────────────────────────────────── */

/* Where the one subprogram begins; only code in front of it may call it. 0: not so. */
static size_t find_hook(const struct draft *d)
{
	size_t hook = 0, last_call = 0;

	DRAFT_FOREACH(i, d)
	{
		const struct bpf_insn *insn = &d->insns[i];
		size_t target = i + 1 + (size_t)insn->imm;

		if (insn->code != (BPF_JMP | BPF_CALL) || insn->src_reg != BPF_PSEUDO_CALL)
			continue;
		if (hook && target != hook)
			return 0;
		hook = target;
		last_call = i;
	}
	return hook > last_call && hook < d->n ? hook : 0;
}

/* It is the last in the program, so that no jump and no call has to change. */
static int replace_hook(struct draft *d, const struct template_changes *c)
{
	size_t begin = find_hook(d);
	struct bpf_insn *insns;

	if (!begin)
		return -ENOTSUP;
	insns = reallocarray(d->insns, begin + c->n_hook, sizeof(*insns));
	if (!insns)
		return -ENOMEM;
	memcpy(insns + begin, c->hook, c->n_hook * sizeof(*insns));
	d->insns = insns;
	d->n = begin + c->n_hook;
	return 0;
}

/* ── the head ───────────────────────────────────────────────────────────────────────────── */

/* All jumps and calls are relative. */
static int prepend_head(struct draft *d, const struct template_changes *c)
{
	struct bpf_insn *insns = calloc(c->n_head + d->n, sizeof(*insns));

	if (!insns)
		return -ENOMEM;
	memcpy(insns, c->head, c->n_head * sizeof(*insns));
	memcpy(insns + c->n_head, d->insns, d->n * sizeof(*insns));
	free(d->insns);
	d->insns = insns;
	d->n += c->n_head;
	return 0;
}

/* ── the callback ───────────────────────────────────────────────────────────────────────── */

struct functions {
	struct bpf_func_info info[2]; /* the program, its callback */
	int btf_fd;
};

/* Where the callback begins; 0: there is none. */
static size_t find_callback(const struct draft *d)
{
	DRAFT_FOREACH(i, d)
	{
		const struct bpf_insn *insn = &d->insns[i];

		if (insn->code == (BPF_LD | BPF_IMM | BPF_DW) && insn->src_reg == BPF_PSEUDO_FUNC)
			return i + 1 + (size_t)insn->imm;
	}
	return 0;
}

static int find_functions(const struct bpf_program *prog, const struct draft *d,
			  const struct template_changes *c, struct functions *ret)
{
	const struct btf *btf = bpf_object__btf(c->object);
	int type, callback;

	*ret = (struct functions){ .btf_fd = bpf_object__btf_fd(c->object) };
	ret->info[1].insn_off = find_callback(d);
	type = btf__find_by_name_kind(btf, bpf_program__name(prog), BTF_KIND_FUNC);
	callback = btf__find_by_name_kind(btf, c->callback, BTF_KIND_FUNC);
	if (ret->btf_fd < 0 || !ret->info[1].insn_off || type < 0 || callback < 0)
		return -ENOTSUP;
	ret->info[0].type_id = (uint32_t)type;
	ret->info[1].type_id = (uint32_t)callback;
	return 0;
}

/* ── loading ────────────────────────────────────────────────────────────────────────────── */

/* 0: the type needs none. */
int template_attach_target(const struct bpf_program *prog, uint32_t *ret)
{
	enum bpf_prog_type type = bpf_program__type(prog);
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);
	int r;

	*ret = 0;
	if (type != BPF_PROG_TYPE_TRACING && type != BPF_PROG_TYPE_LSM)
		return 0;

	r = bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size);
	if (r < 0)
		return r;
	if (!info.attach_btf_id)
		return -ENOENT;
	*ret = info.attach_btf_id;
	return 0;
}

/* The kernel refuses names with other characters. */
static void kernel_name(const char *name, char ret[BPF_OBJ_NAME_LEN])
{
	size_t i;

	for (i = 0; i < BPF_OBJ_NAME_LEN - 1 && name[i]; i++)
		ret[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
	ret[i] = '\0';
}

/* Maps before hook and head, which have maps of their own: those may have any descriptors. */
static int make_draft(struct draft *d, const struct template_changes *c, int *ret_constants)
{
	int r = 0;

	if (c->constants) {
		settle_constants(d, c);
		r = replace_rodata(d, c, ret_constants);
	}
	if (r >= 0)
		replace_maps(d, c->maps, c->n_maps);
	if (r >= 0 && c->hook)
		r = replace_hook(d, c);
	if (r >= 0 && c->head)
		r = prepend_head(d, c);
	return r;
}

static int class_of(const struct bpf_program *prog, struct recorder_class *ret)
{
	*ret = (struct recorder_class){
		.type = bpf_program__type(prog),
		.expected = bpf_program__expected_attach_type(prog),
	};
	return template_attach_target(prog, &ret->attach_btf_id);
}

static int load_draft(const struct bpf_program *prog, const struct template_changes *c,
		      const struct draft *d, const char *name, int *ret_fd)
{
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	const struct recorder_class *class = c->class;
	char kname[BPF_OBJ_NAME_LEN];
	struct functions functions;
	struct recorder_class own;
	int r = class ? 0 : class_of(prog, &own);

	if (r >= 0 && c->callback)
		r = find_functions(prog, d, c, &functions);
	if (r < 0)
		return r;
	class = class ? class : &own;
	kernel_name(name ? name : bpf_program__name(prog), kname);
	opts.expected_attach_type = class->expected;
	opts.attach_btf_id = class->attach_btf_id;
	opts.prog_flags = bpf_program__flags(prog);
	if (c->callback) {
		opts.prog_btf_fd = (uint32_t)functions.btf_fd;
		opts.func_info = functions.info;
		opts.func_info_cnt = ARRAY_SIZE(functions.info);
		opts.func_info_rec_size = sizeof(functions.info[0]);
	}
	r = program_load(class->type, kname, d->insns, d->n, &opts);
	if (r < 0)
		return r;
	*ret_fd = r;
	return 0;
}

static void draft_done(struct draft *d)
{
	free(d->insns);
}

static int copy_template(const struct bpf_program *prog, struct draft *ret)
{
	size_t n = bpf_program__insn_cnt(prog);

	/* Not loaded (yet, or at all): its instructions are not relocated. */
	if (bpf_program__fd(prog) < 0)
		return -ENOENT;
	ret->insns = calloc(n, sizeof(*ret->insns));
	if (!ret->insns)
		return -ENOMEM;
	ret->n = n;
	memcpy(ret->insns, bpf_program__insns(prog), n * sizeof(*ret->insns));
	return 0;
}

int template_load(const struct bpf_program *prog, const struct template_changes *changes,
		  const char *name, int *ret_fd)
{
	_cleanup_(draft_done) struct draft d = {};
	_cleanup_close_ int constants = -EBADF;
	int r = copy_template(prog, &d);

	if (r >= 0)
		r = make_draft(&d, changes, &constants);
	if (r < 0)
		return r;
	return load_draft(prog, changes, &d, name, ret_fd);
}

int template_function(const struct bpf_program *prog, const struct template_map *maps,
		      size_t n_maps, struct bpf_insn **ret, size_t *ret_n)
{
	struct draft d = {};
	int r = copy_template(prog, &d);

	if (r < 0)
		return r;
	replace_maps(&d, maps, n_maps);
	*ret = d.insns;
	*ret_n = d.n;
	return 0;
}

int template_constants(const void *data, size_t size, int *ret_fd)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_RDONLY_PROG);
	_cleanup_close_ int fd = -EBADF;
	uint32_t key = 0;
	int r;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "constants", sizeof(key), size, 1, &opts);
	if (fd < 0)
		return fd;
	r = bpf_map_update_elem(fd, &key, data, BPF_ANY);
	if (r < 0)
		return r;
	r = bpf_map_freeze(fd);
	if (r < 0)
		return r;
	*ret_fd = TAKE_FD(fd);
	return 0;
}
