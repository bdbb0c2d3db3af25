/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libperfpersist: persistent perf events by name.
 *
 * A persistent event records on its own, from its creation to its deletion, into one ring
 * buffer per CPU that any number of processes with the right may map, read-only, at any
 * time. This library lists, creates and deletes such events, opens them, and reads what
 * they recorded.
 *
 * Conventions
 *   - Functions return 0 or a positive documented outcome, or a negative errno value.
 *   - `ret_…` arguments are written only on success, and are then the caller's to free.
 *   - An object belongs to one thread at a time; different objects are independent.
 *   - Option and info structs begin with their size (`sz`), set by the caller with
 *     `.sz = sizeof(struct …)`, so that later versions can append fields. -EINVAL if too small.
 *   - Names are [a-zA-Z_][a-zA-Z0-9_-]*, at most 63 bytes.
 *   - Every descriptor is CLOEXEC. Nothing here installs signal handlers.
 *   - Since: version 0.1, unless a declaration says otherwise.
 *
 * Errors that any call which talks to the daemon may return
 *   -ECONNREFUSED  the daemon is not running
 *   -ECONNRESET    the daemon went away during the call; the request may have been carried out
 *   -EACCES        the namespace does not give the caller that right
 *   -ENOENT        no event (or namespace) of that name or id
 *   -EBADMSG       what arrived is not the protocol
 *   -EPROTONOSUPPORT  the daemon speaks another version
 *   -EDQUOT        the daemon has as many connections as it may
 *   -EAGAIN        its engine is away, or it is short of descriptors: ask again
 *   -EBUSY         the event is being created, or deleted, just now
 * perfpersist_error() holds one sentence about the last failure on a connection.
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
};

/* Connects. opts may be NULL. -ECONNREFUSED, -EACCES (direct: not root), -ENOENT (direct: there
 * is no registry), -EINVAL (no name of an instance, or the path is too long), -ENOMEM. */
int perfpersist_connect(const struct perfpersist_options *opts, struct perfpersist **ret);

/* Ends the connection and frees it; requests under way end with -ECANCELED. NULL is fine. */
void perfpersist_free(struct perfpersist *p);

/* One sentence on the last failed call: what, on what, why, what to do. Valid until the next
 * call on p. Never NULL. With p NULL: on this thread's last failed call without a connection
 * (perfpersist_connect, perfpersist_open_fds and all about opened events). */
const char *perfpersist_error(struct perfpersist *p);

/* ── Events ─────────────────────────────────────────────────────────────────────────────── */

enum perfpersist_recorder {
	PERFPERSIST_RECORDER_GENERIC = 1,
	PERFPERSIST_RECORDER_TP_BTF = 2,
	PERFPERSIST_RECORDER_OVERFLOW = 3,
};

enum perfpersist_state {
	PERFPERSIST_CREATING = 1,
	PERFPERSIST_RUNNING = 2,
	PERFPERSIST_DELETING = 3,
};

#define PERFPERSIST_FREQ (1U << 0)	/* period is a frequency in Hz */
#define PERFPERSIST_CALLCHAIN (1U << 1) /* with kernel and user call chains */
#define PERFPERSIST_ALL_CPUS (1U << 2)	/* info only: no CPUs were named */
#define PERFPERSIST_GENERIC (1U << 3)	/* tracepoints: generic, though a tp_btf one is there */

/* An event, as lists show it. Holds no resources. */
struct perfpersist_info {
	size_t sz;
	uint64_t id; /* never reused */
	char ns[64];
	char name[64];
	char event[1024];     /* perf's syntax */
	uint32_t recorder;    /* enum perfpersist_recorder */
	uint32_t state;	      /* enum perfpersist_state */
	uint64_t buffer;      /* bytes of each CPU's ring */
	uint64_t sample_type; /* PERF_SAMPLE_* */
	uint64_t period;      /* sampling events: period or frequency (flags); else 0 */
	uint32_t flags;	      /* PERFPERSIST_* */
	uint32_t owner, group, mode;
	uint64_t created;		 /* CLOCK_REALTIME, ns */
	char cpus[1024];		 /* CPUs that have a ring, as a list: "0-3,8" */
	uint64_t records, bytes, missed; /* since creation, on all CPUs */
	bool missed_unknown;		 /* this kernel cannot tell; missed is then a lower bound */
};

