/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libperfpersist: persistent perf events by name.
 *
 * A persistent event records from its creation to its deletion into one ring buffer per CPU.
 * Any number of processes with the right may map these read-only at any time. This library
 * creates, lists, changes and deletes such events, opens them, and reads what they recorded
 * without disturbing the recorders.
 *
 * Conventions
 *   - Functions return 0, a positive documented outcome, or a negative errno value.
 *   - `ret_…` arguments are written only on success; the caller then frees them.
 *   - An object belongs to one thread at a time; different objects are independent.
 *   - Option and info structs begin with their size (`sz`), set by the caller with
 *     `.sz = sizeof(struct …)`, so that later versions can append fields. -EINVAL if too small.
 *   - Names are [a-zA-Z_][a-zA-Z0-9_-]*, at most 63 bytes.
 *   - Every descriptor is CLOEXEC. Nothing here installs signal handlers.
 *   - Since: version 0.1, unless a declaration says otherwise.
 *
 * Any call that talks to the daemon may return
 *   -ECONNREFUSED  the daemon is not running
 *   -ECONNRESET    the daemon went away during the call; the request may have succeeded
 *   -EACCES        the namespace does not give the caller that right
 *   -ENOENT        no event (or namespace) of that name or id
 *   -EBADMSG       a packet violates the protocol
 *   -EMFILE        the caller has no place for the descriptors that came, and the connection has ended
 *   -EPROTONOSUPPORT  the daemon speaks another version
 *   -EDQUOT        the daemon's limit of connections is reached
 *   -EAGAIN        the daemon's engine is away, or it is short of descriptors: try again
 *   -EBUSY         the event is being created, changed, saved or deleted just now
 * perfpersist_error() returns an error message about the last failure on a connection.
 */
#ifndef PERFPERSIST_H
#define PERFPERSIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ── Connection ─────────────────────────────────────────────────────────────────────────── */

struct perfpersist; /* a connection to a daemon, or to the pins of one */

struct perfpersist_options {
	size_t sz;
	const char *instance; /* of the daemon; NULL or "": the system's own */
	const char *socket;   /* path; NULL: that of the instance */
	const char *registry; /* path; NULL: that of the instance */
	bool direct;	      /* no daemon: list, show and open from the pins, as root; create
				 and delete then return -EOPNOTSUPP */
	const char *saved; /* neither: from a save (perfpersist_save()), or the newest of those in
			      a directory, by its path; "": the newest of the instance; the name
			      of a save: that one of the instance; "previous-boot": from the newest
			      checkpoints of an earlier boot. NULL: no */
};

/*
 * Connects. opts may be NULL. -ECONNREFUSED, -EACCES (direct: not root), -ENOENT (direct: no
 * registry; saved: no save), -EINVAL (not a valid instance name, the path is too long, or direct
 * and saved at once), -ENOMEM.
 */
int perfpersist_connect(const struct perfpersist_options *opts, struct perfpersist **ret);

/* Ends the connection and frees it; pending requests end with -ECANCELED. NULL is fine. */
void perfpersist_free(struct perfpersist *p);

/*
 * An error message about the last failed call: what was tried, on what, why it failed and what can
 * be done. Valid until the next call on p. Never NULL. With p NULL: about this thread's last failed
 * call without a connection (perfpersist_connect, perfpersist_open_fds and all functions on opened
 * events).
 */
const char *perfpersist_error(struct perfpersist *p);

/* ── Events ─────────────────────────────────────────────────────────────────────────────── */

enum perfpersist_recorder {
	PERFPERSIST_RECORDER_GENERIC = 1,
	PERFPERSIST_RECORDER_TP_BTF = 2,
	PERFPERSIST_RECORDER_OVERFLOW = 3,
	PERFPERSIST_RECORDER_PROBE = 4,
	PERFPERSIST_RECORDER_AUX = 5, /* the PMU traces into AUX areas: perfpersist_auxtrace() */
};

enum perfpersist_state {
	PERFPERSIST_CREATING = 1,
	PERFPERSIST_RUNNING = 2,
	PERFPERSIST_DELETING = 3,
	PERFPERSIST_PAUSED = 4,
	PERFPERSIST_CHANGING = 5, /* being changed, paused or resumed just now */
	/* Triggers have frozen it twice: what is recorded since then is in rings that can be read when
	 * what the first one froze has been saved or released. Since 0.1.0. */
	PERFPERSIST_FROZEN = 6,
};

#define PERFPERSIST_FREQ (1U << 0)	 /* period is a frequency in Hz */
#define PERFPERSIST_CALLCHAIN (1U << 1)	 /* with call chains, of kernel and user space */
#define PERFPERSIST_ALL_CPUS (1U << 2)	 /* info only: no CPUs were named */
#define PERFPERSIST_GENERIC (1U << 3)	 /* tracepoints: use the generic recorder */
#define PERFPERSIST_WAKEUP (1U << 4)	 /* readers may ask for wakeups: perfpersist_wakeup() */
#define PERFPERSIST_CONFIGURED (1U << 5) /* info only: the configuration made it */
#define PERFPERSIST_SHARE (1U << 6)	 /* create: a second name for an equal event, if one runs */
#define PERFPERSIST_NO_SHARE (1U << 7)	 /* create: not even if the daemon's default is to share */
#define PERFPERSIST_BOOT (1U << 8)	 /* create: write a file, to exist after a reboot */
#define PERFPERSIST_COPIES (1U << 9)	 /* info only: the caller gets copies of the rings */
#define PERFPERSIST_TRIGGER (1U << 10)	 /* info only: it is the event of a trigger */
#define PERFPERSIST_STOPPED (1U << 11)	 /* info only: it is paused, and a trigger did that */
#define PERFPERSIST_PROGRAM (1U << 12)	 /* info only: a BPF program decides on its records */
#define PERFPERSIST_ADOPTED (1U << 15) /* info only: it is on perf events that its creator opened */
/* With PERFPERSIST_CALLCHAIN, one of them. */
#define PERFPERSIST_NO_KERNEL_CHAIN (1U << 13) /* without the kernel's half */
#define PERFPERSIST_NO_USER_CHAIN (1U << 14)   /* without user space's */
#define PERFPERSIST_AUX (1U << 28)	       /* info only: it traces into AUX areas */
#define PERFPERSIST_AUX_GROUP (1U << 30)       /* info only: events beside these make samples */
/* Seconds from one checkpoint of the rings to the next (perfpersist_checkpoint_new()), as bits of
 * the flags, and back; 0: none are written. */
#define PERFPERSIST_CHECKPOINT(seconds) ((uint32_t)(seconds) << 16)
#define PERFPERSIST_CHECKPOINT_OF(flags) ((flags) >> 16 & 0xfff)
#define PERFPERSIST_CHECKPOINT_MAX 3600

#define PERFPERSIST_BOUND (1U << 31) /* info only: it counts in its target alone */

/* A task or cgroup in which alone an event counts: nothing runs for the others on the machine. Since 0.1 */
enum perfpersist_target_kind {
	PERFPERSIST_TARGET_NONE = 0,
	PERFPERSIST_TARGET_PROCESS = 1, /* its threads, and what they create from then on */
	PERFPERSIST_TARGET_THREAD = 2,	/* and what it creates from then on */
	PERFPERSIST_TARGET_CGROUP = 3,	/* of version 2, and those below it */
};
#define PERFPERSIST_TARGET_NO_INHERIT (1U << 0) /* tasks: not what they create */
#define PERFPERSIST_TARGET_DELETE (1U << 1)	/* the event is deleted when the target has ended */
/* create: a process, of whose events some do not count, becomes a filter: PID == … */
#define PERFPERSIST_TARGET_OR_FILTER (1U << 2)
#define PERFPERSIST_TARGET_ENDED \
	(1U << 3) /* info only: the task has ended, the cgroup is removed */

