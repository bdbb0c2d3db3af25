// SPDX-License-Identifier: LGPL-2.1-or-later
/* Triggers. See trigger.h. */
#include "daemon/engine/event/trigger.h"

#include <bpf/bpf.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/engine/event/names.h"
#include "daemon/engine/recorders/fire.h"
#include "daemon/engine/registry/wakeups.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"

#define PROC_PID_INIT_INO 0xeffffffcU /* the kernel's: of the first namespace of ids */

/* ── making ─────────────────────────────────────────────────────────────────────────────── */

static bool key_is_task(const struct sources *s, const struct pp_condition *condition)
{
	for (size_t i = 0; i < s->n; i++)
		if (fire_key_is_task(&s->v[i], condition))
			return true;
	return false;
}

static int make_state(const struct parts *p, const struct pp_trigger_spec *spec)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	const struct pp_trigger trigger = {
		.id = p->event.id,
		.is_task = key_is_task(&p->sources, &spec->condition),
		.spec = *spec,
	};
	_cleanup_close_ int fd = -EBADF;
	uint32_t zero = 0;

	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_trigger", 4, sizeof(trigger), 1, &opts);
	if (fd < 0)
		return fd;
	return bpf_map_update_elem(fd, &zero, &trigger, BPF_ANY) < 0 ? -errno : TAKE_FD(fd);
}

static int make_targets(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, mapped, .map_flags = BPF_F_MMAPABLE);
	LIBBPF_OPTS(bpf_map_create_opts, opts);
	_cleanup_close_ int tape = -EBADF;

	tape = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_tape", 4, sizeof(struct pp_tape), 1, &mapped);
	if (tape < 0)
		return tape;
	opts.inner_map_fd = (uint32_t)tape;
	return bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "pp_targets", 4, 4, PP_TARGETS_MAX,
			      &opts);
}

static int make_pairs(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_pairs", 4, PP_PAIRS_SIZE, 1, &opts);
}

/* Each tracepoint is recorded once, for the first term that it fits, so there may be none for the end. */
static int check_pairs(const struct parts *p, const struct pp_condition *c, struct failure *f)
{
	size_t n = 0;

	if (c->kind != PP_CONDITION_PAIR)
		return 0;
	for (size_t i = 0; i < p->sources.n; i++)
		n += p->sources.v[i].term < c->n_on;
	return n > 0 && n < p->sources.n
		       ? 0
		       : fail(f, EINVAL,
			      "What begins and what ends a pair must be different events, and '%s' has "
			      "only the same ones for both.",
			      p->event.spec.event);
}

int trigger_make(struct parts *p, const struct pp_trigger_spec *spec, struct failure *f)
{
	_cleanup_close_ int firings = firings_fd(p->broker), sending = -EBADF;
	int r = check_pairs(p, &spec->condition, f);

	if (r < 0)
		return r;
	r = firings;
	if (r >= 0)
		r = sending = sending_fd();
	if (r >= 0)
		r = p->trigger = make_state(p, spec);
	if (r >= 0)
		r = p->targets = make_targets();
	if (r >= 0)
		r = p->pending = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "pp_pending", 4,
						sizeof(struct pp_fired), 1, NULL);
	if (r >= 0 && spec->condition.kind == PP_CONDITION_PAIR)
		r = p->pairs = make_pairs();
	if (r < 0)
		return fail(f, -r, "Cannot make the maps of the trigger '%s/%s': %s.",
			    p->event.spec.ns, p->event.spec.name, strerror(-r));

	const struct fire fire = {
		.state_fd = p->trigger,
		.targets_fd = p->targets,
		.pending_fd = p->pending,
		.firings_fd = firings,
		.sending_fd = sending,
	};

	return programs_make_tell(&p->programs, &p->sources, &fire, &p->draft, f);
}

/* ── the maps ───────────────────────────────────────────────────────────────────────────── */

int trigger_read(const char *path, struct pp_trigger_spec *ret)
{
	_cleanup_close_ int fd = pins_get(path, "trigger");
	struct bpf_map_info info = {};
	uint32_t zero = 0, size = sizeof(info);
	struct pp_trigger trigger;

	if (fd < 0)
		return fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	if (info.value_size != sizeof(trigger))
		return -EBADMSG;
	if (bpf_map_lookup_elem(fd, &zero, &trigger) < 0)
		return -errno;
	*ret = trigger.spec;
	return pp_trigger_check(ret);
}

/* The tape of a target. -ENOENT: the event is gone, or not armed. */
static int open_tape(uint64_t id)
{
	char path[PINS_PATH_SIZE];
	int r = names_find(id, path);

	return r < 0 ? r : pins_get(path, "tape");
}

