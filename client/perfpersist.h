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
	const char *saved; /* neither: from a save (perfpersist_save()), or the newest of those in
			      a directory, by its path; "": the newest of the instance; the name
			      of a save: that one of the instance. NULL: no */
};

/* Connects. opts may be NULL. -ECONNREFUSED, -EACCES (direct: not root), -ENOENT (direct: there
 * is no registry; saved: there is no save), -EINVAL (no name of an instance, the path is too long,
 * or direct and saved at once), -ENOMEM. */
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
	PERFPERSIST_RECORDER_PROBE = 4,
};

enum perfpersist_state {
	PERFPERSIST_CREATING = 1,
	PERFPERSIST_RUNNING = 2,
	PERFPERSIST_DELETING = 3,
	PERFPERSIST_PAUSED = 4,
	PERFPERSIST_CHANGING = 5, /* being changed, paused or resumed just now */
};

#define PERFPERSIST_FREQ (1U << 0)	 /* period is a frequency in Hz */
#define PERFPERSIST_CALLCHAIN (1U << 1)	 /* with kernel and user call chains */
#define PERFPERSIST_ALL_CPUS (1U << 2)	 /* info only: no CPUs were named */
#define PERFPERSIST_GENERIC (1U << 3)	 /* tracepoints: generic, though a tp_btf one is there */
#define PERFPERSIST_WAKEUP (1U << 4)	 /* wakes readers on each record: perfpersist_wakeup() */
#define PERFPERSIST_CONFIGURED (1U << 5) /* info only: the configuration made it */
#define PERFPERSIST_SHARE (1U << 6)	 /* create: a second name for an equal event, if one runs */
#define PERFPERSIST_NO_SHARE (1U << 7)	 /* create: not even if the daemon's default is to share */
#define PERFPERSIST_BOOT (1U << 8)   /* create: write it down, so that it is there after a reboot */
#define PERFPERSIST_COPIES (1U << 9) /* info only: who asks gets copies of the rings */

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
	uint64_t buffer;      /* bytes of each CPU's ring */
	uint64_t memory;      /* bytes of all rings, with what they need beside the records */
	uint64_t sample_type; /* PERF_SAMPLE_*; several sources: PERF_SAMPLE_IDENTIFIER alone */
	uint64_t period;      /* sampling events: period or frequency (flags); else 0 */
	uint64_t max_rate;    /* records a second and CPU that are let through; 0: all */
	uint32_t flags;	      /* PERFPERSIST_* */
	uint32_t owner, group, mode; /* of the namespace */
	uint32_t creator;	     /* uid that is charged for it */
	uint64_t created;	     /* CLOCK_REALTIME, ns */
	char cpus[1024];	     /* CPUs that have a ring, as a list: "0-3,8" */
	char away[1024];	     /* those of them that are offline; what they recorded is there,
				      * and they record again when they come back */
	char lacking[1024];	     /* CPUs that are online and wanted and have no ring yet */
	int lacking_error; /* why, as a negative errno value: -EDQUOT: a limit; else what the
				  * daemon met when it tried; 0: they are about to have one */
	/* since it was created, on all CPUs (of descriptors and saves: since
	 * these rings were made) */
	uint64_t records, bytes;
	uint64_t missed;      /* on all CPUs */
	uint64_t limited;     /* kept out by max_rate, on all CPUs */
	bool missed_unknown;  /* this kernel cannot tell; missed is then a lower bound */
	bool missed_at_least; /* missed is a lower bound: perf itself hides some events from
				  * whoever records their tracepoint */
	uint64_t saved;	      /* read from a save: when that was made, CLOCK_REALTIME, ns; else 0 */
	uint64_t saved_mono;  /* the same moment by CLOCK_MONOTONIC of that boot */
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
	uint32_t flags; /* PERFPERSIST_FREQ, CALLCHAIN, GENERIC, WAKEUP, SHARE, NO_SHARE, BOOT */
	const struct perfpersist_selection
		*selections; /* in place of event and filter; at most 16 */
	size_t n_selections;
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
 * -EINVAL (name, text, filter, size or list is wrong), -EEXIST, -EACCES (also: who asks may not
 * have probes), -ENOENT (this kernel has no such tracepoint, this machine no such PMU, file or
 * cgroup), -ENODEV (a CPU is offline, or there is no tracefs), -EOPNOTSUPP (this kernel or machine
 * cannot record it), -E2BIG (the kernel's 64 programs of a tracepoint are used up), -ENOSPC,
 * -EDQUOT (a limit), -ENOMEM; others are the kernel's.
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

/* What to change; the others stay as they are. */
#define PERFPERSIST_CHANGE_FILTER (1U << 0)
#define PERFPERSIST_CHANGE_BUFFER (1U << 1)
#define PERFPERSIST_CHANGE_MAX_RATE (1U << 2)

struct perfpersist_change_options {
	size_t sz;
	uint32_t what;	    /* PERFPERSIST_CHANGE_* */
	const char *filter; /* for all sources of the event; NULL or "": none */
	uint64_t buffer;    /* bytes of each CPU's ring; the old rings and what they hold go */
	uint64_t max_rate;
};

/*
 * Changes an event that goes on recording: each record goes by the old or by the new, and none
 * is lost or doubled. A new buffer is a new set of rings: who has the old ones open keeps them
 * as they were (perfpersist_event_state() tells). ret may be NULL. -EINVAL, -ENOENT (also of a
 * filter's cgroup), -EMLINK (the event has several names, which would all change), -EOPNOTSUPP
 * (before Linux 5.16), -EDQUOT, -ENOMEM.
 */
int perfpersist_change(struct perfpersist *p, const char *ns, const char *name,
		       const struct perfpersist_change_options *opts, struct perfpersist_info *ret);

/* Pauses or resumes an event, under all names it has, or, if name is NULL, all of a namespace; if
 * some of these fail, so does the call, and the others are done. *ret_n (may be NULL): how many
 * were not so before. -EMLINK: it is a second name, and the first one's owner has the say. */
int perfpersist_pause(struct perfpersist *p, const char *ns, const char *name, bool pause,
		      size_t *ret_n);

/* Reads the daemon's configuration again and applies what differs; root only (-EACCES). 0 also if
 * some of it failed: *ret (may be NULL) tells how much, and the daemon's log all of it. */
struct perfpersist_reload_result {
	size_t sz;
	uint32_t created, changed, deleted, failed;
	char message[512]; /* the first complaint; "" */
};
int perfpersist_reload(struct perfpersist *p, struct perfpersist_reload_result *ret);

/* ── CPUs ─────────────────────────────────────────────────────────────────────────────────── */

/* A CPU that is offline: one that is there, or on which an event has recorded. */
struct perfpersist_cpu_away {
	size_t sz;
	uint32_t cpu;
	uint64_t since; /* CLOCK_REALTIME, ns: when it went, or when that was first seen; 0: not
			   known */
};

/* All of them, by number; also with `direct`. *ret is one array for free(3), *ret_n may be 0.
 * -EOPNOTSUPP: the daemon is older than this library. */
int perfpersist_cpus_away(struct perfpersist *p, struct perfpersist_cpu_away **ret, size_t *ret_n);

/* ── Limits ─────────────────────────────────────────────────────────────────────────────── */

enum perfpersist_limit_scope {
	PERFPERSIST_LIMIT_TOTAL = 1,
	PERFPERSIST_LIMIT_NAMESPACE = 2,
	PERFPERSIST_LIMIT_USER = 3,
};

/* What is used and how much may be, in bytes or numbers; UINT64_MAX: no limit. */
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
	uint64_t programs, max_programs; /* that record: one for each source of an event */
	uint64_t max_on_tracepoint;	 /* programs on one tracepoint: of a user, or of all */
	uint64_t sample_rate, max_sample_rate; /* samples a second and CPU */
};