struct perfpersist_create_options {
	size_t sz;
	const char *event; /* perf's syntax; required */
	const char *cpus;  /* list; NULL: all that are online */
	uint64_t buffer;   /* bytes of each CPU's ring, rounded up to a power of two; 0: 512 KiB */
	uint64_t period;   /* sampling events; 0: 4000 Hz */
	uint32_t flags;	   /* PERFPERSIST_FREQ, PERFPERSIST_CALLCHAIN, PERFPERSIST_GENERIC */
};

struct perfpersist_daemon_info {
	size_t sz;
	uint32_t version; /* of the protocol */
	uint32_t pid;
	uint32_t engine_pid; /* 0: there is none just now */
	uint32_t events;
	uint64_t started; /* CLOCK_REALTIME, ns */
	char release[32];
	char instance[64];
};

/* Is the daemon there? Direct: -EOPNOTSUPP. */
int perfpersist_ping(struct perfpersist *p, struct perfpersist_daemon_info *ret);

/*
 * Creates an event; when it returns 0, the event records. ret (with its sz set) may be NULL.
 * -EINVAL (name, text, size or list is wrong), -EEXIST, -ENOENT (this kernel has no such
 * tracepoint), -ENODEV (a CPU is offline, or there is no tracefs),
 * -EOPNOTSUPP (this kernel or machine cannot record it), -E2BIG (the kernel's 64 programs
 * of a tracepoint are used up), -ENOSPC, -EDQUOT (a limit), -ENOMEM.
 */
int perfpersist_create(struct perfpersist *p, const char *ns, const char *name,
		       const struct perfpersist_create_options *opts, struct perfpersist_info *ret);

/* Deletes it; who has opened it keeps what it recorded. ret (what it was) may be NULL. */
int perfpersist_delete(struct perfpersist *p, const char *ns, const char *name,
		       struct perfpersist_info *ret);
int perfpersist_delete_by_id(struct perfpersist *p, uint64_t id, struct perfpersist_info *ret);

/*
 * All events that the caller may read, by id; of one namespace, or of all if ns is NULL.
 * *ret is one array for free(3).
 */
int perfpersist_list(struct perfpersist *p, const char *ns, struct perfpersist_info **ret,
		     size_t *ret_n);

int perfpersist_show(struct perfpersist *p, const char *ns, const char *name,
		     struct perfpersist_info *ret);

/* ── Asynchronous use, for foreign event loops ──────────────────────────────────────────── */

/* To be polled for perfpersist_events(); then call perfpersist_dispatch(). -1 when direct:
 * perfpersist_dispatch() then carries out what was started. */
int perfpersist_fd(struct perfpersist *p);
short perfpersist_events(struct perfpersist *p); /* POLLIN, with POLLOUT while output waits */

/*
 * Does what can be done without blocking, running the callbacks of replies that arrived.
 * Returns how many ran; -ECONNRESET when the daemon is gone (all callbacks have run with it).
 */
int perfpersist_dispatch(struct perfpersist *p);

/*
 * Runs once per request: error is 0 or a negative errno value (the sentence is then in
 * perfpersist_error()). infos holds n events (list: all; create, delete, show: one) and is
 * valid during the callback. event (open) is the callback's to free, else NULL.
 * It may start new requests, but not free p.
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

/* Each starts a request and returns 0 at once, or a negative errno value and never calls back. */
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

/*
 * An opened event: its rings, mapped read-only and live. It needs neither connection nor
 * daemon any more, and outlives the event's deletion.
 */

int perfpersist_open(struct perfpersist *p, const char *ns, const char *name,
		     struct perfpersist_event **ret);
int perfpersist_open_by_id(struct perfpersist *p, uint64_t id, struct perfpersist_event **ret);

