// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes the registry's files out of the programs in bpf/tree.bpf.c. Knows no paths. */
#include "daemon/engine/tree.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "daemon/cpus.h"
#include "daemon/engine/bpf/tree.h"
#include "daemon/engine/kernel.h"
#include "daemon/engine/template.h"
#include "proto/macro.h"
#include "tree.skel.h"

/* Loaded once, kept for the engine's life. */
static struct tree_bpf *skeleton;

static int load_skeleton(void)
{
	int possible = pp_cpus_possible(), r;
	struct tree_bpf *s;

	if (skeleton)
		return 0;
	if (possible < 0)
		return possible;
	if (!kernel_has_btf())
		return -EOPNOTSUPP;
	s = tree_bpf__open();
	if (!s)
		return -errno;
	r = bpf_map__set_max_entries(s->maps.cpus, possible);
	if (r >= 0)
		r = tree_bpf__load(s);
	if (r < 0) {
		tree_bpf__destroy(s);
		return r;
	}
	skeleton = s;
	return 0;
}

static int program_id(int prog_fd, uint32_t *ret)
{
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(prog_fd, &info, &size) < 0)
		return -errno;
	*ret = info.id;
	return 0;
}

/* Runs find_stats over all programs. *ret stays 0 where the kernel does not let it see. */
static int find_stats(int prog_fd, int64_t *ret)
{
	_cleanup_close_ int link = -EBADF, iter = -EBADF;
	char c;
	int r;

	r = program_id(prog_fd, &skeleton->bss->wanted_program);
	if (r < 0)
		return r;
	skeleton->bss->found_stats_distance = 0;
	link = bpf_link_create(bpf_program__fd(skeleton->progs.find_stats), 0, BPF_TRACE_ITER,
			       NULL);
	if (link < 0)
		return link;
	iter = bpf_iter_create(link);
	if (iter < 0)
		return iter;
	if (read(iter, &c, 1) < 0)
		return -errno;
	*ret = skeleton->bss->found_stats_distance;
	return 0;
}

/* One file: a copy of the program with these maps, linked to run over the elements of one. */
static int create_file(const struct bpf_program *prog, const struct template_map *maps,
		       size_t n_maps, int over_fd, int *ret)
{
	union bpf_iter_link_info target = { .map.map_fd = over_fd };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &target,
		    .iter_info_len = sizeof(target));
	_cleanup_close_ int fd = -EBADF;
	int r;

	r = template_instantiate(prog, maps, n_maps, bpf_program__name(prog), &fd);
	if (r < 0)
		return r;
	r = bpf_link_create(fd, 0, BPF_TRACE_ITER, &opts);
	if (r < 0)
		return r;
	*ret = r;
	return 0;
}

/* The programs' read-only data (format strings are in it, too) with these constants. */
static int create_rodata(const struct tree_constants *constants, int *ret)
{
	size_t size, offset;
	const char *data = bpf_map__initial_value(skeleton->maps.rodata, &size);
	_cleanup_free_ char *copy = malloc(size);

	if (!copy)
		return -ENOMEM;
	offset = (const char *)&skeleton->rodata->constants - data;
	memcpy(copy, data, size);
	memcpy(copy + offset, constants, sizeof(*constants));
	return template_constants(copy, size, ret);
}

static int find_constants(int prog_fd, uint32_t missed_unknown, struct tree_constants *ret)
{
	int64_t distance = 0;
	int r;

	if (prog_fd >= 0) {
		r = find_stats(prog_fd, &distance);
		if (r < 0)
			return r;
		/* Misses that cannot be read are unknown, not 0. */
		missed_unknown |= distance == 0;
	}
	*ret = (struct tree_constants){
		.stats_distance = distance,
		.missed_unknown = missed_unknown,
	};
	return 0;
}

int tree_create(int meta_fd, int rings_fd, int prog_fd, uint32_t missed_unknown,
		struct tree_files *ret)
{
	_cleanup_(tree_files_done) struct tree_files files = { .info = -EBADF, .stat = -EBADF };
	_cleanup_close_ int rodata = -EBADF;
	struct tree_constants constants;
	int r;

	r = load_skeleton();
	if (r >= 0)
		r = find_constants(prog_fd, missed_unknown, &constants);
	if (r >= 0)
		r = create_rodata(&constants, &rodata);
	if (r < 0)
		return r;

	struct template_map maps[] = {
		{ bpf_map__fd(skeleton->maps.rings), rings_fd },
		{ bpf_map__fd(skeleton->maps.meta), meta_fd },
		{ bpf_map__fd(skeleton->maps.rodata), rodata },
	};

	r = create_file(skeleton->progs.info, maps, ARRAY_SIZE(maps), meta_fd, &files.info);
	if (r >= 0)
		r = create_file(skeleton->progs.stat, maps, ARRAY_SIZE(maps),
				bpf_map__fd(skeleton->maps.cpus), &files.stat);
	if (r < 0)
		return r;
	*ret = files;
	files = (struct tree_files){ -EBADF, -EBADF };
	return 0;
}

void tree_files_done(struct tree_files *f)
{
	f->info = close_fd(f->info);
	f->stat = close_fd(f->stat);
}