/* All, those of the namespaces the caller may read, and the caller's own (root: everybody's).
 * *ret is one array for free(3). */
int perfpersist_limits(struct perfpersist *p, struct perfpersist_limit **ret, size_t *ret_n);

/* ── Being told ─────────────────────────────────────────────────────────────────────────── */

enum perfpersist_notice_kind {
	PERFPERSIST_NOTICE_STARTED = 1, /* the first one: from here on nothing is left out */
	PERFPERSIST_NOTICE_CREATED = 2,
	PERFPERSIST_NOTICE_CHANGED = 3, /* filter, rate, buffer, or it records on more CPUs */
	PERFPERSIST_NOTICE_PAUSED = 4,
	PERFPERSIST_NOTICE_RESUMED = 5,
	PERFPERSIST_NOTICE_DELETED = 6,
	PERFPERSIST_NOTICE_CPU_ONLINE = 7,
	PERFPERSIST_NOTICE_CPU_OFFLINE = 8,
	PERFPERSIST_NOTICE_LOST = 9, /* so many came faster than they were read: list anew */
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
 * From now on tells of what happens to the events of a namespace, or of all that the caller may
 * read (ns NULL): the callback runs within perfpersist_dispatch() and other calls on p, the first
 * time (STARTED) within this one, until p is freed. It may not free p. When the connection ends it
 * runs no more, and perfpersist_dispatch() returns -ECONNRESET. A namespace need not be there yet.
 * -EACCES, -EINVAL (no name of a namespace), -EDQUOT (too many on this connection).
 */
int perfpersist_watch(struct perfpersist *p, const char *ns, perfpersist_watch_callback cb,
		      void *userdata);

/*
 * An eventfd (non-blocking) that becomes readable with new records of an event created with
 * PERFPERSIST_WAKEUP, at once for the first and then every 10 ms at most; read(2) it, then look. It
 * is the caller's, and works as long as p lives. -EINVAL: the event does not wake readers;
 * -EDQUOT: too many on this connection, or of this user; -EOPNOTSUPP: the kernel has no aio.
 */
int perfpersist_wakeup(struct perfpersist *p, const char *ns, const char *name, int *ret_fd);

/* ── Saves ──────────────────────────────────────────────────────────────────────────────── */

/* A name of an event, or of a namespace (name NULL): all of its events. */
struct perfpersist_name {
	const char *ns, *name;
};

#define PERFPERSIST_KEEP_ALL UINT32_MAX

struct perfpersist_save_options {
	size_t sz;
	const char *path; /* of the directory to make; NULL: the instance's place, by its time */
	uint32_t keep;	  /* path NULL: remove the oldest saves beyond so many; 0: 3 */
	const struct perfpersist_name *names; /* what to save; n_names 0: all the caller may read */
	size_t n_names;
};

struct perfpersist_save_result {
	size_t sz;
	uint32_t events;  /* 0: there were none, and no save was made */
	uint32_t failed;  /* events that could not be read, or not in whole */
	uint32_t removed; /* older saves */
	uint64_t records, bytes;
	char path[4096];
	char message[512]; /* why the first of the failed ones did */
};

/*
 * Saves what the rings hold to files, from where perfpersist_connect() with `saved` reads it, also
 * after a reboot. Recording goes on meanwhile. The save is there in whole and on the disk, or not
 * at all. Its files belong to the caller, and to the group of each namespace, which may read them
 * if it may read the namespace. ret may be NULL. -EACCES, -EEXIST (path), -EBUSY (it is being
 * written by another), -ENOSPC, -EDQUOT, -EROFS, -ENOENT (no such event), -EOPNOTSUPP (p is a
 * save); others are the file system's.
 */
int perfpersist_save(struct perfpersist *p, const struct perfpersist_save_options *opts,
		     struct perfpersist_save_result *ret);

struct perfpersist_saved {
	size_t sz;
	uint64_t time; /* when it was made, CLOCK_REALTIME, ns; in whole seconds */
	char name[32]; /* 2026-11-21T23-40-12Z: in UTC, so that names sort */
	char path[256];
};

/* The saves of an instance (NULL or "": the system's own), the oldest first. *ret is one array for
 * free(3). -EINVAL, -EACCES, -ENOMEM. */
int perfpersist_saves(const char *instance, struct perfpersist_saved **ret, size_t *ret_n);

/* ── Sideband ───────────────────────────────────────────────────────────────────────────── */

/* Who ran, and from which files: what names the processes and addresses in samples. */
struct perfpersist_sideband_info {
	size_t sz;
	bool keeping; /* false: nothing is kept: nothing records, or the configuration forbids it */
	uint32_t pid; /* of the keeper; 0: there is none */
	uint64_t size;		     /* of the file that came; 0: none */
	uint64_t began;		     /* CLOCK_MONOTONIC, ns: since when it is kept */
	uint64_t complete;	     /* processes that ended before this time may be missing */
	uint64_t lost;		     /* records that the kernel could not deliver since `began` */
	uint64_t forgotten;	     /* ended processes that had to go for the limit's sake */
	uint64_t processes;	     /* that are kept */
	uint64_t ended;		     /* those of them that have ended */
	uint64_t memory, max_memory; /* bytes */
	uint64_t cpu_time;	     /* ns that the keeper has run */
	/* PERFPERSIST_SIDEBAND_*: kept since then, or not kept, because of what */
	uint32_t why;
	uint32_t unseen; /* BPF programs that came and went before anybody looked */
};

/* FIRST: since there is an event, or not known. Not kept: NOTHING records, OFF by configuration,
 * SOON to be, REFUSED by engine or kernel, AWAY: no keeper can be had, STUCK: it does not answer.
 * Kept, but not since there is an event: the keeper before has GONE, or was STUCK. */
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
 * The sideband of a time (CLOCK_MONOTONIC, ns; until 0: now): of all processes that were alive at
 * `since` or later and began no later than `until`. For whoever may read an event. *ret_fd is a
 * sealed memfd, the caller's, to be read or mapped: a header and perf records, as
 * proto/sideband.h has them; -1 if nothing is kept. ret_fd NULL: only what info says. info may be
 * NULL. Direct: asks the keeper itself, as root. -EACCES (may read no event), -EDQUOT (copies),
 * -EAGAIN (the keeper is away), -EOPNOTSUPP (of a save that has none, or the daemon is older).
 */
int perfpersist_sideband(struct perfpersist *p, uint64_t since, uint64_t until,
			 struct perfpersist_sideband_info *info, int *ret_fd);

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

/* Copies of the rings, made by the daemon just now, though the caller may have the rings
 * themselves: perfpersist_event_is_copy() is then true. */
int perfpersist_open_copy(struct perfpersist *p, const char *ns, const char *name,
			  struct perfpersist_event **ret);

/* Whether e holds copies. Who may read an event but not hold its live rings gets them from every
 * open. */
bool perfpersist_event_is_copy(struct perfpersist_event *e);

/* Of copies: replaces them by new ones, over p. Of live rings: brings those of CPUs that came since
 * (perfpersist_watch() tells: the event is CHANGED). Snapshots and cursors that were taken keep
 * what they have, and a follow goes on where it was; none may be taken in another thread meanwhile,
 * and descriptors of perfpersist_ring_fd() are closed. After a failure the old ones stay. -ESTALE:
 * the event's rings are others by now; open it again. -ENOENT: it is gone. */
int perfpersist_event_refresh(struct perfpersist_event *e, struct perfpersist *p);

/* What has become of an opened event's rings, as they say themselves. */
enum perfpersist_ring_state {
	PERFPERSIST_RINGS_RUNNING = 0,
	PERFPERSIST_RINGS_PAUSED = 1,
	PERFPERSIST_RINGS_RETIRED = 2, /* replaced by others: open the event again */
	PERFPERSIST_RINGS_DELETED = 3,
};
enum perfpersist_ring_state perfpersist_event_state(struct perfpersist_event *e);

/*
 * From ring descriptors of one event got otherwise (LISTEN_FDS, a file with the copy of a
 * ring); where several events share the rings, with the descriptor of their catalog. They are
 * duplicated. -EBADMSG (not a ring), -EINVAL (rings of different events or sets, two of one CPU,
 * or no catalog).
 */
int perfpersist_open_fds(const int *fds, size_t n, struct perfpersist_event **ret);

void perfpersist_event_free(struct perfpersist_event *e);

/* What the rings' headers say (id, names, text, sizes, sample type, cpus) with their live
 * counts; owner, group, mode, creator, filter, limits and misses of tracepoint recorders are as
 * of the opening; after perfpersist_open_fds() they are not known: UINT32_MAX for ids of users,
 * else 0, with missed_unknown. */
int perfpersist_event_info(struct perfpersist_event *e, struct perfpersist_info *ret);

/* The CLOCK_REALTIME, in nanoseconds, that belongs to the time of one of e's records: by this
 * machine's clocks as they are at the first call; of a save, as they were then; of other copies
 * from an earlier boot, as they were when the event was created. */
uint64_t perfpersist_event_realtime(struct perfpersist_event *e, uint64_t time);

/* Rings are numbered 0 … n - 1; their CPUs are names, not indices. */
size_t perfpersist_event_rings(struct perfpersist_event *e);
int perfpersist_ring_cpu(struct perfpersist_event *e, size_t ring);
int perfpersist_ring_fd(struct perfpersist_event *e, size_t ring); /* stays e's */

struct perfpersist_ring_stat {
	size_t sz;
	uint64_t records, bytes;
	uint64_t missed;  /* those that the recorder itself knows of: of sampling, and of writers
			   * that interrupt each other; perfpersist_show() tells all */
	uint64_t limited; /* kept out by max_rate */
	uint64_t idle; /* of sampling clocks: periods that brought no sample because the CPU idled;
			* none of missed */
	uint64_t missed_time; /* of sampling: when something was last missed, CLOCK_MONOTONIC ns; 0:
			       * never, or it is not known */
};
int perfpersist_ring_stat(struct perfpersist_event *e, size_t ring,
			  struct perfpersist_ring_stat *ret);

/* The struct perf_event_attr (size bytes), and the tracepoint's format text as tracefs gave
 * it (not NUL-terminated; NULL and 0 if it is no tracepoint). Both valid as long as e. */
const void *perfpersist_event_attr(struct perfpersist_event *e, size_t *ret_size);
const char *perfpersist_event_format(struct perfpersist_event *e, size_t *ret_size);

/* The events that share the rings: 1, or as many as are under the name. All pointers are valid
 * as long as e; texts are not NUL-terminated. -EINVAL: there is no source of that index. */
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

/*
 * Following: the records that come after perfpersist_follow_new(), each once, with an exact count
 * of those that were overwritten before they could be read. It polls memory and makes no system
 * call; the recorder is not touched. Of copies: perfpersist_event_refresh() brings the next ones.
 */
struct perfpersist_follow;

/* newest > 0: begins with so many of the newest records that are there already. */
int perfpersist_follow_new(struct perfpersist_event *e, size_t newest,
			   struct perfpersist_follow **ret);

/* The next record, in order of time among those that have been found. 1 with *ret filled, valid
 * until the next call; 0: nothing new just now; -EBADMSG (damaged: for ever, after what could be
 * read); -ENOMEM. */
int perfpersist_follow_next(struct perfpersist_follow *f, struct perfpersist_sample *ret);

struct perfpersist_follow_stat {
	size_t sz;
	uint64_t read;	      /* records given out */
	uint64_t overwritten; /* records that came and were overwritten before they were read */
	uint64_t begin;	      /* records that the ring had had before the first that is followed */
};
/* Of one ring. Once its writer rests and all has been read: begin + read + overwritten = what it
 * has written, exactly. While it writes without a pause, overwritten may be behind. */
int perfpersist_follow_stat(struct perfpersist_follow *f, size_t ring,
			    struct perfpersist_follow_stat *ret);

/* How long to wait before looking again, in nanoseconds: short while records come, up to 100 ms
 * when none do, and never so long that a ring would wrap at its present rate. */
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
 * overwritten; 0: none has been. */
uint64_t perfpersist_interleave_begin(struct perfpersist_interleave *i, size_t event);

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
	PERFPERSIST_STREAM_END = 9, /* all events are gone, or the stream was stopped; the last */
};

