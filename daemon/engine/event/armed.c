// SPDX-License-Identifier: LGPL-2.1-or-later
/* The parts of an armed event. See armed.h. */
#include "daemon/engine/event/armed.h"

#include <bpf/bpf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/cpus.h"
#include "daemon/engine/registry/wakeups.h"
#include "proto/macro.h"

void armed_done(struct armed *a)
{
	sides_done(&a->sides);
	close_fd(a->tape);
	close_fd(a->frozen);
	close_fd(a->firings);
	close_fd(a->sending);
	*a = (struct armed)ARMED_NONE;
}

/* ── maps ───────────────────────────────────────────────────────────────────────────────── */

static int make_tape(uint64_t id, bool swap, int *ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	const struct pp_tape tape = {
		.state.side = PP_SIDE_A,
		.state.next = swap ? PP_SIDE_B : PP_SIDE_NONE,
		.id = id,
	};
	uint32_t zero = 0;

	*ret = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_tape", 4, sizeof(tape), 1, &opts);
	if (*ret < 0)
		return *ret;
	return bpf_map_update_elem(*ret, &zero, &tape, BPF_ANY) < 0 ? -errno : 0;
}

static int make_maps(struct parts *p, bool swap, struct armed *a)
{
	int possible = pp_cpus_possible(), r;

	if (possible < 0)
		return possible;
	r = make_tape(p->event.id, swap, &a->tape);
	if (r >= 0)
		r = a->frozen = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_frozen", 4, 8,
					       (uint32_t)possible, NULL);
	return r < 0 ? r : sides_create(&p->programs, &a->sides);
}

int armed_create(struct parts *p, bool swap, struct armed *ret, struct failure *f)
{
	_cleanup_(armed_done) struct armed a = ARMED_NONE;
	int r = make_maps(p, swap, &a);

	if (r < 0)
		return fail(f, -r, "Cannot make the maps for the trigger of '%s': %s.", p->name,
			    strerror(-r));
	a.swap = swap;
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

/* What tells the broker of the ends of windows. */
static int open_firings(struct armed *a, uid_t broker)
{
	int r = a->firings = firings_fd(broker);

	return r < 0 ? r : (a->sending = sending_fd());
}

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
	if (r >= 0 && ret_tape->windows)
		r = open_firings(a, p->broker);
	a->swap = ret_tape->state.side != PP_SIDE_NONE && ret_tape->state.next != PP_SIDE_NONE;
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
	return r;
}

int armed_pin(const struct armed *a, const struct rings *spare, const char *path)
{
	return pin_all(a, spare, pin_here, (void *)path);
}

int armed_pin_tape(const struct armed *a, const char *path)
{
	return pin_here((void *)path, a->tape, "tape");
}

int armed_carry(const struct armed *a, const struct rings *spare, struct parts *p,
		struct failure *f)
{
	int r = pin_all(a, spare, pin_in_draft, &p->draft);

	if (r >= 0)
		r = pin_in_draft(&p->draft, a->tape, "tape");
	return r < 0 ? fail(f, -r, "Cannot pin the trigger's maps of '%s' again: %s.", p->name,
			    strerror(-r))
		     : 0;
}

/* ── sides ──────────────────────────────────────────────────────────────────────────────── */

static uint32_t base_of(uint32_t side)
{
	return side >= PP_SIDE_A_CLOSING ? side - PP_SIDE_A_CLOSING : side;
}

static struct recorder_guard guard_of(const struct armed *a, uint32_t side)
{
	return (struct recorder_guard){
		.tape_fd = a->tape,
		.side = side,
		.closes = side >= PP_SIDE_A_CLOSING,
		.other = base_of(side) == PP_SIDE_B ? PP_SIDE_A
			 : a->swap		    ? PP_SIDE_B
						    : PP_SIDE_NONE,
		.firings_fd = a->firings,
		.sending_fd = a->sending,
	};
}

static int fill_side(const struct armed *a, struct parts *p, const struct rings *rings,
		     uint32_t side, struct failure *f)
{
	const struct recorder_guard guard = guard_of(a, side);
	struct recorder_target target;
	int r = parts_target(p, &target, f);

	if (r < 0)
		return r;
	target.fd = rings->outer;
	target.cpu = rings->cpu;
	target.ring_fd = rings->fd;
	target.n = rings->n;
	return sides_fill(&a->sides, &p->programs, &p->sources, &target, &guard, f);
}

int armed_fill(const struct armed *a, struct parts *p, const struct rings *rings, uint32_t side,
	       struct failure *f)
{
	int r = fill_side(a, p, rings, side, f);

	if (r >= 0 && a->firings >= 0)
		r = fill_side(a, p, rings, side + PP_SIDE_A_CLOSING, f);
	return r;
}