static int put_tape(int targets, uint32_t slot, uint64_t id)
{
	_cleanup_close_ int tape = open_tape(id);

	if (tape < 0)
		return tape == -ENOENT ? 0 : tape;
	return bpf_map_update_elem(targets, &slot, &tape, BPF_ANY) < 0 ? -errno : 1;
}

/* From the last one on, so that an engine that dies leaves no gap. To look costs nothing; to empty a
 * slot waits until programs that run have ended. */
static int empty_from(int targets, uint32_t first)
{
	for (uint32_t slot = PP_TARGETS_MAX; slot-- > first;) {
		uint32_t id;

		if (bpf_map_lookup_elem(targets, &slot, &id) < 0 && errno == ENOENT)
			continue;
		if (bpf_map_delete_elem(targets, &slot) < 0 && errno != ENOENT)
			return -errno;
	}
	return 0;
}

/* A firing meanwhile turns the new targets, or some of the old ones, too; it looks at the first slot a microsecond
 * before the others, so one that changes its slot can be left out. */
static int put_all(int targets, const uint64_t *ids, size_t n)
{
	uint32_t slot = 0;

	for (size_t i = 0; i < n; i++) {
		int r = put_tape(targets, slot, ids[i]);

		if (r < 0)
			return r;
		slot += (uint32_t)r;
	}
	return empty_from(targets, slot);
}

/* The kernel waits for running programs whenever a map in a map goes (maybe_wait_bpf_programs(), Linux
 * 4.16 to 6.18), so what these have turned is in the ring buffer of firings when this returns. */
void trigger_disown(const char *path)
{
	_cleanup_close_ int targets = pins_get(path, "targets");
	int r = targets < 0 ? targets : empty_from(targets, 0);

	if (r < 0)
		log_error("Cannot take the targets from a trigger that is being deleted: %s; what "
			  "it freezes before it is gone is saved when the engine is started again.",
			  strerror(-r));
}

int trigger_aim(uint64_t id, const uint64_t *targets, size_t n, struct failure *f)
{
	_cleanup_close_ int fd = -EBADF;
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(id, path, f);

	if (r < 0)
		return r;
	r = fd = pins_get(path, "targets");
	if (r >= 0)
		r = put_all(fd, targets, n);
	return r < 0 ? fail(f, -r, "Cannot give the trigger with id %llu its targets: %s.",
			    (unsigned long long)id, strerror(-r))
		     : 0;
}

/* ── pairs ──────────────────────────────────────────────────────────────────────────────── */

static void *map(int fd, size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

int trigger_forget_pairs(const struct parts *p, struct failure *f)
{
	struct pp_pair *pairs;

	if (p->pairs < 0)
		return 0;
	pairs = map(p->pairs, PP_PAIRS_SIZE);
	if (!pairs)
		return fail(f, errno, "Cannot map the pairs of the trigger '%s/%s': %s.",
			    p->event.spec.ns, p->event.spec.name, strerror(errno));
	memset(pairs, 0, PP_PAIRS_SIZE);
	munmap(pairs, PP_PAIRS_SIZE);
	return 0;
}

/* Whether a task that began a pair can no longer end it: it is gone, or its whole process has ended and
 * nobody has waited for it. Another id is that of a thread, which leaves nothing behind. */
static bool task_has_ended(uint64_t id)
{
	struct pollfd ended = { .events = POLLIN };
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, (pid_t)id, 0);

	if (fd < 0)
		return errno == ESRCH;
	ended.fd = fd;
	return poll(&ended, 1, 0) == 1;
}

/* Ids of tasks are those of the first namespace; in others they cannot be looked up. */
static bool sees_all_tasks(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == PROC_PID_INIT_INO;
}

/* ── by hand, and by the timer ──────────────────────────────────────────────────────────── */

/* 1: turned; 0: it was; -ENOENT: no target in this slot. */
static int turn_slot(int targets, uint32_t slot, const struct pp_fired *fired,
		     const struct pp_trigger_spec *spec)
{
	_cleanup_close_ int fd = -EBADF;
	struct pp_tape *tape;
	uint32_t id;
	int r;

	if (bpf_map_lookup_elem(targets, &slot, &id) < 0)
		return -errno;
	fd = bpf_map_get_fd_by_id(id);
	if (fd < 0)
		return fd == -ENOENT ? 1 : fd; /* replaced since */
	tape = map(fd, sizeof(*tape));
	if (!tape)
		return -errno;
	r = pp_turn(tape, spec);
	if (r)
		pp_sign(tape, fired, spec);
	munmap(tape, sizeof(*tape));
	return r;
}