struct perfpersist_stream_item {
	size_t sz;
	uint32_t kind;	/* enum perfpersist_stream_kind */
	size_t event;	/* its number; of UNATTENDED and END: 0 */
	uint64_t time;	/* CLOCK_MONOTONIC, ns: of the record, else when it was found; of END: 0 */
	uint64_t count; /* OVERWRITTEN */
	bool gap; /* RESIZED, REPLACED: there were other rings in between that nobody has read */
	struct perfpersist_sample sample; /* RECORD */
};

/* Looks what has become of the events and what there is to read. 0; 1: there is more, so come again
 * when all was given out, without waiting. -EBADMSG (a ring is damaged), -ENOMEM, or as
 * perfpersist_open(); what was found before is given out all the same. */
int perfpersist_stream_dispatch(struct perfpersist_stream *s);

/* What comes next. 1 with *ret filled (its sz set), valid until the next dispatch; 0: nothing until
 * then; -EINVAL. */
int perfpersist_stream_next(struct perfpersist_stream *s, struct perfpersist_stream_item *ret);

/* An event as its records are to be understood: another one after RESIZED and REPLACED, and then
 * the one before is valid until the next of these. NULL: there is none of that number. */
struct perfpersist_event *perfpersist_stream_event(struct perfpersist_stream *s, size_t event);

