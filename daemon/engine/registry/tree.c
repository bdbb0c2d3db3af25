// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes the registry's files from the programs in bpf/tree.bpf.h. Knows no event's path. */
#include "daemon/engine/registry/tree.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>

#include "daemon/engine/emit/template.h"
#include "daemon/engine/registry/cpu-states.h"
#include "daemon/engine/registry/iterators.h"
#include "proto/macro.h"

static const struct iterators_bpf *skeleton;

/* Runs find_stats over all programs of the machine, once for all wanted ones. */
static int run_find_stats(void)
{
	_cleanup_close_ int link = -EBADF, iter = -EBADF;
	char c;

	link = bpf_link_create(bpf_program__fd(skeleton->progs.find_stats), 0, BPF_TRACE_ITER,
			       NULL);
	if (link < 0)
		return link;
	iter = bpf_iter_create(link);
	if (iter < 0)
		return iter;
	return read(iter, &c, 1) < 0 ? -errno : 0;
}

static void forget_wanted(const uint32_t *programs, size_t n)
{
	int fd = bpf_map__fd(skeleton->maps.wanted);

	for (size_t i = 0; i < n; i++)
		bpf_map_delete_elem(fd, &programs[i]);
}

/* ret: a distance for each program; 0: the kernel hides it. */
static int find_stats(const uint32_t *programs, size_t n, int64_t *ret)
{
	int fd = bpf_map__fd(skeleton->maps.wanted), r = 0;
	int64_t none = 0;

	for (size_t i = 0; r >= 0 && i < n; i++)
		if (bpf_map_update_elem(fd, &programs[i], &none, BPF_ANY) < 0)
			r = -errno;
	if (r >= 0)
		r = run_find_stats();
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (bpf_map_lookup_elem(fd, &programs[i], &ret[i]) < 0)
			r = -errno;
	forget_wanted(programs, n);
	return r;
}

/* One file: a copy of the program with these maps, linked to iterate over one task (6.1). There need
 * be no such task. */
static int create_file(const struct bpf_program *prog, const struct template_changes *changes,
		       int *ret)
{
	union bpf_iter_link_info one = { .task.tid = 1 };
	LIBBPF_OPTS(bpf_link_create_opts, opts, .iter_info = &one, .iter_info_len = sizeof(one));
	_cleanup_close_ int fd = -EBADF;
	int r;

	r = template_load(prog, changes, bpf_program__name(prog), &fd);
	if (r < 0)
		return r;
	r = bpf_link_create(fd, 0, BPF_TRACE_ITER, &opts);
	if (r < 0)
		return r;
	*ret = r;
	return 0;
}

/* The programs' read-only data, which includes format strings, with these constants. */
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

/* Counts that cannot be read are unknown, not 0. *ret_fd stays -EBADF if there are none to read. */
static int find_distances(const uint32_t *programs, size_t n, struct tree_constants *constants,
			  int *ret_fd)
{
	_cleanup_free_ int64_t *distances = NULL;
	int r;

	if (n > TREE_PROGRAMS_MAX)
		constants->missed_unknown = 1;
	if (n == 0 || constants->missed_unknown)
		return 0;
	distances = calloc(n, sizeof(*distances));
	if (!distances)
		return -ENOMEM;
	r = find_stats(programs, n, distances);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		constants->missed_unknown |= distances[i] == 0;
	if (constants->missed_unknown)
		return 0;
	constants->n_programs = n;
	return template_constants(distances, n * sizeof(*distances), ret_fd);
}

/* Instead of a missing map the template keeps its own. */
static struct template_map map_or_template(const struct bpf_map *map, int fd)
{
	return (struct template_map){ .template_fd = bpf_map__fd(map),
				      .fd = fd < 0 ? bpf_map__fd(map) : fd };
}

static int create_files(int meta_fd, int rings_fd, int ringless_fd, int earlier_fd, int rodata,
			int distances, struct tree_files *ret)
{
	const struct template_map maps[] = {
		{ .template_fd = bpf_map__fd(skeleton->maps.rings), .fd = rings_fd },
		{ .template_fd = bpf_map__fd(skeleton->maps.meta), .fd = meta_fd },
		{ .template_fd = bpf_map__fd(skeleton->maps.rodata), .fd = rodata },
		map_or_template(skeleton->maps.distances, distances),
		map_or_template(skeleton->maps.ringless, ringless_fd),
		map_or_template(skeleton->maps.earlier, earlier_fd),
		map_or_template(skeleton->maps.states, cpu_states_fd()),
	};
	struct template_changes changes = { .maps = maps, .n_maps = ARRAY_SIZE(maps) };
	int r;

	r = create_file(skeleton->progs.info, &changes, &ret->info);
	if (r < 0)
		return r;
	changes.object = skeleton->obj;
	changes.callback = "stat_cpu";
	return create_file(skeleton->progs.stat, &changes, &ret->stat);
}

int tree_create(const struct pp_event *event, uid_t broker, int meta_fd, int rings_fd,
		int ringless_fd, int earlier_fd, const uint32_t *programs, size_t n,
		struct tree_files *ret)
{
	_cleanup_(tree_files_done) struct tree_files files = { .info = -EBADF, .stat = -EBADF };
	struct tree_constants constants = {
		.missed_unknown = event->missed_unknown == PP_MISSED_UNKNOWN,
		.missed_at_least = event->missed_unknown == PP_MISSED_AT_LEAST,
		.set = event->set,
		.id = event->origin,
	};
	_cleanup_close_ int rodata = -EBADF, distances = -EBADF;
	int r, tasks;

	r = iterators_load(broker, &skeleton, &tasks);
	if (r >= 0)
		r = find_distances(programs, n, &constants, &distances);
	if (r >= 0)
		r = create_rodata(&constants, &rodata);
	if (r >= 0)
		r = create_files(meta_fd, rings_fd, ringless_fd, earlier_fd, rodata, distances,
				 &files);
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