/* 1: it has fired; 0: its limits do not let it. */
static int fire(struct pp_trigger *t, int targets, struct pp_fired *fired, struct failure *f)
{
	int r = 0;

	fired->number = pp_may_fire(t, fired->time);
	if (!fired->number)
		return 0;
	fired->trigger = t->id;
	fired->action = t->spec.action;
	for (uint32_t slot = 0; r >= 0 && slot < PP_TARGETS_MAX; slot++) {
		r = turn_slot(targets, slot, fired, &t->spec);
		if (r == 0 || (r == -ENOENT && slot == 0 && t->spec.action != PP_ACTION_NOTIFY))
			__sync_fetch_and_add(&t->late, 1);
	}
	return r < 0 && r != -ENOENT
		       ? fail(f, -r, "Cannot turn the targets of the trigger: %s.", strerror(-r))
		       : 1;
}

static int fire_by_hand(struct pp_trigger *t, int targets, struct pp_fired *ret, struct failure *f)
{
	*ret = (struct pp_fired){
		.time = pp_clock_ns(CLOCK_MONOTONIC),
		.pid = (uint32_t)getpid(),
		.tid = (uint32_t)getpid(),
		.by_hand = PP_FIRED_BY_HAND,
	};
	return fire(t, targets, ret, f);
}

/* Each overdue pair fires once, or is held as a record would be; a pair that ends meanwhile fires by its
 * end. As fire(): 1 if one of them has fired, *ret. Only one does: those that are left when the hold-off is
 * over wait for the next order. */
static int fire_overdue(struct pp_trigger *t, int targets, struct pp_pair *pairs,
			struct pp_fired *ret, struct failure *f)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC);
	bool tasks = t->is_task && sees_all_tasks();
	int r = 0;

	for (size_t i = 0; r >= 0 && i < PP_PAIRS_MAX; i++) {
		struct pp_fired fired = { .by_hand = PP_FIRED_BY_TIMER };
		__u64 since, key;

		if (!pp_pair_is_overdue(&pairs[i], t->spec.condition.longer_than, now, &since))
			continue;
		__sync_synchronize();
		key = pp_read_word(&pairs[i].key);
		fired.time = pp_clock_ns(CLOCK_MONOTONIC);
		if (ret->number && fired.time - ret->time >= t->spec.hold_off)
			break;
		if (!__sync_bool_compare_and_swap(&pairs[i].since, since, PP_PAIR_FREE))
			continue;
		if (tasks && task_has_ended(key)) {
			__sync_fetch_and_add(&t->ended, 1);
			continue;
		}
		__sync_fetch_and_add(&t->overdue, 1);
		if (t->is_task)
			fired.pid = fired.tid = (uint32_t)key;
		r = fire(t, targets, &fired, f);
		if (r > 0)
			*ret = fired;
	}
	return r < 0 ? r : ret->number > 0;
}

static int fire_by_timer(struct pp_trigger *t, const char *path, int targets, struct pp_fired *ret,
			 struct failure *f)
{
	_cleanup_close_ int fd = pins_get(path, "pairs");
	struct pp_pair *pairs = fd < 0 ? NULL : map(fd, PP_PAIRS_SIZE);
	int r;

	if (!pairs)
		return fail(f, fd < 0 ? -fd : errno,
			    "Cannot map the pairs of the trigger '%s': %s.", path,
			    strerror(fd < 0 ? -fd : errno));
	r = fire_overdue(t, targets, pairs, ret, f);
	munmap(pairs, PP_PAIRS_SIZE);
	return r;
}

int trigger_fire(uint64_t id, bool overdue, struct pp_fired *ret, struct failure *f)
{
	_cleanup_close_ int state = -EBADF, targets = -EBADF;
	struct pp_trigger *t = NULL;
	char path[PINS_PATH_SIZE];
	int r = names_find_or_fail(id, path, f);

	*ret = (struct pp_fired){};
	if (r < 0)
		return r;
	state = pins_get(path, "trigger");
	targets = pins_get(path, "targets");
	if (state >= 0 && targets >= 0)
		t = map(state, sizeof(*t));
	if (!t)
		return fail(f, EINVAL, "The event with id %llu is no trigger.",
			    (unsigned long long)id);
	r = overdue ? fire_by_timer(t, path, targets, ret, f) : fire_by_hand(t, targets, ret, f);
	munmap(t, sizeof(*t));
	/* The broker looks for what has been turned only if something was. */
	if (r == 0)
		return fail(
			f, EAGAIN,
			"The trigger has fired a moment ago, or often enough today: its hold-off or "
			"its number of firings per day does not let it.");
	return MIN(r, 0);
}