/* An event, as lists show it. Holds no resources. */
struct perfpersist_info {
	size_t sz;
	uint64_t id;	 /* never reused */
	uint64_t shares; /* the id of the event whose rings these are, if it is a second name; else
			    0 */
	char ns[64];
	char name[64];
	char event[1024];     /* perf's syntax; several with commas between */
	char filter[1024];    /* "": none */
	uint32_t recorder;    /* enum perfpersist_recorder; of the first source */
	uint32_t state;	      /* enum perfpersist_state */
	uint32_t sources;     /* events under this name, globs resolved */
	uint32_t set;	      /* of rings: 1, and 1 more with each resize */
	uint64_t buffer;      /* bytes of each CPU's ring, or of its AUX area */
	uint64_t memory;      /* bytes of all rings, with what they need beside the records */
	uint64_t sample_type; /* PERF_SAMPLE_*; several sources: PERF_SAMPLE_IDENTIFIER alone */
	uint64_t period;      /* sampling events: period or frequency (flags); else 0 */
	uint64_t max_rate;    /* limit of records a second and CPU; 0: no limit */
	uint32_t flags;	      /* PERFPERSIST_* */
	uint32_t owner, group, mode; /* of the namespace */
	uint32_t creator;	     /* uid that is charged for it */
	uint64_t created;	     /* CLOCK_REALTIME, ns */
	char cpus[1024];	     /* CPUs that have a ring, as a list: "0-3,8" */
	char away[1024];	     /* those of them that are offline; their records remain, and
				      * they record again when they are online again */
	char lacking[1024];	     /* CPUs that are online and wanted and have no ring yet */
	int lacking_error; /* why, as a negative errno value: -EDQUOT: a limit; else the error of
			    * the daemon's last try; 0: they are about to have one */
	/* since it was created, on all CPUs (of descriptors and saves: since
	 * these rings were made) */
	uint64_t records, bytes;
	uint64_t missed;      /* on all CPUs */
	uint64_t limited;     /* dropped by max_rate, on all CPUs */
	bool missed_unknown;  /* this kernel cannot tell; missed is then a lower bound */
	bool missed_at_least; /* missed is a lower bound: perf itself hides some events from users
			       * who record their tracepoint */
	uint64_t saved;	      /* from a save: just before it was made, CLOCK_REALTIME, ns; else 0 */
	/* the same time by CLOCK_MONOTONIC of that boot; some records may be newer */
	uint64_t saved_mono;
	uint64_t skipped;   /* from a checkpoint: bytes that its limit of bytes a second left out */
	uint32_t max_stack; /* entries of a call chain, at most; 0: no limit was asked for */
	/* bytes of the user stack that a record has, at most, beside the user's registers; 0: it has
	 * neither */
	uint32_t stack_user;
	/* in what it counts, if that is not the whole machine: enum perfpersist_target_kind,
	 * PERFPERSIST_TARGET_*, and the number of a task, or the path of a cgroup. Since 0.1 */
	uint32_t target, target_flags, target_pid;
	char target_cgroup[256];
};

/* Events with a filter of their own. */
struct perfpersist_selection {
	const char *event;  /* perf's syntax: one, several with commas, a glob; required */
	const char *filter; /* perf's and ftrace's syntax; NULL or "": none */
};

struct perfpersist_create_options {
	size_t sz;
	const char *event;  /* perf's syntax; required, unless there are selections */
	const char *filter; /* for event; NULL or "": none */
	const char *cpus;   /* list; NULL: all that are online */
	uint64_t buffer;    /* bytes of each CPU's ring, rounded up to a power of two; 0: 512 KiB */
	uint64_t period;    /* sampling events; 0: 4000 Hz */
	uint64_t max_rate;  /* records a second and CPU; 0: no limit */
	/* PERFPERSIST_FREQ, CALLCHAIN, NO_KERNEL_CHAIN, NO_USER_CHAIN, GENERIC, WAKEUP, SHARE, NO_SHARE, BOOT, CHECKPOINT() */
	uint32_t flags;
	const struct perfpersist_selection
		*selections; /* in place of event and filter; at most 16 */
	size_t n_selections;
	/* the kernel's id of a BPF program that decides on each record (perfpersist.bpf.h), and that
	 * the caller has loaded: it must stay loaded until the call ends, then the event has it and its
	 * maps; 0: none. An event with a program is a single perf event; it is not shared with other
	 * names, and excludes BOOT. Since 0.1 */
	uint32_t program;
	/* with CALLCHAIN: entries of a call chain, of kernel and user space together, at most: 1 to the
	 * kernel's limit, kernel.perf_event_max_stack, and 127 at most; 0: 127. Since 0.1 */
	uint32_t max_stack;
	/* with CALLCHAIN and NO_USER_CHAIN: each record also has the user's registers, and so many bytes
	 * of the user stack at most, from which perf unwinds it: a multiple of 8, 65528 at most; 0:
	 * neither. -EACCES: the caller may not have them (UserStacks= in perfpersistd.conf). Since 0.1 */
	uint32_t stack_user;
	/* in what alone it counts, if all of its events are counted or sampled: enum perfpersist_target_kind,
	 * NO_INHERIT, DELETE and OR_FILTER, and the number of a task as the caller's /proc has it, which must
	 * be the daemon's, too; or a cgroup's path from the root of the cgroups, or the name of a unit of
	 * systemd, in target_cgroup. Excludes sharing, and, but for a cgroup, BOOT. -ESRCH (no such task),
	 * -EAGAIN (it makes threads or forks too fast). Since 0.1 */
	uint32_t target, target_flags, target_pid;
	const char *target_cgroup;
};

struct perfpersist_daemon_info {
	size_t sz;
	uint32_t version; /* of the protocol */
	uint32_t pid;
	uint32_t
		engine_pid; /* 0: there is none just now, or it has not told all of its events yet */
	uint32_t events;
	uint64_t started; /* CLOCK_REALTIME, ns */
	char release[32];
	char instance[64];
};

/* Asks whether the daemon runs, and which one it is. Direct: -EOPNOTSUPP. */
int perfpersist_ping(struct perfpersist *p, struct perfpersist_daemon_info *ret);

/*
 * Creates an event; when it returns 0, the event records. ret (with its sz set) may be NULL.
 * -EINVAL (name, text, filter, size or list is wrong, or the program is no such one), -EEXIST,
 * -EACCES (also: the caller may not have probes, or a program), -ENOENT (this kernel has no such
 * tracepoint, this machine no such PMU, file or cgroup), -ENODEV (a CPU is offline, or there is no
 * tracefs), -EOPNOTSUPP (this kernel or machine cannot record it), -E2BIG (the kernel's 64 programs
 * of a tracepoint are used up), -ENOSPC, -EDQUOT (a limit), -ENOMEM; other errors are the kernel's.
 */
int perfpersist_create(struct perfpersist *p, const char *ns, const char *name,
		       const struct perfpersist_create_options *opts, struct perfpersist_info *ret);

/*
 * Makes an event of n perf events that the caller has opened and configured, one for each CPU or task: when it
 * returns 0, they are enabled, they record for as long as the event exists, and the caller may close
 * them and end. On failure they are the caller's as before, though they may be enabled. opts
 * describes them, as for perfpersist_create(): its single event is what they count, a tracepoint or an
 * event that is sampled; period and flags are the caller's word. Of a tracepoint the first descriptor is
 * enough: the kernel runs a program on it for all CPUs and tasks, whatever the perf event is for; only root has
 * those. Samples of the caller's own rings end. SHARE, BOOT and a program are excluded.
 * -EBADF (not a perf event), -EEXIST (the name is taken), -EBUSY (a BPF program is attached already, it has been
 * inherited by a thread or child, or too many adoptions at a time), -EINVAL (it
 * counts something else), -ESRCH (its task has ended, or its CPU has gone offline), -EPROTO (call chains are asked
 * for, and it is precise and has none), -E2BIG (more than 64 or, if that is more, the CPUs that are possible; or as
 * of perfpersist_create()), or as perfpersist_create(). Since 0.1
 */
int perfpersist_adopt(struct perfpersist *p, const char *ns, const char *name,
		      const struct perfpersist_create_options *opts, const int *fds, size_t n,
		      struct perfpersist_info *ret);

/*
 * Begins to take an event over: hands out the *ret_n descriptors that keep it alive, in *ret_fds. Nothing changes by
 * that; call perfpersist_claim_end() when all is ready. The first *ret_rings of them are for
 * perfpersist_open_fds(). They are CLOEXEC, the caller's, and all must be held; the array is for free(3). ret receives
 * the event. -ENOENT, -EACCES (users claim sampling events that were adopted from them, root any), -EBUSY (it is
 * paused, or a trigger's target), -EOPNOTSUPP (it is a trigger, or has a program), -EAGAIN (it changed meanwhile).
 * Since 0.1
 */
