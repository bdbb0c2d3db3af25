// SPDX-License-Identifier: LGPL-2.1-or-later
/* The recording programs themselves: loading them, and putting them into slots. See programs.h. */
#include "daemon/engine/sources/programs.h"

#include <bpf/bpf.h>
#include <sys/resource.h>

#include "daemon/trigger.h"
#include "proto/macro.h"
#include "proto/perfpersist.bpf.h"

#define SPARE_FDS 1024 /* beside the programs: rings, links, the engine's others */

/* ── recording programs ─────────────────────────────────────────────────────────────────── */

/* Where recording program k belongs. */
struct place {
	size_t source;
	uint32_t array;
	struct recorder_slot slot;
};

static struct place place_of(const struct programs *p, size_t k)
{
	if (p->arrays[0].next >= 0)
		return (struct place){ .slot = { p->arrays[0].next, (uint32_t)k } };
	return (struct place){ k, p->slots[k].array, programs_slot(p, k) };
}

/* How many recording programs are behind the array's slots. */
static uint32_t array_programs(const struct program_array *array)
{
	return array->next >= 0 ? PP_DECISIONS : array->n;
}

static int load_idle(const struct source *source, int *ret_fd);

/* Decision k of the creator's program. Without a record, only a counter that counts itself what is
 * missed has to know of the occurrence. */
static int load_decided(const struct program_array *array, const struct source *source, size_t k,
			struct recorder_target *target, int *ret_fd, struct failure *f)
{
	if (array->next < 0) {
		target->shared = NULL;
		return source->recorder->load(source, target, ret_fd, f);
	}
	if (k == PP_DROP && !source->recorder->counts_missed)
		return load_idle(source, ret_fd);
	target->drops = k == PP_DROP;
	if (k != PP_FIRE) {
		target->fire = NULL;
		target->tell_fd = NULL;
	}
	return source->recorder->load(source, target, ret_fd, f);
}

/* ── loading and filling ────────────────────────────────────────────────────────────────── */

static int load_program(const struct programs *p, const struct sources *s, size_t k,
			const struct recorder_target *target, int *ret_fd, struct failure *f)
{
	const struct place place = place_of(p, k);
	const struct program_array *array = &p->arrays[place.array];
	const struct source *source = &s->v[place.source];
	struct recorder_target firing = *target;
	char text[PP_TP_NAME_SIZE * 2];
	int r;

	firing.tell_fd = array->tell < 0 ? NULL : &array->tell;
	r = load_decided(array, source, k, &firing, ret_fd, f);

	if (r >= 0)
		return 0;
	source_text(source, text, sizeof(text));
	if (r == -EMFILE || r == -ENFILE)
		return fail(f, -r,
			    "The engine has no descriptors left for the programs of '%s' (%s); "
			    "raise its limit (LimitNOFILE= in its unit, or ulimit -Hn).",
			    text, strerror(-r));
	return fail(f, -r,
		    "The kernel refuses the program that would record '%s' (%s); "
		    "PERFPERSIST_DEBUG=1 in the engine's environment shows why.",
		    text, strerror(-r));
}

/* As far as allowed; running out of descriptors fails later, with a message. */
static void make_room(size_t n)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= n + SPARE_FDS)
		return;
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)(n + SPARE_FDS));
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Loads all, or only those that `wanted` says; programs of one source may share a map. */
static int load_all(struct programs *p, const struct sources *s,
		    const struct recorder_target *target,
		    bool (*wanted)(const struct recorder *recorder), struct failure *f)
{
	_cleanup_close_ int shared = -EBADF;
	struct recorder_target sharing = *target;
	int r = 0;

	sharing.shared = &shared;
	make_room(p->n_loaded);
	for (size_t k = 0; r >= 0 && k < p->n_loaded; k++)
		if (!wanted || wanted(s->v[place_of(p, k).source].recorder))
			r = load_program(p, s, k, &sharing, &p->loaded[k], f);
	return r;
}

int programs_load(struct programs *p, const struct sources *s, const struct recorder_target *target,
		  struct failure *f)
{
	return load_all(p, s, target, NULL, f);
}

static bool is_direct(const struct recorder *recorder)
{
	return recorder->is_direct;
}

int programs_load_direct(struct programs *p, const struct sources *s,
			 const struct recorder_target *target, struct failure *f)
{
	return load_all(p, s, target, is_direct, f);
}