/* What to poll (it stays the stream's), and for how long, in nanoseconds. */
int perfpersist_stream_fd(struct perfpersist_stream *s);
uint64_t perfpersist_stream_delay(struct perfpersist_stream *s);

/* What is recorded from now on is not wanted any more: dispatch as long as that returns 1; what was
 * recorded before is given out, and then END. */
void perfpersist_stream_stop(struct perfpersist_stream *s);
void perfpersist_stream_free(struct perfpersist_stream *s);

/* ── perf.data ──────────────────────────────────────────────────────────────────────────── */

/*
 * Writes a file that perf(1) reads: attributes and names of all sources of one or more events, the
 * formats of tracepoints, build ids, clocks, the machine; sideband; and samples. Records must come
 * in order of time. What the file says of this machine is read from /proc and /sys as far as the
 * caller may; what it may not read is left out.
 */
struct perfpersist_perfdata;

struct perfpersist_perfdata_options {
	size_t sz;
	bool pipe;		 /* fd cannot seek: perf's pipe format, all in one direction */
	const char *const *argv; /* the command line that the file tells; NULL: none */
	size_t argc;
	bool late_sideband; /* perfdata_sideband() may come when samples have been written, again
			     * and again: for what is recorded as it comes. Who reads such a file
			     * has to sort all of it */
	/* CLOCK_REALTIME that belongs to CLOCK_MONOTONIC 0, ns; 0: this machine's, now */
	uint64_t realtime_offset;
};