int perfpersist_claim(struct perfpersist *p, const char *ns, const char *name, int **ret_fds,
		      size_t *ret_n, size_t *ret_rings, struct perfpersist_info *ret);

/*
 * Takes it over: when it returns 0, the daemon has forgotten the event, which records until the last of the
 * descriptors is closed. claimed: from perfpersist_claim(). On failure the event is the daemon's as before, and a
 * caller who ends before that leaves it there, too. 1: the daemon or its engine was stopped meanwhile, and nobody can
 * tell whether it has forgotten the event, as perfpersist_error() says: while the descriptors are held it goes on in either case.
 * -EBUSY (it has other names, or as above), -EAGAIN (it has other rings by now), -ECONNRESET, or as above. Since 0.1
 */
int perfpersist_claim_end(struct perfpersist *p, const struct perfpersist_info *claimed);

/* What a name stands for. */
enum perfpersist_descriptor_kind {
	PERFPERSIST_DESCRIPTOR_RING = 1,     /* a map with a CPU's records */
	PERFPERSIST_DESCRIPTOR_CATALOG = 2,  /* a map that describes several events */
	PERFPERSIST_DESCRIPTOR_PROGRAMS = 3, /* a PROG_ARRAY that leads to the recording programs */
	PERFPERSIST_DESCRIPTOR_LINK = 4,     /* a link that makes a program run, on all CPUs */
	PERFPERSIST_DESCRIPTOR_COUNTER =
		5, /* one with a perf event that counts on a CPU or in a task */
};

struct perfpersist_descriptor {
	uint32_t kind; /* enum perfpersist_descriptor_kind */
	int cpu;       /* of a ring or a perf event; -1: none, or any */
	uint32_t id;   /* the kernel's, of the map or link */
	int tid;       /* the task to which a perf event is bound; 0: none, or it has ended */
	/* a ring: how often its CPU had gone offline when its counters were attached; UINT64_MAX: unknown */
	uint64_t generation;
	uint64_t
		perf_id; /* as PERF_EVENT_IOC_ID has it; 0: there is no perf event, or it is unknown */
	/* 1; 0: its CPU has gone offline since, or its task has ended; -1: the kernel does not tell */
	int alive;
};

/* Lists all that an event consists of, sorted by kind, CPU and id. *ret is one array for free(3). -ENOENT,
 * -EACCES. Since 0.1 */
int perfpersist_descriptors(struct perfpersist *p, const char *ns, const char *name,
			    struct perfpersist_descriptor **ret, size_t *ret_n);

/* Deletes an event; a process that has it open keeps its records. ret, which receives the deleted
 * event, may be NULL. */
int perfpersist_delete(struct perfpersist *p, const char *ns, const char *name,
		       struct perfpersist_info *ret);
int perfpersist_delete_by_id(struct perfpersist *p, uint64_t id, struct perfpersist_info *ret);

/* Lists all events that the caller may read, ordered by id, of one namespace, or of all if ns is
 * NULL. *ret is one array for free(3). */
int perfpersist_list(struct perfpersist *p, const char *ns, struct perfpersist_info **ret,
		     size_t *ret_n);

int perfpersist_show(struct perfpersist *p, const char *ns, const char *name,
		     struct perfpersist_info *ret);

/* Bits of `what`: the settings to change; all others stay. */
#define PERFPERSIST_CHANGE_FILTER (1U << 0)
#define PERFPERSIST_CHANGE_BUFFER (1U << 1)
#define PERFPERSIST_CHANGE_MAX_RATE (1U << 2)
#define PERFPERSIST_CHANGE_CHECKPOINT (1U << 3)
#define PERFPERSIST_CHANGE_PERIOD (1U << 4)

struct perfpersist_change_options {
	size_t sz;
	uint32_t what;	    /* PERFPERSIST_CHANGE_* */
	const char *filter; /* for all sources of the event; NULL or "": none */
	uint64_t buffer;    /* bytes of each CPU's ring; the old rings and what they hold go */
	uint64_t max_rate;
	uint32_t checkpoint; /* seconds; 0: none */
	uint32_t flags;	     /* with a period: PERFPERSIST_FREQ or 0 */
	uint64_t period;     /* as in struct perfpersist_create_options */
};

/*
 * Changes an event while it records: each record goes by the old or by the new settings, and none
 * is lost or duplicated. A new buffer is a new set of rings: a process that has the old rings open
 * keeps them, and perfpersist_event_state() reports the change. A new period is for all sources that
 * sample (-EINVAL: none does), and begins with other counters, in the same rings: what the old ones had
 * counted since their last samples is in no record, and for some microseconds both count. Each record
 * has its own period; attr keeps that of before until the rings are new. ret may be NULL. -EINVAL, -ENOENT
 * (also for a filter's cgroup), -EMLINK (the event has several names, which would all change),
 * -EOPNOTSUPP (a period, of counters that are a caller's or inherited), -EDQUOT, -ENOMEM.
 */
int perfpersist_change(struct perfpersist *p, const char *ns, const char *name,
		       const struct perfpersist_change_options *opts, struct perfpersist_info *ret);

/*
 * Pauses or resumes an event under all its names, or, if name is NULL, all events of a namespace.
 * If some of these fail, the call fails, and the others are still paused or resumed. *ret_n (may be
 * NULL): the number of events whose state changed. -EMLINK: a second name; only the first name's
 * owner may pause the event.
 */
int perfpersist_pause(struct perfpersist *p, const char *ns, const char *name, bool pause,
		      size_t *ret_n);

/*
 * Makes the daemon read its configuration again and apply the differences; only for root (-EACCES).
 * Returns 0 even if some of that failed: *ret (may be NULL) says how much, and the daemon's log has
 * every failure.
 */
struct perfpersist_reload_result {
	size_t sz;
	uint32_t created, changed, deleted, failed;
	char message[512]; /* the first complaint; "" */
};
int perfpersist_reload(struct perfpersist *p, struct perfpersist_reload_result *ret);

/* ── Triggers ───────────────────────────────────────────────────────────────────────────── */

/*
 * A trigger is an event that freezes or pauses other events of its namespace when it happens, in the
 * kernel and on all CPUs at once, or that is only told. Of an event that is frozen a second set of
 * rings takes over, and what was recorded until then is a tape, which perfpersist_open_by_id() opens,
 * until it is released. The trigger's own event records what fired.
 */
enum perfpersist_action {
	PERFPERSIST_ACTION_SNAPSHOT = 0, /* freezes its targets, for `perfctl snapshots collect` */
	PERFPERSIST_ACTION_FREEZE = 1,	 /* likewise; the tapes wait until somebody releases them */
	PERFPERSIST_ACTION_PAUSE = 2,	 /* pauses its targets; there are no tapes */
	PERFPERSIST_ACTION_NOTIFY = 3,	 /* has no targets: PERFPERSIST_NOTICE_FIRED, the journal */
};

struct perfpersist_trigger_options {
	size_t sz;
	/* names and globs of events, with commas between; required, but for ACTION_NOTIFY, which has
	 * none */
	const char *targets;
	uint64_t hold_off;    /* ns from one firing to the next, at least; 0: 10 s */
	uint64_t max_per_day; /* firings in 24 hours; 0: no limit */
	const struct perfpersist_create_options *event; /* what fires; neither SHARE nor BOOT */

	/*
	 * NULL: each record fires. Else `event` begins a pair, and makes no record; this ends the pair
	 * whose key is equal, the latest if there are several, and fires if it came more than longer_than
	 * after. The daemon fires, too, while it is missing, and then it fires no more.
	 */
	const char *until, *until_filter; /* the filter may be NULL */
	const char *key; /* a field that both have, or one of each with a comma between: "tid" */
	uint64_t longer_than; /* ns */
	/* "over N/s for TIME": it fires when there were more occurrences than that in each of so many
	 * seconds; these alone make a record. NULL: no matter how many; not with until. */
	const char *rate;
	/* ns that the targets go on recording into what is frozen then: at most a minute, and the
	 * hold-off; and until each has so many more records, at most. 0: no limit, but a number without a
	 * time is for 10 s, or the hold-off, if that is shorter; both 0: freeze at once */
	uint64_t after, after_records;
	uint32_t action; /* enum perfpersist_action; the last two have no `after` */
};