/*
 * From ring descriptors of one event got otherwise (LISTEN_FDS, a file with the copy of a
 * ring). They are duplicated. -EBADMSG (not a ring), -EINVAL (rings of different events, or
 * two of one CPU).
 */
int perfpersist_open_fds(const int *fds, size_t n, struct perfpersist_event **ret);

void perfpersist_event_free(struct perfpersist_event *e);

/* What the rings' headers say (id, names, text, sizes, sample type, cpus) with their live
 * counts; owner, group, mode and misses of tracepoint recorders are as of the opening; after
 * perfpersist_open_fds() they are not known: UINT32_MAX, UINT32_MAX, 0 and missed_unknown, and
 * state is 0. */
int perfpersist_event_info(struct perfpersist_event *e, struct perfpersist_info *ret);

/* Rings are numbered 0 … n - 1; their CPUs are names, not indices. */
size_t perfpersist_event_rings(struct perfpersist_event *e);
int perfpersist_ring_cpu(struct perfpersist_event *e, size_t ring);
int perfpersist_ring_fd(struct perfpersist_event *e, size_t ring); /* stays e's */

struct perfpersist_ring_stat {
	size_t sz;
	uint64_t records, bytes, missed; /* missed: of overflow recorders, else 0 */
};
int perfpersist_ring_stat(struct perfpersist_event *e, size_t ring,
			  struct perfpersist_ring_stat *ret);

/* The struct perf_event_attr (size bytes), and the tracepoint's format text as tracefs gave
 * it (not NUL-terminated; NULL and 0 if it is no tracepoint). Both valid as long as e. */
const void *perfpersist_event_attr(struct perfpersist_event *e, size_t *ret_size);
const char *perfpersist_event_format(struct perfpersist_event *e, size_t *ret_size);

/*
 * A snapshot: copies of all rings, consistent, nothing lost, the recorders undisturbed.
 * Records stay valid until the snapshot is taken anew or freed.
 */
struct perfpersist_snapshot;

int perfpersist_snapshot_new(struct perfpersist_event *e, struct perfpersist_snapshot **ret);

/* Keeps the memory (of one snapshot, up to 256 MiB) for the next one of this process; what is
 * more than 4 MiB of it the kernel may take back whenever it is short (MADV_FREE). */
void perfpersist_snapshot_free(struct perfpersist_snapshot *s);

/* Copies all rings as they are now, into the memory it already has. -ENOMEM. */
int perfpersist_snapshot_take(struct perfpersist_snapshot *s);

/* A record, decoded. Pointers lead into the snapshot. Fields that sample_type lacks are 0. */
struct perfpersist_sample {
	uint32_t cpu;
	uint32_t pid, tid;
	uint64_t time; /* CLOCK_MONOTONIC, ns */
	uint64_t ip, addr, id, period;
	const uint64_t *callchain; /* with PERF_CONTEXT_* marks; not aligned: memcpy */
	size_t n_callchain;
	const void *raw; /* tracepoint payload, as its format says, common fields included */
	size_t raw_size;
	const void *record; /* the whole PERF_RECORD_SAMPLE */
	size_t record_size;
};

/*
 * Walks one ring's records, the newest first. Returns 1 with *ret filled; 0 at the end;
 * -EBADMSG (damaged; the walk is over); -ESTALE (the snapshot was taken anew since).
 */
struct perfpersist_cursor;
int perfpersist_cursor_new(struct perfpersist_snapshot *s, size_t ring,
			   struct perfpersist_cursor **ret);
int perfpersist_cursor_next(struct perfpersist_cursor *c, struct perfpersist_sample *ret);
void perfpersist_cursor_free(struct perfpersist_cursor *c);

/*
 * Walks the records of all rings in order of time. newest > 0: only the newest so many.
 * A damaged ring contributes what could be read of it; perfpersist_merge_damaged() tells how
 * many rings are. perfpersist_merge_next() returns 1, 0 or -ESTALE as a cursor does.
 * Records of one ring keep their order; of different rings with the same time, the later ring's
 * counts as the newer.
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

/* Version of the library, "0.1.0". */
const char *perfpersist_version(void);

#ifdef __cplusplus
}
#endif

#endif
