// SPDX-License-Identifier: LGPL-2.1-or-later
/* The arrays of slots. See programs.h. */
#include "daemon/engine/sources/programs.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <string.h>

#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/perfpersist.bpf.h"

void programs_done(struct programs *p)
{
	for (size_t i = 0; i < p->n_arrays; i++) {
		close_fd(p->arrays[i].fd);
		close_fd(p->arrays[i].tell);
		close_fd(p->arrays[i].user);
		close_fd(p->arrays[i].next);
	}
	for (size_t i = 0; i < p->n_loaded; i++)
		close_fd(p->loaded[i]);
	free(p->arrays);
	free(p->slots);
	free(p->loaded);
	*p = (struct programs){};
}

/* ── assigning slots ────────────────────────────────────────────────────────────────────── */

static int find_array(struct programs *p, const char *class, uint32_t *ret)
{
	struct program_array *more;

	for (uint32_t i = 0; i < p->n_arrays; i++)
		if (!strcmp(p->arrays[i].class, class)) {
			*ret = i;
			return 0;
		}
	more = reallocarray(p->arrays, p->n_arrays + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	p->arrays = more;
	*ret = p->n_arrays;
	p->arrays[p->n_arrays++] = (struct program_array){
		.class = class,
		.fd = -EBADF,
		.tell = -EBADF,
		.user = -EBADF,
		.next = -EBADF,
	};
	return 0;
}

static int make_places(struct programs *p, const struct sources *s)
{
	bool has_user = s->v[0].spec->flags & PP_EVENT_PROGRAM;
	size_t n = has_user ? PP_DECISIONS : s->n;

	if (has_user && s->n != 1)
		return -EINVAL;
	p->slots = calloc(s->n, sizeof(*p->slots));
	p->loaded = calloc(n, sizeof(*p->loaded));
	if (!p->slots || !p->loaded)
		return -ENOMEM;
	p->n = s->n;
	p->n_loaded = n;
	for (size_t i = 0; i < n; i++)
		p->loaded[i] = -EBADF;
	return 0;
}

static int assign_slots(struct programs *p, const struct sources *s)
{
	int r = make_places(p, s);

	for (size_t i = 0; r >= 0 && i < p->n; i++) {
		const struct source *source = &s->v[i];
		struct program_slot *slot = &p->slots[i];
		struct program_array *array;

		r = find_array(p, source->recorder->entry_class(source), &slot->array);
		if (r < 0)
			break;
		array = &p->arrays[slot->array];
		slot->index = source_shares_entry(source) ? source->call.number : array->n;
		array->n = MAX(array->n, slot->index + 1);
	}
	return r;
}

static void array_leaf(size_t i, char ret[32])
{
	snprintf(ret, 32, "progs%zu", i);
}

static void tell_leaf(size_t i, char ret[32])
{
	snprintf(ret, 32, "fire%zu", i);
}

static int create_arrays(struct programs *p, struct pins_draft *draft)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->n_arrays; i++) {
		r = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "pp_progs", 4, 4, p->arrays[i].n, NULL);
		p->arrays[i].fd = r;
	}
	return r < 0 ? r : programs_carry(p, draft);
}

static int carry_user(const struct programs *p, struct pins_draft *draft)
{
	int r = 0;

	if (p->arrays[0].user >= 0)
		r = pins_add(draft, p->arrays[0].user, "program", 0, 0, 0600);
	if (r >= 0 && p->arrays[0].next >= 0)
		r = pins_add(draft, p->arrays[0].next, "next", 0, 0, 0600);
	return r;
}

static int carry_tell(const struct programs *p, struct pins_draft *draft)
{
	char leaf[32];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->n_arrays; i++) {
		tell_leaf(i, leaf);
		if (p->arrays[i].tell >= 0)
			r = pins_add(draft, p->arrays[i].tell, leaf, 0, 0, 0600);
	}
	return r;
}

int programs_carry(const struct programs *p, struct pins_draft *draft)
{
	char leaf[32];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->n_arrays; i++) {
		array_leaf(i, leaf);
		r = pins_add(draft, p->arrays[i].fd, leaf, 0, 0, 0600);
	}
	if (r >= 0)
		r = carry_user(p, draft);
	return r < 0 ? r : carry_tell(p, draft);
}

static int take_user(struct programs *p, const struct user_program *user)
{
	struct program_array *array = &p->arrays[0];

	if (user->fd < 0)
		return 0;
	array->user = fcntl(user->fd, F_DUPFD_CLOEXEC, 3);
	array->next = fcntl(user->next, F_DUPFD_CLOEXEC, 3);
	return array->user < 0 || array->next < 0 ? -errno : 0;
}

static int open_user(struct programs *p, const struct pp_spec *spec, const char *path)
{
	struct program_array *array = &p->arrays[0];

	if (!(spec->flags & PP_EVENT_PROGRAM))
		return 0;
	array->user = pins_get(path, "program");
	if (array->user < 0)
		return array->user;
	array->next = pins_get(path, "next");
	return MIN(array->next, 0);
}

static int open_tell(struct program_array *array, const char *path, size_t i)
{
	char leaf[32];
	int fd;

	tell_leaf(i, leaf);
	fd = pins_get(path, leaf);
	if (fd < 0 && fd != -ENOENT) /* that: it is no trigger */
		return fd;
	array->tell = fd;
	return 0;
}

