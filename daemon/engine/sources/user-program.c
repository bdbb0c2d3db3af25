// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs of events' creators. See user-program.h. */
#include "daemon/engine/sources/user-program.h"

#include <bpf/bpf.h>
#include <string.h>

#include "daemon/cpus.h"
#include "proto/macro.h"
#include "proto/perfpersist.bpf.h"

#define MAP_PIN "map-"

void user_program_done(struct user_program *p)
{
	close_fd(p->fd);
	close_fd(p->next);
	for (uint32_t i = 0; i < p->n_maps; i++)
		close_fd(p->maps[i]);
	*p = (struct user_program)USER_PROGRAM_NONE;
}

static int program_info(int fd, struct bpf_prog_info *ret)
{
	uint32_t size = sizeof(*ret);

	return bpf_obj_get_info_by_fd(fd, ret, &size) < 0 ? -errno : 0;
}

static int map_info(int fd, struct bpf_map_info *ret)
{
	uint32_t size = sizeof(*ret);

	*ret = (struct bpf_map_info){};
	return bpf_obj_get_info_by_fd(fd, ret, &size) < 0 ? -errno : 0;
}

/* ── taking it ──────────────────────────────────────────────────────────────────────────── */

static bool is_next(const struct bpf_map_info *map)
{
	return map->type == BPF_MAP_TYPE_PROG_ARRAY && map->max_entries == PP_DECISIONS &&
	       !strcmp(map->name, PP_NEXT);
}

/* Where the kernel has the ids of programs, a slot in use returns one. */
static bool is_in_use(int next)
{
	for (uint32_t i = 0, id; i < PP_DECISIONS; i++)
		if (bpf_map_lookup_elem(next, &i, &id) == 0)
			return true;
	return false;
}

static int add_map(struct user_program *p, uint32_t id, unsigned cpus)
{
	_cleanup_close_ int fd = bpf_map_get_fd_by_id(id);
	struct bpf_map_info info;
	uint64_t memory;
	int r;

	if (fd < 0)
		return fd;
	r = map_info(fd, &info);
	if (r < 0)
		return r;
	memory = pp_user_map_memory(info.type, info.key_size, info.value_size, info.max_entries,
				    cpus);
	p->memory = memory > UINT64_MAX - p->memory ? UINT64_MAX : p->memory + memory;
	if (is_next(&info) && p->next < 0)
		p->next = TAKE_FD(fd);
	else
		p->maps[p->n_maps++] = TAKE_FD(fd);
	return 0;
}

static int add_maps(struct user_program *p, const uint32_t *ids, uint32_t n)
{
	int cpus = pp_cpus_possible(), r = MIN(cpus, 0);

	for (uint32_t i = 0; r >= 0 && i < n; i++)
		r = add_map(p, ids[i], (unsigned)cpus);
	return r;
}

static int check_maps(const struct user_program *p, const char *name, struct failure *f)
{
	if (p->memory > PP_USER_MEMORY_MAX)
		return fail(f, EDQUOT,
			    "The maps of program '%s' are too large together, or one is of a type "
			    "that can grow: %llu MiB are allowed.",
			    name, PP_USER_MEMORY_MAX >> 20);
	if (p->next < 0)
		return fail(f, EINVAL,
			    "Program '%s' has no map '" PP_NEXT "' of %u slots, so it cannot go on "
			    "to a recorder; define it with PP_PROGRAM() of perfpersist.bpf.h.",
			    name, PP_DECISIONS);
	if (is_in_use(p->next))
		return fail(f, EBUSY,
			    "Program '%s' decides for another event already; load it once more for "
			    "this one.",
			    name);
	return 0;
}

static int open_maps(struct user_program *p, const char *name, struct failure *f)
{
	uint32_t ids[PP_USER_MAPS_MAX];
	struct bpf_prog_info info = { .nr_map_ids = PP_USER_MAPS_MAX,
				      .map_ids = (uint64_t)(uintptr_t)ids };
	int r = program_info(p->fd, &info);

	if (r >= 0 && info.nr_map_ids > PP_USER_MAPS_MAX)
		return fail(f, EDQUOT, "Program '%s' has %u maps; %u are allowed.", name,
			    info.nr_map_ids, PP_USER_MAPS_MAX);
	if (r >= 0)
		r = add_maps(p, ids, info.nr_map_ids);
	if (r < 0)
		return fail(f, -r, "Cannot open the maps of program '%s': %s.", name, strerror(-r));
	return check_maps(p, name, f);
}