/* Creates the trigger's event; targets are armed then, one after the other, and events that are
 * created later, too. -EINVAL, or as perfpersist_create(). It is deleted, changed and paused as an
 * event. */
int perfpersist_trigger_add(struct perfpersist *p, const char *ns, const char *name,
			    const struct perfpersist_trigger_options *opts,
			    struct perfpersist_info *ret);

struct perfpersist_trigger {
	size_t sz;
	uint64_t id; /* its event's, as all of these */
	char ns[64], name[64];
	char event[1024], filter[1024];
	char targets[256];
	uint64_t hold_off, max_per_day;
	uint32_t state;	  /* enum perfpersist_state */
	uint32_t creator; /* uid */
	uint32_t n_targets,
		n_armed; /* events that match; of them, those that it would freeze or pause now */
	uint64_t fired;	 /* how often; and how often it did not, because */
	uint64_t held;	 /* of the hold-off, */
	uint64_t spent;	 /* it had fired often enough that day, */
	uint64_t missed; /* its event was missed (it fired if only the buffer had no place) */
	bool missed_unknown; /* this kernel cannot tell; missed is then a lower bound */
	bool missed_at_least;
	/* targets that were left alone: their last tape was not saved yet, or they were paused; and
	 * firings that found no target armed */
	uint64_t late;
	uint64_t last;		    /* CLOCK_MONOTONIC, ns: when it fired; 0: never */
	char until[1024], key[128]; /* of two events, of which `event` begins; else "" */
	uint64_t longer_than;
	uint64_t unkept;  /* beginnings that found no room in the table, */
	uint64_t overdue; /* whose end was missing in time: it fired, or was held or spent, */
	uint64_t ended;	  /* and that have none because the task that is the key has ended */
	char rate[64];	  /* "": no matter how many */
	/* ns that its targets go on at most, 0: not at all; records, 0: any number */
	uint64_t after, after_records;
	uint32_t action; /* enum perfpersist_action */
	uint64_t tapes;	 /* of it, that nobody has released */
};

/* Lists triggers as perfpersist_list() does events. *ret is one array for free(3), *ret_n may be 0.
 * Direct, and of a save: -EOPNOTSUPP. */
int perfpersist_triggers(struct perfpersist *p, const char *ns, struct perfpersist_trigger **ret,
			 size_t *ret_n);

/* Fires it by hand, within its limits. -EAGAIN: these do not let it; -EINVAL: it is no trigger. */
int perfpersist_trigger_fire(struct perfpersist *p, const char *ns, const char *name);

/* What one event had recorded when a trigger fired. */
struct perfpersist_tape {
	size_t sz;
	uint64_t id;	/* for perfpersist_open_by_id(); */
	uint64_t event; /* the event's, */
	char ns[64], name[64];
	uint64_t trigger;	/* and the trigger's */
	char trigger_name[64];	/* in the same namespace; "": it is deleted */
	uint64_t number;	/* of the firing: one with several targets has as many tapes */
	uint64_t fired;		/* CLOCK_MONOTONIC, ns */
	uint32_t cpu, pid, tid; /* where it fired, and the task that ran there */
	bool by_hand;		/* then these mean nothing */
	char comm[16];
	bool overdue; /* the end of a pair was missing: pid and tid are its key, if that is a task */
	uint32_t action; /* enum perfpersist_action: SNAPSHOT or FREEZE */
};

/* Lists the tapes that nobody has released, likewise. */
int perfpersist_tapes(struct perfpersist *p, const char *ns, struct perfpersist_tape **ret,
		      size_t *ret_n);

/* It is saved, or not wanted. A process that has it open keeps it. */
int perfpersist_tape_release(struct perfpersist *p, uint64_t id);

/* ── CPUs ─────────────────────────────────────────────────────────────────────────────────── */

/* A CPU that is offline, of those that exist or on which an event has recorded. */
struct perfpersist_cpu_away {
	size_t sz;
	uint32_t cpu;
	uint64_t since; /* CLOCK_REALTIME, ns: when it went offline, or when that was first seen;
			 * 0: unknown */
};

/* Lists all of them by number; also with `direct`. *ret is one array for free(3), *ret_n may be 0.
 * -EOPNOTSUPP: the daemon is older than this library. */
int perfpersist_cpus_away(struct perfpersist *p, struct perfpersist_cpu_away **ret, size_t *ret_n);

/* ── Limits ─────────────────────────────────────────────────────────────────────────────── */

enum perfpersist_limit_scope {
	PERFPERSIST_LIMIT_TOTAL = 1,
	PERFPERSIST_LIMIT_NAMESPACE = 2,
	PERFPERSIST_LIMIT_USER = 3,
};

/* Usage and limits, in bytes or numbers; UINT64_MAX: no limit. */
struct perfpersist_limit {
	size_t sz;
	uint32_t scope;		     /* enum perfpersist_limit_scope */
	uint32_t uid;		     /* of a user */
	char ns[64];		     /* of a namespace */
	uint64_t memory, max_memory; /* of rings and catalogs */
	uint64_t held; /* of memory: deleted or replaced, and still mapped by somebody */
	uint64_t events, max_events;
	uint64_t connections, max_connections;
	uint64_t requests, max_requests;
	uint64_t copies, max_copies;	 /* bytes of copies of rings */
	uint64_t programs, max_programs; /* one for each source of an event */
	uint64_t max_on_tracepoint;	 /* programs on one tracepoint: of a user, or of all */
	uint64_t sample_rate, max_sample_rate; /* samples a second and CPU */
};

/* Lists the total, the namespaces that the caller may read, and the caller's own (root: all users).
 * *ret is one array for free(3). */
int perfpersist_limits(struct perfpersist *p, struct perfpersist_limit **ret, size_t *ret_n);

/* ── Notifications ─────────────────────────────────────────────────────────────────────────── */

enum perfpersist_notice_kind {
	PERFPERSIST_NOTICE_STARTED = 1, /* the first one: from here on no notice is missing */
	PERFPERSIST_NOTICE_CREATED = 2,
	PERFPERSIST_NOTICE_CHANGED = 3, /* filter, rate, buffer, or it records on more CPUs */
	PERFPERSIST_NOTICE_PAUSED = 4,
	PERFPERSIST_NOTICE_RESUMED = 5,
	PERFPERSIST_NOTICE_DELETED = 6,
	PERFPERSIST_NOTICE_CPU_ONLINE = 7,
	PERFPERSIST_NOTICE_CPU_OFFLINE = 8,
	PERFPERSIST_NOTICE_LOST = 9, /* so many came faster than they were read: list again */
	/* A trigger has fired: info->id is the tape's, the rest is as of the event that it froze. */
	PERFPERSIST_NOTICE_TAPE = 10,
	/* A trigger with ACTION_NOTIFY has fired: info is its own. */
	PERFPERSIST_NOTICE_FIRED = 11,
};

struct perfpersist_notice {
	size_t sz;
	uint32_t kind;			     /* enum perfpersist_notice_kind */
	uint32_t cpu;			     /* CPU_ONLINE, CPU_OFFLINE */
	uint64_t lost;			     /* LOST */
	const struct perfpersist_info *info; /* about events, without counts; else NULL */
};
typedef void (*perfpersist_watch_callback)(struct perfpersist *p,
					   const struct perfpersist_notice *notice, void *userdata);

/*
 * From this call on, the callback gets notifications of changes to the events of a namespace, or to
 * all that the caller may read (ns NULL), and of CPU hotplug. It runs within perfpersist_dispatch()
 * and other calls on p, the first time (STARTED) within this call, until p is freed. It must not
 * free p. When the connection ends it runs no more, and perfpersist_dispatch() returns -ECONNRESET.
 * The namespace need not exist yet. -EACCES, -EINVAL (not a namespace's name), -EDQUOT (too many on
 * this connection).
 */
int perfpersist_watch(struct perfpersist *p, const char *ns, perfpersist_watch_callback cb,
		      void *userdata);

/*
 * Returns a non-blocking eventfd that becomes readable with new records of an event created with
 * PERFPERSIST_WAKEUP: at once for the first, then every 10 ms at most. read(2) it, then look into
 * the rings. The caller closes it; it works as long as p lives. -EINVAL: the event does not wake
 * readers; -EDQUOT: too many on this connection, or of this user; -EOPNOTSUPP: the kernel has no
 * aio.
 */