static int open_arrays(struct programs *p, const char *path)
{
	char leaf[32];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->n_arrays; i++) {
		array_leaf(i, leaf);
		r = pins_get(path, leaf);
		p->arrays[i].fd = r;
		if (r >= 0)
			r = open_tell(&p->arrays[i], path, i);
	}
	return r;
}

int programs_create(const struct sources *s, const struct user_program *user,
		    struct pins_draft *draft, struct programs *ret, struct failure *f)
{
	_cleanup_(programs_done) struct programs p = {};
	const struct pp_spec *spec = s->v[0].spec;
	int r = assign_slots(&p, s);

	if (r >= 0)
		r = take_user(&p, user);
	if (r >= 0)
		r = create_arrays(&p, draft);
	if (r < 0)
		return fail(f, -r, "Cannot make the slots for the programs of '%s/%s': %s.",
			    spec->ns, spec->name, strerror(-r));
	*ret = p;
	p = (struct programs){};
	return 0;
}

/* The sources of an array have one class. */
static int make_tell(struct program_array *array, const struct source *source,
		     const struct fire *fire)
{
	_cleanup_close_ int program = -EBADF;
	struct recorder_class class;
	uint32_t zero = 0;
	int r = source->recorder->class(source, &class);

	if (r >= 0)
		r = fire_load_tell(fire, &class, &program);
	if (r >= 0)
		r = array->tell = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "pp_tell", 4, 4, 1, NULL);
	if (r >= 0 && bpf_map_update_elem(array->tell, &zero, &program, BPF_ANY) < 0)
		r = -errno;
	return r;
}

int programs_make_tell(struct programs *p, const struct sources *s, const struct fire *fire,
		       struct pins_draft *draft, struct failure *f)
{
	const struct pp_spec *spec = s->v[0].spec;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->n; i++) {
		struct program_array *array = &p->arrays[p->slots[i].array];

		if (array->tell < 0)
			r = make_tell(array, &s->v[i], fire);
	}
	if (r >= 0)
		r = carry_tell(p, draft);
	return r < 0 ? fail(f, -r, "Cannot make the program that tells of the trigger '%s/%s': %s.",
			    spec->ns, spec->name, strerror(-r))
		     : 0;
}

int programs_open(const struct sources *s, const char *path, struct programs *ret,
		  struct failure *f)
{
	_cleanup_(programs_done) struct programs p = {};
	int r = assign_slots(&p, s);

	if (r >= 0)
		r = open_arrays(&p, path);
	if (r >= 0)
		r = open_user(&p, s->v[0].spec, path);
	if (r < 0)
		return fail(f, -r, "Cannot open the slots of the programs of '%s': %s.", path,
			    strerror(-r));
	*ret = p;
	p = (struct programs){};
	return 0;
}

/* Whether that is the array of all its sources: not larger, not smaller. */
static bool is_array(const char *path, size_t i, uint32_t n)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);
	_cleanup_close_ int fd = -EBADF;
	char leaf[32];

	array_leaf(i, leaf);
	fd = pins_get(path, leaf);
	return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && info.max_entries == n;
}

bool programs_fit(const struct sources *s, const char *path)
{
	_cleanup_(programs_done) struct programs p = {};
	size_t i = 0;

	if (assign_slots(&p, s) < 0)
		return true;
	while (i < p.n_arrays && is_array(path, i, p.arrays[i].n))
		i++;
	return i == p.n_arrays;
}

struct recorder_slot programs_slot(const struct programs *p, size_t i)
{
	return (struct recorder_slot){
		.fd = p->arrays[p->slots[i].array].fd,
		.index = p->slots[i].index,
	};
}

/* ── emptying them ──────────────────────────────────────────────────────────────────────── */

static int empty_array(int fd)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	for (uint32_t i = 0; i < info.max_entries; i++)
		if (bpf_map_delete_elem(fd, &i) < 0 && errno != ENOENT)
			return -errno;
	return 0;
}

int programs_forget_at(const char *path)
{
	_cleanup_close_ int fd = pins_get(path, "next");

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	return empty_array(fd);
}

void programs_forget(const struct programs *p)
{
	if (p->n_arrays > 0 && p->arrays[0].next >= 0 && empty_array(p->arrays[0].next) < 0)
		log_error(
			"Cannot take recording programs out of the map of an event's creator: %s.",
			strerror(errno));
}

int programs_stop_former(const char *path)
{
	_cleanup_close_ int fd = pins_get(path, PINS_FORMER "progs");

	return fd >= 0 ? empty_array(fd) : fd == -ENOENT ? 0 : fd;
}

/* Empties any slot, without knowing the sources. */
int programs_stop(const char *path)
{
	char leaf[32];
	int r = 0;

	for (size_t i = 0; r >= 0; i++) {
		_cleanup_close_ int fd = -EBADF;

		array_leaf(i, leaf);
		fd = pins_get(path, leaf);
		if (fd == -ENOENT)
			break;
		r = fd < 0 ? fd : empty_array(fd);
	}
	return r < 0 ? r : programs_forget_at(path);
}
