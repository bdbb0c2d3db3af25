// SPDX-License-Identifier: LGPL-2.1-or-later
/* The parts of an armed event. See armed.h. */
#include "daemon/engine/event/armed.h"

#include <bpf/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/cpus.h"
#include "proto/macro.h"

void armed_done(struct armed *a)
{
	sides_done(&a->sides);
	close_fd(a->tape);
	close_fd(a->frozen);
	close_fd(a->nowhere);
	*a = (struct armed)ARMED_NONE;
}

/* ── maps ───────────────────────────────────────────────────────────────────────────────── */

static int make_tape(bool swap, int *ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	const struct pp_tape tape = {
		.side = PP_SIDE_A,
		.next = swap ? PP_SIDE_B : PP_SIDE_NONE,
	};
	uint32_t zero = 0;

	*ret = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_tape", 4, sizeof(tape), 1, &opts);
	if (*ret < 0)
		return *ret;
	return bpf_map_update_elem(*ret, &zero, &tape, BPF_ANY) < 0 ? -errno : 0;
}

static int make_maps(struct parts *p, bool swap, struct armed *a)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)p->rings.fd[0]);
	int possible = pp_cpus_possible(), r;

	if (possible < 0)
		return possible;
	r = make_tape(swap, &a->tape);
	if (r >= 0)
		r = a->frozen = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_frozen", 4, 8,
					       (uint32_t)possible, NULL);
	if (r >= 0)
		r = a->nowhere = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "pp_nowhere", 4, 4,
						(uint32_t)possible, &opts);
	return r < 0 ? r : sides_create(&p->programs, &a->sides);
}

int armed_create(struct parts *p, bool swap, struct armed *ret, struct failure *f)
{
	_cleanup_(armed_done) struct armed a = ARMED_NONE;
	int r = make_maps(p, swap, &a);

	if (r < 0)
		return fail(f, -r, "Cannot make the maps for the trigger of '%s': %s.", p->name,
			    strerror(-r));
	*ret = a;
	a = (struct armed)ARMED_NONE;
	return 0;
}

int armed_make_spare(struct parts *p, struct rings *ret, struct failure *f)
{
	struct rings present = p->rings;
	int r;

	p->rings = (struct rings){ .outer = -EBADF };
	p->event.set++;
	r = parts_make_rings(p, f);
	p->event.set--;
	*ret = p->rings;
	p->rings = present;
	if (r >= 0)
		memcpy(ret->generation, present.generation,
		       present.n * sizeof(*present.generation));
	return r;
}

/* ── pins ───────────────────────────────────────────────────────────────────────────────── */

static int open_maps(const char *path, struct parts *p, struct armed *a, struct pp_tape *ret_tape)
{
	uint32_t zero = 0;
	int r;

	r = a->tape = pins_get(path, "tape");
	if (r >= 0)
		r = a->frozen = pins_get(path, "frozen");
	if (r >= 0)
		r = sides_open(&p->programs, path, &a->sides);
	if (r >= 0 && bpf_map_lookup_elem(a->tape, &zero, ret_tape) < 0)
		r = -errno;
	return r;
}

int armed_open(const char *path, struct parts *p, struct armed *ret, struct pp_tape *ret_tape,
	       struct failure *f)
{
	_cleanup_(armed_done) struct armed a = ARMED_NONE;
	int r = open_maps(path, p, &a, ret_tape);

	if (r == -ENOENT && a.tape == -ENOENT)
		return fail(f, ENOENT, "'%s' is not armed.", p->name);
	if (r < 0)
		return fail(f, -r, "Cannot open the trigger's maps of '%s': %s.", p->name,
			    strerror(-r));
	*ret = a;
	a = (struct armed)ARMED_NONE;
	return 0;
}

static int pin_here(void *userdata, int fd, const char *leaf)
{
	return pins_put(userdata, fd, leaf, 0, 0, 0600);
}

static int pin_in_draft(void *userdata, int fd, const char *leaf)
{
	return pins_add(userdata, fd, leaf, 0, 0, 0600);
}

static int pin_all(const struct armed *a, const struct rings *spare,
		   int (*pin)(void *userdata, int fd, const char *leaf), void *userdata)
{
	char leaf[32];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < a->sides.n; i++) {
		sides_leaf(i, leaf);
		r = pin(userdata, a->sides.fd[i], leaf);
	}
	if (r >= 0)
		r = pin(userdata, a->frozen, "frozen");
	if (r >= 0 && spare->outer >= 0)
		r = pin(userdata, spare->outer, "spare");
	return r < 0 ? r : pin(userdata, a->tape, "tape");
}

int armed_pin(const struct armed *a, const struct rings *spare, const char *path)
{
	return pin_all(a, spare, pin_here, (void *)path);
}

int armed_carry(const struct armed *a, const struct rings *spare, struct parts *p,
		struct failure *f)
{
	int r = pin_all(a, spare, pin_in_draft, &p->draft);

	return r < 0 ? fail(f, -r, "Cannot pin the trigger's maps of '%s' again: %s.", p->name,
			    strerror(-r))
		     : 0;
}

/* ── sides ──────────────────────────────────────────────────────────────────────────────── */

int armed_fill(const struct armed *a, struct parts *p, const struct rings *rings, uint32_t side,
	       struct failure *f)
{
	struct recorder_target target;
	int r = parts_target(p, &target, f);

	if (r < 0)
		return r;
	target.fd = rings->outer;
	target.cpu = rings->cpu;
	target.ring_fd = rings->fd;
	target.n = rings->n;
	if (side == PP_SIDE_NONE) {
		target.fd = a->nowhere;
		target.n = 0;
		target.ringless_fd = a->frozen;
	}
	return sides_fill(&a->sides, &p->programs, &p->sources, &target, a->tape, side, f);
}

/* A trigger may write other words at the same time. */
static int set_word(const struct armed *a, size_t offset, uint64_t value, struct failure *f)
{
	char *tape = mmap(NULL, sizeof(struct pp_tape), PROT_READ | PROT_WRITE, MAP_SHARED, a->tape,
			  0);

	if (tape == MAP_FAILED)
		return fail(f, errno, "Cannot map a trigger's tape: %s.", strerror(errno));
	__atomic_store_n((uint64_t *)(tape + offset), value, __ATOMIC_SEQ_CST);
	munmap(tape, sizeof(struct pp_tape));
	return 0;
}

int armed_set_side(const struct armed *a, uint64_t side, struct failure *f)
{
	return set_word(a, offsetof(struct pp_tape, side), side, f);
}

int armed_set_next(const struct armed *a, uint64_t next, struct failure *f)
{
	return set_word(a, offsetof(struct pp_tape, next), next, f);
}