int perfpersist_wakeup(struct perfpersist *p, const char *ns, const char *name, int *ret_fd);

/* ── Saves ──────────────────────────────────────────────────────────────────────────────── */

/* The name of an event, or of a namespace (name NULL): all its events. */
struct perfpersist_name {
	const char *ns, *name;
};

#define PERFPERSIST_KEEP_ALL UINT32_MAX

struct perfpersist_save_options {
	size_t sz;
	const char *path; /* directory to make; NULL: the instance's place, by its time */
	uint32_t keep;	  /* path NULL: remove the oldest saves beyond so many; 0: 3 */
	const struct perfpersist_name *names; /* n_names 0: all that the caller may read */
	size_t n_names;
};

struct perfpersist_save_result {
	size_t sz;
	uint32_t events;  /* 0: there were none; no save was made */
	uint32_t failed;  /* events that could not be read completely */
	uint32_t removed; /* older saves */
	uint64_t records, bytes;
	char path[4096];
	char message[512]; /* why the first of the failed ones failed */
};

/*
 * Saves the rings' contents to files. A connection with `saved` reads them, also after a reboot.
 * Recording continues meanwhile. The save is complete and on the disk, or does not exist. Its files
 * belong to the caller, and to the group of each namespace, which may read them if it may read the
 * namespace. ret may be NULL. -EACCES, -EEXIST (path), -EBUSY (another process is writing it),
 * -ENOSPC, -EDQUOT, -EROFS, -ENOENT (no such event), -EOPNOTSUPP (p is a save); other errors are
 * the file system's.
 */
int perfpersist_save(struct perfpersist *p, const struct perfpersist_save_options *opts,
		     struct perfpersist_save_result *ret);

struct perfpersist_saved {
	size_t sz;
	uint64_t time; /* when it was made, CLOCK_REALTIME, ns; in whole seconds */
	char name[32]; /* 2026-11-21T23-40-12Z: in UTC, so that names sort */
	char path[256];
};

/* Lists the saves of an instance (NULL or "": the system's own), the oldest first. *ret is one
 * array for free(3). -EINVAL, -EACCES, -ENOMEM. */
int perfpersist_saves(const char *instance, struct perfpersist_saved **ret, size_t *ret_n);

/* ── Checkpoints ────────────────────────────────────────────────────────────────────────────── */

/*
 * What rings hold, in files that survive a crash of the machine at any moment. They are written
 * again and again, and only with what is new. After the next boot they become a save; a connection
 * with `saved` "previous-boot" reads the newest of these. Only the process that has the directory
 * open writes there. No two threads may use the same directory at a time.
 */
struct perfpersist_event;
struct perfpersist_checkpoints;
struct perfpersist_checkpoint;

/* Opens the directory, which must exist, belong to the caller, and be writable to nobody else.
 * instance: NULL or "": the system's own; directory NULL: the instance's place. -EBUSY: another
 * process has it open; -EACCES, -ENOENT and others. */
int perfpersist_checkpoints_open(const char *instance, const char *directory,
				 struct perfpersist_checkpoints **ret);
/* Call it after freeing all checkpoints in it. NULL is fine. */
void perfpersist_checkpoints_free(struct perfpersist_checkpoints *c);

/*
 * Turns what earlier boots left into saves, one for each boot, and removes the oldest saves beyond
 * `keep`. 1: a save was made, and *ret (may be NULL) describes the last one; 0: there was nothing.
 * Files that are damaged are left out and counted as failed, and so is a boot whose files cannot be
 * read or written now: they stay for the next call. Of more boots than `keep` the oldest are removed
 * without a save, and each counts as failed. If no save was made, what failed last is the error: those
 * of perfpersist_save(); -EPROTONOSUPPORT: a newer version wrote a file; -EDQUOT: more boots than
 * `keep`. *ret has the number then, too.
 */
int perfpersist_checkpoints_recover(struct perfpersist_checkpoints *c, uint32_t keep,
				    struct perfpersist_save_result *ret);

/*
 * Removes the files of this boot that no open checkpoint writes: of events that are gone. keep: the ids
 * of events (of those whose rings they are) whose files stay although nothing writes them now, because
 * the event could not be opened, for example.
 */
void perfpersist_checkpoints_sweep(struct perfpersist_checkpoints *c, const uint64_t *keep,
				   size_t n);

/* Bytes on the disk that a checkpoint of the event takes: a little more than twice its rings. */
uint64_t perfpersist_checkpoint_size(struct perfpersist_event *e);

/*
 * Begins checkpoints of an opened event: 0, with a new file, all of whose space is allocated and synced
 * now; 1: it goes on with the file of an earlier process. It keeps e's rings open; the caller may free e.
 * -EEXIST: there is one of these rings; -EINVAL (e has copies), -ENOSPC, -EDQUOT and others.
 */
int perfpersist_checkpoint_new(struct perfpersist_checkpoints *c, struct perfpersist_event *e,
			       struct perfpersist_checkpoint **ret);
void perfpersist_checkpoint_free(struct perfpersist_checkpoint *one);

struct perfpersist_checkpoint_stat {
	size_t sz;
	uint64_t written; /* bytes; 0: nothing was new, and the file not either */
	/* bytes that max_bytes left out for good: these are older than what was written of their ring;
	 * or the ring is damaged there. What has no room at all waits for the next call. */
	uint64_t skipped;
};

/*
 * Writes what is new, the newest max_bytes of it at most, and waits until it is on the disk. Until
 * then, and after any error, the file has what the last call wrote. ret may be NULL. -ESTALE: the event
 * was refreshed since perfpersist_checkpoint_new(), and has other rings now; begin anew.
 */
int perfpersist_checkpoint_write(struct perfpersist_checkpoint *one, uint64_t max_bytes,
				 struct perfpersist_checkpoint_stat *ret);

/* ── Sideband ───────────────────────────────────────────────────────────────────────────── */

/* The processes that ran, and their files: the names of the processes and addresses in samples. */
struct perfpersist_sideband_info {
	size_t sz;
	bool keeping; /* false: nothing is kept: nothing records, or the configuration forbids it */
	uint32_t pid; /* of the keeper; 0: there is none */
	uint64_t size;		     /* of the file returned; 0: none */
	uint64_t began;		     /* CLOCK_MONOTONIC, ns: when the keeping began */
	uint64_t complete;	     /* processes that ended before this time may be missing */
	uint64_t lost;		     /* records that the kernel could not deliver since `began` */
	uint64_t forgotten;	     /* ended processes that the limit removed */
	uint64_t processes;	     /* processes that are kept */
	uint64_t ended;		     /* of these, those that have ended */
	uint64_t memory, max_memory; /* bytes */
	uint64_t cpu_time;	     /* ns that the keeper has run */
	/* PERFPERSIST_SIDEBAND_*: why kept only since `began`, or why not kept */
	uint32_t why;
	uint32_t unseen; /* BPF programs loaded and unloaded between two looks */
};

/*
 * FIRST: kept since the first event, or unknown. Not kept: NOTHING records, OFF by configuration,
 * SOON to be, REFUSED by engine or kernel, AWAY: no keeper is available, STUCK: it does not answer.
 * Kept for a shorter time than there are events: the previous keeper has GONE, or was STUCK.
 */
enum {
	PERFPERSIST_SIDEBAND_FIRST,
	PERFPERSIST_SIDEBAND_NOTHING,
	PERFPERSIST_SIDEBAND_OFF,
	PERFPERSIST_SIDEBAND_SOON,
	PERFPERSIST_SIDEBAND_REFUSED,
	PERFPERSIST_SIDEBAND_AWAY,
	PERFPERSIST_SIDEBAND_GONE,
	PERFPERSIST_SIDEBAND_STUCK,
};

/*
 * Gets the sideband of a time (CLOCK_MONOTONIC, ns; until 0: now): of all processes that were alive
 * at `since` or later and began no later than `until`. A caller who may read any event may call it.
 * *ret_fd is a sealed memfd, to be read or mapped: a header and perf records, as proto/sideband.h
 * describes; the caller closes it. It is -1 if nothing is kept. ret_fd NULL: only info is set. info
 * may be NULL. Direct: asks the keeper itself, as root. -EACCES (may read no event), -EDQUOT
 * (copies), -EAGAIN (the keeper is away), -EOPNOTSUPP (the save has none, or the daemon is older).
 */