/* fd stays the caller's; it is written from its present position (pipe) or from 0 on. -ENOMEM. */
int perfpersist_perfdata_new(int fd, const struct perfpersist_perfdata_options *opts,
			     struct perfpersist_perfdata **ret);

/* The sources of e; before the first record. Returns a number for perfdata_sample(). -ENOMEM,
 * -EBUSY: records have been written. e need not live on. */
int perfpersist_perfdata_event(struct perfpersist_perfdata *d, struct perfpersist_event *e);

/* From here on: records of a sideband file (perfpersist_sideband()) come by themselves, each before
 * the first sample of its time. Before the first sample, unless late_sideband is set. fd stays the
 * caller's. -1: none is kept; what runs now is taken from /proc, as far as the caller may. -EBADMSG
 * (not such a file). */
int perfpersist_perfdata_sideband(struct perfpersist_perfdata *d, int fd);

/* event: what perfdata_event() returned. In order of time. -EINVAL, or the error of write(2). */
int perfpersist_perfdata_sample(struct perfpersist_perfdata *d, int event,
				const struct perfpersist_sample *sample);

/* Samples that are known to be missing at this place, as PERF_RECORD_LOST_SAMPLES. */
int perfpersist_perfdata_lost(struct perfpersist_perfdata *d, int event, uint32_t cpu,
			      uint64_t time, uint64_t lost);

/* What remains to be written: the rest of sideband, features, the header. Then the file is whole.
 */
int perfpersist_perfdata_finish(struct perfpersist_perfdata *d);

uint64_t perfpersist_perfdata_bytes(struct perfpersist_perfdata *d); /* written so far */
void perfpersist_perfdata_free(struct perfpersist_perfdata *d);

/* Version of the library, "0.1.0". */
const char *perfpersist_version(void);

#ifdef __cplusplus
}
#endif

#endif