int user_program_open(uint32_t id, uint32_t creator, struct user_program *ret, struct failure *f)
{
	_cleanup_(user_program_done) struct user_program p = USER_PROGRAM_NONE;
	struct bpf_prog_info info = {};
	int r = p.fd = bpf_prog_get_fd_by_id(id);

	if (r >= 0)
		r = program_info(p.fd, &info);
	if (r == -ENOENT)
		return fail(f, ENOENT,
			    "There is no BPF program with id %u; it must stay loaded until the "
			    "event is created.",
			    id);
	if (r < 0)
		return fail(f, -r, "Cannot open the BPF program with id %u: %s.", id, strerror(-r));
	if (info.created_by_uid != creator)
		return fail(f, EACCES,
			    "User %u has not loaded the BPF program with id %u, and may not give "
			    "it to an event.",
			    creator, id);
	r = open_maps(&p, info.name, f);
	if (r < 0)
		return r;
	*ret = p;
	p = (struct user_program)USER_PROGRAM_NONE;
	return 0;
}

/* ── its type ───────────────────────────────────────────────────────────────────────────── */

bool user_program_wants_generic(const struct user_program *p)
{
	struct bpf_prog_info info = {};

	return p->fd >= 0 && program_info(p->fd, &info) >= 0 &&
	       info.type == BPF_PROG_TYPE_TRACEPOINT;
}

static const char *section_of(const struct bpf_prog_info *info)
{
	switch (info->type) {
	case BPF_PROG_TYPE_PERF_EVENT:
		return "perf_event";
	case BPF_PROG_TYPE_TRACEPOINT:
		return "tracepoint";
	case BPF_PROG_TYPE_TRACING:
		return "tp_btf";
	case BPF_PROG_TYPE_KPROBE:
		return "kprobe";
	default:
		return "another";
	}
}

int user_program_check(int fd, int other, const struct source *source, struct failure *f)
{
	struct bpf_prog_info mine = {}, its = {};
	char text[PP_TP_NAME_SIZE * 2];
	int r = program_info(fd, &mine);

	if (r >= 0)
		r = program_info(other, &its);
	source_text(source, text, sizeof(text));
	if (r < 0)
		return fail(f, -r, "Cannot look at the program for '%s': %s.", text, strerror(-r));
	if (mine.type != its.type)
		return fail(f, EINVAL,
			    "Program '%s' is of section %s; '%.100s' needs one of section %s%s.",
			    mine.name, section_of(&mine), text,
			    its.type == BPF_PROG_TYPE_TRACING ? "tracepoint or " : "",
			    section_of(&its));
	if (mine.attach_btf_id != its.attach_btf_id ||
	    mine.attach_btf_obj_id != its.attach_btf_obj_id)
		return fail(f, EINVAL,
			    "Program '%s' is for another tracepoint; '%.100s' needs one of section "
			    "tp_btf/%s.",
			    mine.name, text, source->tp ? source->tp->name : "");
	return 0;
}

/* ── pins ───────────────────────────────────────────────────────────────────────────────── */

/* bpffs refuses dots: those of .rodata and the like. Names may be equal, as the kernel cuts them. */
static int pin_map(int fd, struct pins_draft *draft)
{
	struct bpf_map_info info;
	char leaf[64];
	int r = map_info(fd, &info);

	if (r < 0)
		return r;
	snprintf(leaf, sizeof(leaf), MAP_PIN "%s", info.name);
	for (char *c = leaf; *c; c++)
		if (*c == '.')
			*c = '_';
	r = pins_add(draft, fd, leaf, 0, 0, 0600);
	if (r != -EEXIST)
		return r;
	snprintf(leaf + strlen(leaf), sizeof(leaf) - strlen(leaf), "-%u", info.id);
	return pins_add(draft, fd, leaf, 0, 0, 0600);
}

int user_program_pin_maps(const struct user_program *p, struct pins_draft *draft)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < p->n_maps; i++)
		r = pin_map(p->maps[i], draft);
	return r;
}

static int carry_map(const char *path, const char *leaf, void *userdata)
{
	_cleanup_close_ int fd = -EBADF;

	if (strncmp(leaf, MAP_PIN, strlen(MAP_PIN)) != 0)
		return 0;
	fd = pins_get(path, leaf);
	return fd < 0 ? fd : pins_add(userdata, fd, leaf, 0, 0, 0600);
}

int user_program_carry_maps(const char *path, struct pins_draft *draft)
{
	return pins_foreach_leaf(path, carry_map, draft);
}