int perfpersist_sideband(struct perfpersist *p, uint64_t since, uint64_t until,
			 struct perfpersist_sideband_info *info, int *ret_fd);

/* ── AUX areas ──────────────────────────────────────────────────────────────────────────── */

/* One CPU's trace of an event whose recorder is PERFPERSIST_RECORDER_AUX. */
struct perfpersist_auxtrace_info {
	size_t sz;
	uint32_t cpus; /* on which the event traces */
	uint32_t cpu;  /* the number of this one */
	uint64_t size; /* bytes of the file */
	/* how long its tracing was stopped before this copy, by pauses and copies, since the keeper
	 * or the CPU began it: ms, rounded up, at most UINT32_MAX */
	uint32_t untraced;
};

/*
 * Gets a copy of what one CPU's PMU has traced for the event with this id, the index-th of its
 * CPUs; for that it is stopped a moment. *ret_fd is a sealed memfd, to be read or mapped: a header,
 * perf records, the trace, and samples of the event's other sources (PERFPERSIST_AUX_GROUP), as
 * proto/auxtrace.h describes; the caller closes it. info may be NULL. -EINVAL: the event has no AUX
 * areas, or not so many; -ENODATA: no area on this CPU just now; -EDQUOT (copies); -EAGAIN (the keeper
 * is away); -EOPNOTSUPP (direct, a save, or the daemon is older). Since 0.1.0.
 */
int perfpersist_auxtrace(struct perfpersist *p, uint64_t id, uint32_t index,
			 struct perfpersist_auxtrace_info *info, int *ret_fd);

/* ── Asynchronous use, for the caller's event loop ──────────────────────────────────────────── */

/* The descriptor to poll for perfpersist_events(); then call perfpersist_dispatch(). -1 when
 * direct: perfpersist_dispatch() then carries out the started requests. */
int perfpersist_fd(struct perfpersist *p);
short perfpersist_events(struct perfpersist *p); /* POLLIN, with POLLOUT while output waits */

/* Does all that does not block, and runs the callbacks of the replies that arrived. Returns how
 * many ran; -ECONNRESET when the daemon is gone, after all callbacks have run with that error. */
int perfpersist_dispatch(struct perfpersist *p);

/*
 * Runs once for each request: error is 0 or a negative errno value, with a message in
 * perfpersist_error(). infos holds n events (list: all; create, delete, show: one), valid during
 * the callback. event (open) belongs to the callback, which frees it; otherwise it is NULL. The
 * callback may start new requests, and must not free p.
 */
struct perfpersist_event;
struct perfpersist_result {
	size_t sz;
	int error;
	const struct perfpersist_info *infos;
	size_t n;
	struct perfpersist_event *event;
};
typedef void (*perfpersist_callback)(struct perfpersist *p, const struct perfpersist_result *result,
				     void *userdata);

/* Each starts a request and returns 0 at once, or a negative errno value, and then does not run the
 * callback. */
int perfpersist_create_async(struct perfpersist *p, const char *ns, const char *name,
			     const struct perfpersist_create_options *opts, perfpersist_callback cb,
			     void *userdata);
int perfpersist_delete_async(struct perfpersist *p, const char *ns, const char *name,
			     perfpersist_callback cb, void *userdata);
int perfpersist_list_async(struct perfpersist *p, const char *ns, perfpersist_callback cb,
			   void *userdata);
int perfpersist_show_async(struct perfpersist *p, const char *ns, const char *name,
			   perfpersist_callback cb, void *userdata);
int perfpersist_open_async(struct perfpersist *p, const char *ns, const char *name,
			   perfpersist_callback cb, void *userdata);

/* ── Reading ────────────────────────────────────────────────────────────────────────────── */

/* An opened event: its rings, mapped read-only and live. It needs neither connection nor daemon any
 * more, and outlives the event's deletion. */

int perfpersist_open(struct perfpersist *p, const char *ns, const char *name,
		     struct perfpersist_event **ret);
int perfpersist_open_by_id(struct perfpersist *p, uint64_t id, struct perfpersist_event **ret);

/* Gets copies of the rings as of now, even if the caller may have the rings themselves:
 * perfpersist_event_is_copy() is then true. */
int perfpersist_open_copy(struct perfpersist *p, const char *ns, const char *name,
			  struct perfpersist_event **ret);

/* Whether e holds copies. A caller who may read an event but may not have its live rings gets
 * copies from every open. */
bool perfpersist_event_is_copy(struct perfpersist_event *e);

/*
 * Replaces copies by new ones, over p. For live rings, adds those of CPUs that came online since
 * (perfpersist_watch() reports the event as CHANGED). Existing snapshots and cursors keep their
 * contents, and a follower continues where it was. No other thread may take one meanwhile, and
 * descriptors of perfpersist_ring_fd() are closed. After a failure the old rings stay. -ESTALE: the
 * event's rings were replaced; open it again. -ENOENT: the event is gone.
 */
int perfpersist_event_refresh(struct perfpersist_event *e, struct perfpersist *p);

/* The rings' state, which they contain themselves. */
enum perfpersist_ring_state {
	PERFPERSIST_RINGS_RUNNING = 0,
	PERFPERSIST_RINGS_PAUSED = 1,
	PERFPERSIST_RINGS_RETIRED = 2, /* replaced by others: open the event again */
	PERFPERSIST_RINGS_DELETED = 3,
};
enum perfpersist_ring_state perfpersist_event_state(struct perfpersist_event *e);

/*
 * Opens an event from ring descriptors that come from elsewhere (LISTEN_FDS, a file with the copy
 * of a ring); if several events share the rings, the descriptor of their catalog must be among
 * them. Duplicates the descriptors. -EBADMSG (not a ring), -EINVAL (rings of different events or
 * sets, two of one CPU, or no catalog).
 */
int perfpersist_open_fds(const int *fds, size_t n, struct perfpersist_event **ret);

void perfpersist_event_free(struct perfpersist_event *e);

/*
 * Returns the contents of the rings' headers (id, names, text, sizes, sample type, CPUs) with their
 * live counts; owner, group, mode, creator, filter, limits and the misses of tracepoint recorders
 * are as of the opening. After perfpersist_open_fds() these are unknown: UINT32_MAX for ids of
 * users, else 0, with missed_unknown.
 */
int perfpersist_event_info(struct perfpersist_event *e, struct perfpersist_info *ret);

/*
 * The CLOCK_REALTIME, in nanoseconds, that belongs to the time of one of e's records: by this
 * machine's clocks as of the first call; for a save, as they were then; for other copies from an
 * earlier boot, as they were when the event was created.
 */
uint64_t perfpersist_event_realtime(struct perfpersist_event *e, uint64_t time);

/* Rings are numbered 0 … n - 1; CPUs are names, not indices. */
size_t perfpersist_event_rings(struct perfpersist_event *e);
int perfpersist_ring_cpu(struct perfpersist_event *e, size_t ring);
int perfpersist_ring_fd(struct perfpersist_event *e, size_t ring); /* stays e's */
/* Likewise its catalog, if several events share the rings; -ENOENT: they do not. */
int perfpersist_catalog_fd(struct perfpersist_event *e);

struct perfpersist_ring_stat {
	size_t sz;
	uint64_t records, bytes;
	uint64_t missed;  /* those that the recorder itself counts: of sampling, and of writers
			   * that interrupt each other; perfpersist_show() returns all */
	uint64_t limited; /* dropped by max_rate */
	uint64_t idle;	  /* sampling clocks: periods without a sample because the CPU idled; not in
		        * missed */
	uint64_t missed_time; /* sampling: when something was last missed, CLOCK_MONOTONIC ns; 0:
			       * never, or unknown */
};
int perfpersist_ring_stat(struct perfpersist_event *e, size_t ring,
			  struct perfpersist_ring_stat *ret);

/*
 * The struct perf_event_attr (size bytes), and the text of the tracepoint's format as tracefs has
 * it, without a NUL at its end; NULL with a size of 0 if it is no tracepoint. Both are valid as
 * long as e.
 */
