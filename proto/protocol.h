/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wire protocol between clients and perfpersistd over SOCK_SEQPACKET: one packet is one message
 * with its file descriptors. This file turns the table protocol.def into structs and numbers.
 * PROTOCOL.md explains the rest.
 *
 * Pure: the codec reads and writes memory, nothing else. packet.h moves packets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "fired.h"
#include "ring.h"

#define PP_PROTOCOL_VERSION 1

#define PP_HEADER_SIZE 16
#define PP_PACKET_MAX 65536	/* bytes of any packet, header included */
#define PP_FDS_MAX 253		/* of one packet: the kernel's SCM_MAX_FD */
#define PP_LIST_MAX 11		/* events in one page of a list */
#define PP_CPUS_SIZE 1024	/* of a CPU list with its NUL */
#define PP_FILTER_SIZE 1024	/* of a filter's text with its NUL */
#define PP_SELECTIONS_MAX 16	/* events with filters of their own in one request */
#define PP_LIMITS_MAX 128	/* lines in one page of the limits */
#define PP_AWAY_MAX 1024	/* offline CPUs in one page */
#define PP_TARGETS_SIZE 256	/* of the names of a trigger's targets, with its NUL */
#define PP_TARGET_NAMES_MAX 16	/* and how many these can be */
#define PP_KEY_SIZE 128		/* of a trigger's fields, with their NUL */
#define PP_RATE_SIZE 64		/* of its rate, likewise */
#define PP_TRIGGERS_MAX 64	/* of a namespace; root may create more */
#define PP_TAPES_MAX 64		/* tapes in one page */
#define PP_LINKS_MAX 64		/* links in one request */
#define PP_MAX_STACK 127	/* entries of a call chain: the kernel's default */
#define PP_STACK_USER_MAX 65528 /* bytes of a user stack, as in perf: a __u16, a multiple of 8 */
#define PP_CGROUP_SIZE 256	/* of a cgroup's path or unit, with its NUL */

/* The shortest time between two firings of a trigger, ns: each wakes the daemon. */
#define PP_HOLD_OFF_MIN 10000000ULL

/* The longest window in which a trigger's targets go on recording: ns, and records of each. */
#define PP_AFTER_MAX 60000000000ULL
#define PP_AFTER_RECORDS_MAX 1000000000ULL

/* Bits of the flags of an event. */
#define PP_EVENT_FREQ (1U << 0)	      /* period is a frequency in Hz */
#define PP_EVENT_CALLCHAIN (1U << 1)  /* records call chains, of kernel and user space */
#define PP_EVENT_ALL_CPUS (1U << 2)   /* reply only: no CPUs were named */
#define PP_EVENT_GENERIC (1U << 3)    /* tracepoints: generic, although a tp_btf recorder exists */
#define PP_EVENT_WAKEUP (1U << 4)     /* wakes readers that asked for it on each record */
#define PP_EVENT_CONFIGURED (1U << 5) /* reply only: made by the configuration */
#define PP_EVENT_SHARE (1U << 6)      /* request: share an equal event that runs already */
#define PP_EVENT_NO_SHARE (1U << 7)   /* request: not even if the configuration says so */
#define PP_EVENT_BOOT (1U << 8)	      /* request: write it down, to exist after a reboot */
#define PP_EVENT_COPIES (1U << 9)     /* reply only: the requester gets copies of the rings */
#define PP_EVENT_TRIGGER (1U << 10)   /* reply only: it is a trigger, each of its records fires */
#define PP_EVENT_STOPPED (1U << 11)   /* reply only: it is paused, and a trigger did that */
#define PP_EVENT_PROGRAM (1U << 12)   /* a program of its creator's decides on each record */
#define PP_EVENT_NO_KERNEL_CHAIN (1U << 13) /* with CALLCHAIN: without the kernel's half */
#define PP_EVENT_NO_USER_CHAIN (1U << 14)   /* likewise, without user space's */
#define PP_EVENT_ADOPTED \
	(1U << 15) /* reply only: it runs on perf events that its creator opened and handed over */
#define PP_EVENT_AUX (1U << 28) /* reply only: it traces into AUX areas; data_size is theirs */
#define PP_EVENT_USER_STACK (1U << 29) /* reply only: its records have stack_user */
#define PP_EVENT_AUX_GROUP \
	(1U << 30) /* reply only: with AUX: other events are beside it, and make samples */
#define PP_EVENT_BOUND (1U << 31) /* reply only: it counts in one task or cgroup, its target */
#define PP_EVENT_CHAINS (PP_EVENT_CALLCHAIN | PP_EVENT_NO_KERNEL_CHAIN | PP_EVENT_NO_USER_CHAIN)
/* Seconds from one checkpoint of its rings to the next; 0: none are written. */
#define PP_EVENT_CHECKPOINT (0xfffU << PP_EVENT_CHECKPOINT_SHIFT)
#define PP_EVENT_CHECKPOINT_SHIFT 16
#define PP_CHECKPOINT_MAX 3600