static int fill_one(struct programs *p, size_t k)
{
	struct recorder_slot slot = place_of(p, k).slot;

	if (bpf_map_update_elem(slot.fd, &slot.index, &p->loaded[k], BPF_ANY) < 0)
		return -errno;
	p->loaded[k] = close_fd(p->loaded[k]);
	return 0;
}

/* The creator's program comes in front when all that it can go on to is there. */
static int fill_user(const struct programs *p)
{
	const struct program_array *array = &p->arrays[0];
	uint32_t zero = 0;

	if (array->user < 0)
		return 0;
	return bpf_map_update_elem(array->fd, &zero, &array->user, BPF_ANY) < 0 ? -errno : 0;
}

int programs_fill(struct programs *p)
{
	int r = 0;

	for (size_t k = 0; r >= 0 && k < p->n_loaded; k++)
		if (p->loaded[k] >= 0)
			r = fill_one(p, k);
	return r < 0 ? r : fill_user(p);
}

/* The first program has the class of all. */
static int start_one(struct programs *p, const struct sources *s, size_t k,
		     const struct recorder_target *target, struct failure *f)
{
	const struct source *source = &s->v[place_of(p, k).source];
	char text[PP_TP_NAME_SIZE * 2];
	int r = load_program(p, s, k, target, &p->loaded[k], f);

	if (r >= 0 && k == 0 && p->arrays[0].user >= 0)
		r = user_program_check(p->arrays[0].user, p->loaded[k], source, f);
	if (r < 0)
		return r;
	r = fill_one(p, k);
	if (r >= 0 && k + 1 == p->n_loaded)
		r = fill_user(p);
	source_text(source, text, sizeof(text));
	return r < 0 ? fail(f, -r, "Cannot put the program of '%s' into its slot: %s.", text,
			    strerror(-r))
		     : 0;
}

int programs_start(struct programs *p, const struct sources *s,
		   const struct recorder_target *target, struct failure *f)
{
	_cleanup_close_ int shared = -EBADF;
	struct recorder_target sharing = *target;
	int r = 0;

	sharing.shared = &shared;
	for (size_t k = 0; k < p->n_loaded; k++)
		p->loaded[k] = close_fd(p->loaded[k]);
	for (size_t k = 0; r >= 0 && k < p->n_loaded; k++)
		r = start_one(p, s, k, &sharing, f);
	return r;
}

/* ── sides ──────────────────────────────────────────────────────────────────────────────── */

void sides_done(struct sides *sides)
{
	for (size_t i = 0; i < sides->n; i++)
		close_fd(sides->fd[i]);
	free(sides->fd);
	*sides = (struct sides){};
}

static int make_sides(const struct programs *p, struct sides *ret,
		      int (*get)(const struct programs *p, size_t i, const char *path),
		      const char *path)
{
	_cleanup_(sides_done) struct sides sides = { .fd = calloc(p->n_arrays, sizeof(int)) };

	if (!sides.fd)
		return -ENOMEM;
	for (; sides.n < p->n_arrays; sides.n++) {
		int fd = get(p, sides.n, path);

		if (fd < 0)
			return fd;
		sides.fd[sides.n] = fd;
	}
	*ret = sides;
	sides = (struct sides){};
	return 0;
}

static int create_one(const struct programs *p, size_t i, const char *path _unused_)
{
	return bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "pp_sides", 4, 4,
			      array_programs(&p->arrays[i]) * PP_SIDES, NULL);
}

void sides_leaf(size_t i, char ret[32])
{
	snprintf(ret, 32, "sides%zu", i);
}

static int open_one(const struct programs *p _unused_, size_t i, const char *path)
{
	char leaf[32];

	sides_leaf(i, leaf);
	return pins_get(path, leaf);
}

int sides_create(const struct programs *p, struct sides *ret)
{
	return make_sides(p, ret, create_one, NULL);
}

int sides_open(const struct programs *p, const char *path, struct sides *ret)
{
	return make_sides(p, ret, open_one, path);
}

/* Loads recording program k for the guard's side. */
static int load_guarded(const struct sides *sides, const struct programs *p,
			const struct sources *s, size_t k, const struct recorder_target *target,
			struct recorder_guard guard, int *ret_fd, struct failure *f)
{
	const struct place place = place_of(p, k);
	struct recorder_target guarded = *target;

	guard.sides_fd = sides->fd[place.array];
	guard.base = place.slot.index * PP_SIDES;
	guarded.guard = &guard;
	return load_program(p, s, k, &guarded, ret_fd, f);
}

int sides_fill(const struct sides *sides, const struct programs *p, const struct sources *s,
	       const struct recorder_target *target, const struct recorder_guard *guard,
	       struct failure *f)
{
	_cleanup_close_ int shared = -EBADF;
	struct recorder_target sharing = *target;
	int r = 0;

