// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owns the step from a template to a program: copying libbpf's relocated instructions,
 * swapping the maps in them, and loading the result. Knows nothing of what the program does,
 * nor of pins and links.
 *
 * What the copy does not carry is BTF: the new program has no function or line information.
 * Static functions work without; helpers that take a callback (bpf_loop, …) do not.
 */
#include "daemon/engine/template.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>

#include "daemon/engine/program.h"
#include "proto/macro.h"

static bool is_map_load(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW) &&
	       (insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_VALUE);
}

/* A load of 64 bits takes two instructions; the second is no instruction of its own. */
static void replace_maps(struct bpf_insn *insns, size_t n, const struct template_map *maps,
			 size_t n_maps)
{
	for (size_t i = 0; i < n; i++) {
		if (insns[i].code != (BPF_LD | BPF_IMM | BPF_DW))
			continue;
		for (size_t m = 0; is_map_load(&insns[i]) && m < n_maps; m++)
			if (insns[i].imm == maps[m].template_fd) {
				insns[i].imm = maps[m].fd;
				break;
			}
		i++;
	}
}

/*
 * The kernel tells what the template was attached to since 5.19 (attach_btf_id in
 * bpf_prog_info); before, it is looked up by name once more. 0: the type needs none.
 */
static int attach_target(const struct bpf_program *prog, uint32_t *ret)
{
	enum bpf_prog_type type = bpf_program__type(prog);
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);
	const char *target;
	int r;

	*ret = 0;
	if (type != BPF_PROG_TYPE_TRACING && type != BPF_PROG_TYPE_LSM)
		return 0;

	r = bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size);
	if (r < 0)
		return r;
	if (size > offsetof(struct bpf_prog_info, attach_btf_id) && info.attach_btf_id) {
		*ret = info.attach_btf_id;
		return 0;
	}

	target = strchr(bpf_program__section_name(prog), '/');
	if (!target)
		return -EINVAL;
	r = libbpf_find_vmlinux_btf_id(target + 1, bpf_program__expected_attach_type(prog));
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	*ret = (uint32_t)r;
	return 0;
}

/* The kernel refuses names with anything but these. */
static void kernel_name(const char *name, char ret[BPF_OBJ_NAME_LEN])
{
	size_t i;

	for (i = 0; i < BPF_OBJ_NAME_LEN - 1 && name[i]; i++)
		ret[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
	ret[i] = '\0';
}

int template_instantiate(const struct bpf_program *prog, const struct template_map *maps,
			 size_t n_maps, const char *name, int *ret_fd)
{
	_cleanup_free_ struct bpf_insn *insns = NULL;
	LIBBPF_OPTS(bpf_prog_load_opts, opts);
	size_t n = bpf_program__insn_cnt(prog);
	char kname[BPF_OBJ_NAME_LEN];
	uint32_t target;
	int r;

	/* Not loaded (left out, or not yet): its instructions are not relocated. */
	if (bpf_program__fd(prog) < 0)
		return -ENOENT;
	r = attach_target(prog, &target);
	if (r < 0)
		return r;

	insns = calloc(n, sizeof(*insns));
	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(prog), n * sizeof(*insns));
	replace_maps(insns, n, maps, n_maps);
	kernel_name(name ? name : bpf_program__name(prog), kname);

	opts.expected_attach_type = bpf_program__expected_attach_type(prog);
	opts.attach_btf_id = target;
	opts.prog_flags = bpf_program__flags(prog);
	r = program_load(bpf_program__type(prog), kname, insns, n, &opts);
	if (r < 0)
		return r;
	*ret_fd = r;
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