int armed_load(const struct armed *a, struct parts *p, uint32_t side, struct failure *f)
{
	const struct recorder_guard guard = guard_of(a, side);
	struct recorder_target target;
	int r = parts_target(p, &target, f);

	return r < 0 ? r
		     : programs_load_guarded(&p->programs, &p->sources, &target, &a->sides, &guard,
					     f);
}

static struct pp_tape *map_tape(const struct armed *a, struct failure *f)
{
	struct pp_tape *tape =
		mmap(NULL, sizeof(*tape), PROT_READ | PROT_WRITE, MAP_SHARED, a->tape, 0);

	if (tape != MAP_FAILED)
		return tape;
	fail(f, errno, "Cannot map a trigger's tape: %s.", strerror(errno));
	return NULL;
}

/* Rings of no CPU: of the kind of the event's rings, which the verifier compares. */
static int make_nowhere(const struct parts *p)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .inner_map_fd = (uint32_t)p->rings.fd[0]);
	int possible = pp_cpus_possible();

	return possible < 0 ? possible
			    : bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "pp_nowhere", 4, 4,
					     (uint32_t)possible, &opts);
}

static int fill_none(const struct armed *a, struct parts *p, struct failure *f)
{
	const struct recorder_guard guard = guard_of(a, PP_SIDE_NONE);
	_cleanup_close_ int nowhere = make_nowhere(p);
	struct recorder_target target;
	int r;

	if (nowhere < 0)
		return fail(f, -nowhere, "Cannot make the maps for the trigger of '%s': %s.",
			    p->name, strerror(-nowhere));
	r = parts_target(p, &target, f);
	if (r < 0)
		return r;
	target.fd = nowhere;
	target.n = 0;
	/* Where `stat` shows it as missed; of listed CPUs it has no such counts. */
	target.ringless_fd = p->ringless >= 0 ? p->ringless : a->frozen;
	return sides_fill(&a->sides, &p->programs, &p->sources, &target, &guard, f);
}

int armed_allow_stop(const struct armed *a, struct parts *p, struct failure *f)
{
	struct pp_tape *tape;
	int r = fill_none(a, p, f);

	if (r < 0)
		return r;
	tape = map_tape(a, f);
	if (!tape)
		return -ENOMEM;
	__atomic_store_n(&tape->stops, 1, __ATOMIC_SEQ_CST);
	munmap(tape, sizeof(*tape));
	return 0;
}

int armed_open_windows(struct armed *a, struct parts *p, const struct rings *spare, uint32_t side,
		       struct failure *f)
{
	uint32_t other = guard_of(a, side).other;
	struct pp_tape *tape;
	int r = open_firings(a, p->broker);

	if (r < 0)
		return fail(f, -r, "Cannot open the ring buffer of firings: %s.", strerror(-r));
	r = fill_side(a, p, &p->rings, side + PP_SIDE_A_CLOSING, f);
	if (r >= 0 && a->swap)
		r = fill_side(a, p, spare, other + PP_SIDE_A_CLOSING, f);
	tape = r < 0 ? NULL : map_tape(a, f);
	if (!tape)
		return r < 0 ? r : -ENOMEM;
	__atomic_store_n(&tape->windows, 1, __ATOMIC_SEQ_CST);
	munmap(tape, sizeof(*tape));
	return 0;
}

int armed_set(const struct armed *a, uint32_t side, uint32_t next, struct failure *f)
{
	const union pp_tape_state to = { .side = side, .next = next };
	struct pp_tape *tape = map_tape(a, f);

	if (!tape)
		return -ENOMEM;
	/* A trigger that dies before it has signed leaves the cause unknown, and not the one before. */
	tape->by = (struct pp_fired){};
	__atomic_store_n(&tape->until, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&tape->state.word, to.word, __ATOMIC_SEQ_CST);
	munmap(tape, sizeof(*tape));
	return 0;
}

int armed_hold(const struct armed *a, struct failure *f)
{
	struct pp_tape *tape = map_tape(a, f);
	union pp_tape_state from, to;
	int r;

	if (!tape)
		return -ENOMEM;
	from.word = to.word = __atomic_load_n(&tape->state.word, __ATOMIC_SEQ_CST);
	to.next = PP_SIDES_TAKEN;
	r = (from.next < PP_SIDES || from.next == PP_SIDES_TAKEN) &&
	    __sync_bool_compare_and_swap(&tape->state.word, from.word, to.word);
	munmap(tape, sizeof(*tape));
	return r;
}

int armed_read_by(const struct armed *a, struct pp_fired *ret, struct failure *f)
{
	struct pp_tape *tape = map_tape(a, f);

	if (!tape)
		return -ENOMEM;
	for (int i = 0; i < 1000 && !__atomic_load_n(&tape->by.number, __ATOMIC_SEQ_CST); i++)
		usleep(1000);
	*ret = tape->by;
	munmap(tape, sizeof(*tape));
	return 0;
}