/* In what an event counts, where that is not the whole machine. */
enum pp_target_kind {
	PP_TARGET_NONE = 0,
	PP_TARGET_PROCESS = 1, /* its threads */
	PP_TARGET_THREAD = 2,
	PP_TARGET_CGROUP = 3, /* and those below it */
};

/* Bits of the flags of a target. */
#define PP_TARGET_NO_INHERIT (1U << 0) /* not what its tasks create from then on */
#define PP_TARGET_DELETE (1U << 1)     /* the event is deleted when the target has ended */
#define PP_TARGET_OR_FILTER \
	(1U << 2) /* request: of events that cannot be bound, a process becomes a filter */
#define PP_TARGET_ENDED (1U << 3) /* reply only: the task has ended, or the cgroup is removed */

/* A chain has one half at least. */
static inline bool pp_event_chains_are_good(uint32_t flags)
{
	uint32_t without = flags & (PP_EVENT_NO_KERNEL_CHAIN | PP_EVENT_NO_USER_CHAIN);

	return !without || (flags & PP_EVENT_CALLCHAIN &&
			    without != (PP_EVENT_NO_KERNEL_CHAIN | PP_EVENT_NO_USER_CHAIN));
}

/* User space's half of a chain comes from the stack, so that none is recorded beside it. */
static inline bool pp_event_stack_is_good(uint32_t flags, uint32_t stack_user)
{
	return !stack_user ||
	       ((flags & PP_EVENT_CHAINS) == (PP_EVENT_CALLCHAIN | PP_EVENT_NO_USER_CHAIN) &&
		stack_user <= PP_STACK_USER_MAX && stack_user % 8 == 0);
}

static inline uint32_t pp_event_checkpoint(uint32_t flags)
{
	return (flags & PP_EVENT_CHECKPOINT) >> PP_EVENT_CHECKPOINT_SHIFT;
}

static inline uint32_t pp_checkpoint_flags(uint64_t seconds)
{
	return (uint32_t)(seconds < PP_CHECKPOINT_MAX ? seconds : PP_CHECKPOINT_MAX)
	       << PP_EVENT_CHECKPOINT_SHIFT;
}

/* Bits of `what` of a change. */
#define PP_CHANGE_FILTER (1U << 0)
#define PP_CHANGE_BUFFER (1U << 1)
#define PP_CHANGE_MAX_RATE (1U << 2)
#define PP_CHANGE_CHECKPOINT (1U << 3)
#define PP_CHANGE_PERIOD (1U << 4)
#define PP_CHANGES                                                                         \
	(PP_CHANGE_FILTER | PP_CHANGE_BUFFER | PP_CHANGE_MAX_RATE | PP_CHANGE_CHECKPOINT | \
	 PP_CHANGE_PERIOD)

/* Bits of the flags of an open request. */
#define PP_OPEN_COPY (1U << 0) /* copies, even for a requester that may have the rings */

/* Bits of the flags of a sideband request. */
#define PP_SIDEBAND_STATUS (1U << 0) /* only the numbers, no descriptor */

/* Why sideband is kept only since `began`, or not at all. */
enum pp_sideband_why {
	PP_SIDEBAND_FIRST = 0,	 /* since the first event; or the reason is unknown */
	PP_SIDEBAND_NOTHING = 1, /* not kept: nothing records */
	PP_SIDEBAND_OFF = 2,	 /* not kept: the configuration says so */
	PP_SIDEBAND_SOON = 3,	 /* not kept: about to start */
	PP_SIDEBAND_REFUSED = 4, /* not kept: the engine or the keeper cannot; the log says why */
	PP_SIDEBAND_AWAY = 5,	 /* not kept: no keeper is available */
	PP_SIDEBAND_GONE = 6,	 /* the previous keeper has ended */
	PP_SIDEBAND_STUCK = 7,	 /* the previous or the present keeper did not answer */
};

/* How the kernel counts events that happened and were not recorded: all; not at all; some, while it
 * hides others. */
enum pp_missed { PP_MISSED_COUNTED, PP_MISSED_UNKNOWN, PP_MISSED_AT_LEAST };

enum pp_event_state {
	PP_EVENT_CREATING = 1,
	PP_EVENT_RUNNING = 2,
	PP_EVENT_DELETING = 3,
	PP_EVENT_PAUSED = 4,
	PP_EVENT_CHANGING = 5, /* an order to change, pause or resume it is under way */
	/* reply only: a trigger has frozen its rings, and a tape of an earlier firing waits: what is recorded
	 * meanwhile can be read when that is saved or released */
	PP_EVENT_FROZEN = 6,
};