const void *perfpersist_event_attr(struct perfpersist_event *e, size_t *ret_size);
const char *perfpersist_event_format(struct perfpersist_event *e, size_t *ret_size);

/* The events that share the rings: 1, or as many as there are under the name. All pointers are
 * valid as long as e; texts have no NUL. -EINVAL: there is no source of that index. */
struct perfpersist_source {
	size_t sz;
	uint64_t id; /* in each record's PERF_SAMPLE_IDENTIFIER; a single source: 0 */
	uint64_t sample_type;
	uint32_t recorder; /* enum perfpersist_recorder */
	const char *event; /* as perf writes it: sched:sched_switch */
	size_t event_size;
	const void *attr; /* struct perf_event_attr */
	size_t attr_size;
	const char *format; /* tracepoints and probes; else NULL */
	size_t format_size;
};
size_t perfpersist_event_sources(struct perfpersist_event *e);
int perfpersist_event_source(struct perfpersist_event *e, size_t source,
			     struct perfpersist_source *ret);

/* A snapshot: copies of all rings, consistent, with nothing lost and the recorders undisturbed.
 * Records are valid until the snapshot is taken anew or freed. */
struct perfpersist_snapshot;

int perfpersist_snapshot_new(struct perfpersist_event *e, struct perfpersist_snapshot **ret);

/* Keeps the memory (of one snapshot, up to 256 MiB) for the next one of this process; the kernel
 * may take back all but 4 MiB of it when memory is short (MADV_FREE). */
void perfpersist_snapshot_free(struct perfpersist_snapshot *s);

/* Copies all rings as they are now, into the memory that the snapshot already has. -ENOMEM. */
int perfpersist_snapshot_take(struct perfpersist_snapshot *s);

/* A record, decoded. Pointers lead into the snapshot. Fields that sample_type lacks are 0. */
struct perfpersist_sample {
	uint32_t cpu;
	uint32_t source; /* index: see perfpersist_event_source() */
	uint32_t pid, tid;
	uint64_t time; /* CLOCK_MONOTONIC, ns */
	uint64_t ip, addr, id, period;
	const uint64_t *callchain; /* with PERF_CONTEXT_* marks; not aligned: memcpy */
	size_t n_callchain;
	const void *raw; /* tracepoint payload, as its format says, common fields included */
	size_t raw_size;
	const void *record; /* the whole PERF_RECORD_SAMPLE */
	size_t record_size;
	/* Of events with stack_user. Since 0.1 */
	uint64_t user_abi; /* PERF_SAMPLE_REGS_ABI_*; NONE: a kernel thread, without registers */
	const uint64_t *user_regs; /* those of the attributes' sample_regs_user; not aligned */
	size_t n_user_regs;
	const void *user_stack; /* from the stack pointer on; as much as was in memory */
	size_t user_stack_size;
};

/* Iterates over one ring's records, the newest first. Returns 1 with *ret filled; 0 at the end;
 * -EBADMSG (damaged; the iteration is over); -ESTALE (the snapshot was taken anew since). */
struct perfpersist_cursor;
int perfpersist_cursor_new(struct perfpersist_snapshot *s, size_t ring,
			   struct perfpersist_cursor **ret);
int perfpersist_cursor_next(struct perfpersist_cursor *c, struct perfpersist_sample *ret);
void perfpersist_cursor_free(struct perfpersist_cursor *c);

/*
 * Iterates over the records of all rings in order of time. newest > 0: only that many of the
 * newest. From a damaged ring a merge returns the records that could be read;
 * perfpersist_merge_damaged() is the number of damaged rings. perfpersist_merge_next() returns 1, 0
 * or -ESTALE, as a cursor does. Records of one ring keep their order; between different rings with
 * the same time, the later ring's record counts as the newer.
 */
enum perfpersist_order {
	PERFPERSIST_OLDEST_FIRST = 0,
	PERFPERSIST_NEWEST_FIRST = 1,
};
struct perfpersist_merge;
int perfpersist_merge_new(struct perfpersist_snapshot *s, enum perfpersist_order order,
			  size_t newest, struct perfpersist_merge **ret);
int perfpersist_merge_next(struct perfpersist_merge *m, struct perfpersist_sample *ret);
size_t perfpersist_merge_damaged(struct perfpersist_merge *m);
void perfpersist_merge_free(struct perfpersist_merge *m);

/*
 * A follower returns the records that come after perfpersist_follow_new(), each once, with an exact
 * count of those that were overwritten before they could be read. It polls memory and makes no
 * system call; the recorder is not touched. For copies, perfpersist_event_refresh() brings the next
 * records.
 */
struct perfpersist_follow;

/* newest > 0: begins with that many of the newest records that are there already. */
int perfpersist_follow_new(struct perfpersist_event *e, size_t newest,
			   struct perfpersist_follow **ret);

/*
 * The next record, in order of time among the records found so far. 1 with *ret filled, valid until
 * the next call; 0: nothing new just now; -EBADMSG (for ever, at damage, after all readable
 * records); -ENOMEM.
 */
int perfpersist_follow_next(struct perfpersist_follow *f, struct perfpersist_sample *ret);

struct perfpersist_follow_stat {
	size_t sz;
	uint64_t read;	      /* records given out */
	uint64_t overwritten; /* records that came and were overwritten before they were read */
	uint64_t begin;	      /* records that the ring had had before the first that is followed */
};
/*
 * Reads the counts of one ring. Once its writer rests and all has been read, begin + read +
 * overwritten is exactly the number of records that it has written; while it writes without a
 * pause, overwritten may lag behind.
 */
int perfpersist_follow_stat(struct perfpersist_follow *f, size_t ring,
			    struct perfpersist_follow_stat *ret);

/* The number of nanoseconds to wait before looking again: few while records come, up to 100 ms when
 * none do, and never so many that a ring would wrap at its present rate. */
uint64_t perfpersist_follow_delay(struct perfpersist_follow *f);

void perfpersist_follow_free(struct perfpersist_follow *f);

/* ── Several events ─────────────────────────────────────────────────────────────────────── */

/*
 * Several events at nearly one moment: snapshots of all of them, one right after the other, and
 * their records in order of time.
 */
struct perfpersist_interleave;

/* Takes the snapshots. events need not live on. -ENOMEM. */
int perfpersist_interleave_new(struct perfpersist_event *const *events, size_t n,
			       struct perfpersist_interleave **ret);

/* The next record of all events, oldest first, and the index in events[] of the one that it is of;
 * among records of one time those of the earlier event come first. 1 with both filled; 0 at the
 * end. Pointers are valid as long as i. */
int perfpersist_interleave_next(struct perfpersist_interleave *i, struct perfpersist_sample *ret,
				size_t *ret_event);

/* An event as it was just before its snapshot, with its counts. -EINVAL: there is no such event. */
int perfpersist_interleave_info(struct perfpersist_interleave *i, size_t event,
				struct perfpersist_info *ret);

/* After the end: the time (CLOCK_MONOTONIC, ns) before which records of an event have been
 * overwritten in its rings; 0: none has been. What rings of an earlier set held is not there, either
 * (perfpersist_info.set is then above 1). */
uint64_t perfpersist_interleave_begin(struct perfpersist_interleave *i, size_t event);

/* A part of what was recorded: one event's records on one CPU. */
struct perfpersist_history {
	size_t sz;
	uint32_t cpu;
	/* CLOCK_MONOTONIC, ns: what the event recorded in between is there; from == to: nothing of it
	 * is known to be complete */
	uint64_t from, to;
	uint64_t missed;  /* by the event, on all CPUs and since it was created, at unknown times
			   * (in a file: beside those of perfpersist_perfdata_lost()) */
	uint64_t limited; /* likewise, dropped by its max_rate */
	bool missed_at_least; /* missed is a lower bound */
};

/* After the end: the history of an event's ring (perfpersist_event_rings()). 0; -EINVAL: there is no
 * such ring. */
int perfpersist_interleave_history(struct perfpersist_interleave *i, size_t event, size_t ring,
				   struct perfpersist_history *ret);

/* Rings of which not all could be read. */
size_t perfpersist_interleave_damaged(struct perfpersist_interleave *i);
void perfpersist_interleave_free(struct perfpersist_interleave *i);