	sharing.shared = &shared;
	for (size_t k = 0; r >= 0 && k < p->n_loaded; k++) {
		const struct place place = place_of(p, k);
		uint32_t slot = place.slot.index * PP_SIDES + guard->side;
		_cleanup_close_ int fd = -EBADF;

		r = load_guarded(sides, p, s, k, &sharing, *guard, &fd, f);
		if (r < 0)
			return r;
		if (bpf_map_update_elem(sides->fd[place.array], &slot, &fd, BPF_ANY) < 0)
			return fail(f, errno, "Cannot put a program of '%s/%s' into its slot: %s.",
				    s->v[0].spec->ns, s->v[0].spec->name, strerror(errno));
	}
	return r;
}

int programs_load_guarded(struct programs *p, const struct sources *s,
			  const struct recorder_target *target, const struct sides *sides,
			  const struct recorder_guard *guard, struct failure *f)
{
	_cleanup_close_ int shared = -EBADF;
	struct recorder_target sharing = *target;
	int r = 0;

	sharing.shared = &shared;
	make_room(p->n_loaded);
	for (size_t k = 0; r >= 0 && k < p->n_loaded; k++)
		r = load_guarded(sides, p, s, k, &sharing, *guard, &p->loaded[k], f);
	return r;
}

/* ── pausing ────────────────────────────────────────────────────────────────────────────── */

/*
 * A program of the right kind that does nothing: another entry, whose slot is always empty. Where
 * jumps into slots are compiled in (x86), the kernel waits for a grace period when a slot becomes
 * empty, but not when its program is replaced.
 */
static int load_idle(const struct source *source, int *ret_fd)
{
	struct recorder_slot nowhere = { .index = 0 };
	int r;

	nowhere.fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "pp_nowhere", 4, 4, 1, NULL);
	if (nowhere.fd < 0)
		return nowhere.fd;
	r = source->recorder->entry(source, &nowhere, ret_fd);
	close_fd(nowhere.fd);
	return r;
}

static int idle_array(struct programs *p, const struct sources *s, uint32_t array)
{
	_cleanup_close_ int idle = -EBADF;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->n; i++) {
		struct recorder_slot slot = programs_slot(p, i);

		if (p->slots[i].array != array)
			continue;
		if (idle < 0)
			r = load_idle(&s->v[i], &idle);
		if (r >= 0 && bpf_map_update_elem(slot.fd, &slot.index, &idle, BPF_ANY) < 0)
			r = -errno;
	}
	return r;
}

/* So that no recording program, and no ring, stays behind the creator's program. */
static int idle_decisions(const struct programs *p, const struct sources *s)
{
	_cleanup_close_ int idle = -EBADF;
	int r = load_idle(&s->v[0], &idle);

	for (uint32_t k = 0; r >= 0 && k < PP_DECISIONS; k++)
		if (bpf_map_update_elem(p->arrays[0].next, &k, &idle, BPF_ANY) < 0)
			r = -errno;
	return r;
}

int programs_idle(struct programs *p, const struct sources *s)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->n_arrays; i++)
		r = idle_array(p, s, i);
	return r < 0 || p->arrays[0].next < 0 ? r : idle_decisions(p, s);
}

/* ── other counters ─────────────────────────────────────────────────────────────────────── */

void former_done(struct former *f)
{
	f->fd = close_fd(f->fd);
	f->idle = close_fd(f->idle);
}

int programs_renew(struct programs *p, const struct sources *s, struct former *ret)
{
	_cleanup_(former_done) struct former former = FORMER_NONE;
	struct program_array *array;
	size_t i = 0;
	int r;

	while (i < p->n && !s->v[i].recorder->per_cpu)
		i++;
	if (i == p->n)
		return -ENOENT;
	r = load_idle(&s->v[i], &former.idle);
	if (r < 0)
		return r;
	array = &p->arrays[p->slots[i].array];
	r = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "pp_progs", 4, 4, array->n, NULL);
	if (r < 0)
		return r;
	former.fd = array->fd;
	former.n = array->n;
	array->fd = r;
	*ret = former;
	former = (struct former)FORMER_NONE;
	return 0;
}

int programs_idle_former(const struct former *f)
{
	for (uint32_t i = 0; i < f->n; i++)
		if (bpf_map_update_elem(f->fd, &i, &f->idle, BPF_ANY) < 0)
			return -errno;
	return 0;
}