/* The subject of a notice. */
enum pp_notice_kind {
	PP_NOTICE_STARTED = 1, /* the first one: from here on no notice is missing */
	PP_NOTICE_CREATED = 2,
	/* filter, rate or buffer (a new buffer is a new set of rings), or more CPUs */
	PP_NOTICE_CHANGED = 3,
	PP_NOTICE_PAUSED = 4,
	PP_NOTICE_RESUMED = 5,
	PP_NOTICE_DELETED = 6,
	PP_NOTICE_CPU_ONLINE = 7,
	PP_NOTICE_CPU_OFFLINE = 8,
	PP_NOTICE_LOST = 9, /* that many notices did not fit: list again */
	PP_NOTICE_TAPE =
		10, /* a trigger has frozen the event: what it had recorded is the tape `event` */
	PP_NOTICE_FIRED = 11, /* the trigger `event`, which only notifies, has fired */
};

/* The subject of a line of the limits. */
enum pp_limit_scope {
	PP_LIMIT_TOTAL = 1,
	PP_LIMIT_NAMESPACE = 2,
	PP_LIMIT_USER = 3,
};

enum pp_right {
	PP_RIGHT_NONE = 0,
	PP_RIGHT_R = 4,	   /* list and read, like a file */
	PP_RIGHT_W = 2,	   /* create, delete, change and pause */
	PP_RIGHT_ROOT = 8, /* root only */
};

/* A reply's opcode is its request's with this bit; an error's is PP_OP_ERROR. */
#define PP_OP_REPLY 0x8000
#define PP_OP_ERROR 0x8000

enum pp_op {
#define MESSAGE(...)
#define OPERATION(NAME, number, ...) PP_OP_##NAME = number,
#include "protocol.def"
};

/* struct pp_msg_NAME for each message: fields in host byte order. */
#define U32(name, doc) uint32_t name;
#define S32(name, doc) int32_t name;
#define U64(name, doc) uint64_t name;
#define STR(name, size, doc) char name[size];
#define RECORD(name, message, doc) struct pp_msg_##message name;
#define ARRAY(name, message, count, max, doc) struct pp_msg_##message name[max];
#define MESSAGE(name, doc, ...) \
	struct pp_msg_##name {  \
		__VA_ARGS__     \
	};
#define OPERATION(...)
#include "protocol.def"

/* The body of any message; large, so allocate it once. */
union pp_body {
#define MESSAGE(name, doc, ...) struct pp_msg_##name name;
#define OPERATION(...)
#include "protocol.def"
};

/* The fixed header of every packet: little endian, in this order, no padding. */
struct pp_header {
	uint16_t version; /* PP_PROTOCOL_VERSION */
	uint16_t opcode;
	uint32_t serial; /* chosen by the requester; repeated in the reply */
	uint32_t size;	 /* of the packet, header included; == bytes received */
	uint32_t fds;	 /* number of file descriptors; == those received */
};

struct pp_field;

struct pp_message_type {
	const char *name;
	const char *doc;
	const struct pp_field *fields; /* the last one has no name */
	size_t struct_size;
};

struct pp_operation {
	uint16_t number;
	const char *name; /* "PING" */
	uint16_t since;
	enum pp_right right;
	const struct pp_message_type *request;
	const struct pp_message_type *reply;
	const char *fds;
	const char *doc;
};

/* The operation of this number (without PP_OP_REPLY), or NULL. */
const struct pp_operation *pp_operation_by_number(uint16_t number);

/* The message that a packet with this opcode carries (request, reply or error), or NULL. */
const struct pp_message_type *pp_message_by_opcode(uint16_t opcode);

/*
 * Writes header and body as one packet into buf. Sets header->size; the caller sets opcode, serial
 * and fds. The body is the struct that belongs to the opcode.
 *
 * Returns the packet's size; -EINVAL (no such opcode, a string without NUL, an array count over its
 * maximum: our own bug); -EMSGSIZE (cap is too small).
 */
ssize_t pp_encode(struct pp_header *header, const void *body, void *buf, size_t cap);

/*
 * Reads one packet of `size` bytes that came with `fds` descriptors. Checks everything: version,
 * opcode, direction (`reply`: true if the reader is the client), size (header == received == the
 * opcode's fields), fds == those received, every string NUL-terminated with only NULs behind,
 * counts within their maxima.
 *
 * On failure *ret_header and *ret_body have no meaning.
 *
 * Returns 0; -EBADMSG (malformed); -EPROTONOSUPPORT (another version); -EOPNOTSUPP (well-formed
 * header, unknown opcode: *ret_header is valid).
 */
int pp_decode(const void *buf, size_t size, size_t fds, bool reply, struct pp_header *ret_header,
	      union pp_body *ret_body);

/* Writes the tables of PROTOCOL.md. */
void pp_protocol_document(FILE *f);