/*
 * Several events as they go on: the records of all of them, each once or counted as overwritten, in
 * order of time, and what becomes of the events. Records come a few milliseconds late, because a
 * recorder writes one a moment after it took the time. For event loops: poll the descriptor for
 * POLLIN, for perfpersist_stream_delay() at most; then perfpersist_stream_dispatch(), and then
 * perfpersist_stream_next() until it returns 0. Nothing here waits, but for the daemon's answers.
 */
struct perfpersist_stream;

struct perfpersist_stream_options {
	size_t sz;
	bool wakeup; /* be woken by records instead of looking for them; all events must have been
		       * created with PERFPERSIST_WAKEUP */
	bool at_once; /* records are not late: in order of time among those that one dispatch finds */
};

/* p is the stream's from here on, and freed with it, unless this fails; until then it may be used
 * for other calls, and perfpersist_error(p) tells of the stream's failures, too. The daemon tells
 * over it what becomes of events. NULL: nobody does; an event then ends when it gets new rings.
 * opts may be NULL. -EINVAL, -EMFILE, -ENOMEM. */
int perfpersist_stream_new(struct perfpersist *p, const struct perfpersist_stream_options *opts,
			   struct perfpersist_stream **ret);

/* Follows e, too, which need not live on; newest as for perfpersist_follow_new(). Returns its
 * number: 0, 1, … -ENOMEM; with `wakeup` also as perfpersist_wakeup() and perfpersist_watch(). */
int perfpersist_stream_add(struct perfpersist_stream *s, struct perfpersist_event *e,
			   size_t newest);

enum perfpersist_stream_kind {
	PERFPERSIST_STREAM_RECORD = 1,
	PERFPERSIST_STREAM_OVERWRITTEN = 2, /* so many records were, before they could be read */
	PERFPERSIST_STREAM_RESIZED = 3,	    /* it has other rings, read from their beginning */
	PERFPERSIST_STREAM_REPLACED = 4,    /* by another event of that name, read likewise */
	PERFPERSIST_STREAM_DELETED = 5,	    /* the event is gone, and this is its last */
	PERFPERSIST_STREAM_PAUSED = 6,
	PERFPERSIST_STREAM_RESUMED = 7,
	PERFPERSIST_STREAM_UNATTENDED = 8, /* the daemon is gone: nobody tells or wakes any more,
					    * and records are looked for instead */
	PERFPERSIST_STREAM_END = 9,  /* all events are gone, or the stream was stopped; the last */
	PERFPERSIST_STREAM_CUT = 10, /* from then on records of the event are missing, uncounted: a
				      * ring is damaged, or its last copy could not be had */
};

struct perfpersist_stream_item {
	size_t sz;
	uint32_t kind;	/* enum perfpersist_stream_kind */
	size_t event;	/* its number; of UNATTENDED and END: 0 */
	uint64_t time;	/* CLOCK_MONOTONIC, ns: of the record, else when it was found; of END: 0 */
	uint64_t count; /* OVERWRITTEN */
	bool gap; /* RESIZED, REPLACED: records in between were not read, and are not counted: there
		   * were other rings, or the old ones were copied, the last time before their end */
	struct perfpersist_sample sample; /* RECORD */
};

/* Looks what has become of the events and what there is to read. 0; 1: there is more, so come again
 * when all was given out, without waiting. -EBADMSG (a ring is damaged) and -ECONNRESET (an event
 * needs copies or new rings, and the daemon is gone; those it has were read): that event ends, and
 * the others go on. -ENOMEM, or as perfpersist_open(), for copies or new rings that have been refused
 * for two seconds: the next dispatch tries again. perfpersist_stream_next() still gives out what was
 * complete by then. */
int perfpersist_stream_dispatch(struct perfpersist_stream *s);

/* The next item. 1 with *ret filled (its sz set), valid until the next dispatch; 0: nothing until
 * then; -EINVAL. */
int perfpersist_stream_next(struct perfpersist_stream *s, struct perfpersist_stream_item *ret);

/* An event as its records are to be understood: another one after RESIZED and REPLACED, and then
 * the one before is valid until the next of these. NULL: there is none of that number. */
struct perfpersist_event *perfpersist_stream_event(struct perfpersist_stream *s, size_t event);

/* The descriptor to poll (it stays the stream's), and for how long, in nanoseconds. */
int perfpersist_stream_fd(struct perfpersist_stream *s);
uint64_t perfpersist_stream_delay(struct perfpersist_stream *s);

/* The stream ignores records that are written from now on: dispatch, whatever that returns, until END
 * is given out, behind what was recorded before. -EAGAIN then says that the last records of an event
 * that is copied could not be had, within a second. */
void perfpersist_stream_stop(struct perfpersist_stream *s);
void perfpersist_stream_free(struct perfpersist_stream *s);

/* ── perf.data ──────────────────────────────────────────────────────────────────────────── */

/*
 * Writes a file that perf(1) reads: attributes and names of all sources of one or more events, the
 * formats of tracepoints, build ids, clocks, the machine; sideband; and samples. Records must come
 * in order of time. The facts about this machine come from /proc and /sys; those that the caller
 * may not read are left out.
 */
struct perfpersist_perfdata;

struct perfpersist_perfdata_options {
	size_t sz;
	bool pipe;		 /* fd cannot seek: perf's pipe format, all in one direction */
	const char *const *argv; /* command line to store in the file; NULL: none */
	size_t argc;
	bool late_sideband; /* perfdata_sideband() may come when samples have been written, again
			     * and again: for records that are written as they come. Readers of
			     * such a file must sort all of it */
	/* CLOCK_REALTIME that belongs to CLOCK_MONOTONIC 0, ns; 0: this machine's, now */
	uint64_t realtime_offset;
};

/* The caller keeps fd; it is written from its present position (pipe) or from 0 on. -ENOMEM. */
int perfpersist_perfdata_new(int fd, const struct perfpersist_perfdata_options *opts,
			     struct perfpersist_perfdata **ret);

/* Adds the sources of e; before the first record. Returns a number for perfdata_sample(). -ENOMEM,
 * -EBUSY: records have been written. e may be freed afterwards. */
int perfpersist_perfdata_event(struct perfpersist_perfdata *d, struct perfpersist_event *e);

/*
 * From here on, records of a sideband file (perfpersist_sideband()) are written automatically, each
 * before the first sample of its time. Before the first sample, unless late_sideband is set. The
 * caller keeps fd. -1: no sideband; the running processes are taken from /proc, as far as the
 * caller may. -EBADMSG (not such a file).
 */
int perfpersist_perfdata_sideband(struct perfpersist_perfdata *d, int fd);

/*
 * The file gets this trace (perfpersist_auxtrace()), when it is finished: the kernel's records of
 * it, PERF_RECORD_AUXTRACE, and the samples beside it; event: the result of perfdata_event(). Before
 * the first sample. The caller keeps fd. perf decodes the traces of one PMU in a file: -EINVAL: it has
 * another's. -EBADMSG (not such a file), -EBUSY, -ENOMEM.
 */
int perfpersist_perfdata_auxtrace(struct perfpersist_perfdata *d, int event, int fd);

/* event: the result of perfdata_event(). In order of time. -EINVAL, or the error of write(2). */
int perfpersist_perfdata_sample(struct perfpersist_perfdata *d, int event,
				const struct perfpersist_sample *sample);

/* Samples known to be missing at this place, as PERF_RECORD_LOST_SAMPLES. */
int perfpersist_perfdata_lost(struct perfpersist_perfdata *d, int event, uint32_t cpu,
			      uint64_t time, uint64_t lost);

/* Says how complete the records of an event's source on one CPU are; source UINT32_MAX: of all its
 * sources. Readers that do not know this skip it. -EINVAL, or the error of write(2). */
int perfpersist_perfdata_history(struct perfpersist_perfdata *d, int event, uint32_t source,
				 const struct perfpersist_history *history);

/* Writes the rest: sideband, features, the header. Then the file is complete. */
int perfpersist_perfdata_finish(struct perfpersist_perfdata *d);

uint64_t perfpersist_perfdata_bytes(struct perfpersist_perfdata *d); /* written so far */
void perfpersist_perfdata_free(struct perfpersist_perfdata *d);

/* Version of the library, "0.1.0". */
const char *perfpersist_version(void);

#ifdef __cplusplus
}
#endif

#endif
