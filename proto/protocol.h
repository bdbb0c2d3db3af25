/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The wire protocol between clients and perfpersistd: SOCK_SEQPACKET, one packet is one
 * message with its file descriptors. protocol.def is the table; this file turns it into
 * structs and numbers. PROTOCOL.md tells the rest to people.
 *
 * Pure: the codec reads and writes memory, nothing else. packet.h moves packets.
 */
#ifndef PP_PROTOCOL_H
#define PP_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "ring.h"

#define PP_PROTOCOL_VERSION 1

#define PP_HEADER_SIZE 16
#define PP_PACKET_MAX 65536 /* bytes of any packet, header included */
#define PP_FDS_MAX 253	    /* of one packet: the kernel's SCM_MAX_FD */
#define PP_LIST_MAX 16	    /* events in one page of a list */
#define PP_CPUS_SIZE 1024   /* of a CPU list with its NUL */

/* Bits of the flags of an event. */
#define PP_EVENT_FREQ (1U << 0)	     /* period is a frequency in Hz */
#define PP_EVENT_CALLCHAIN (1U << 1) /* record kernel and user call chains */
#define PP_EVENT_ALL_CPUS (1U << 2)  /* reply only: no CPUs were named */
#define PP_EVENT_GENERIC (1U << 3)   /* tracepoints: generic, though a tp_btf one is there */

enum pp_event_state {
	PP_EVENT_CREATING = 1,
	PP_EVENT_RUNNING = 2,
	PP_EVENT_DELETING = 3,
};

enum pp_right {
	PP_RIGHT_NONE = 0,
	PP_RIGHT_R = 4, /* list and read, as of a file */
	PP_RIGHT_W = 2, /* create and delete */
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
	uint32_t serial; /* the requester's own; repeated by the reply */
	uint32_t size;	 /* of the packet, header included; == bytes received */
	uint32_t fds;	 /* file descriptors that come with it; == those received */
};

struct pp_field;

struct pp_message_type {
	const char *name;
	const char *doc;
	const struct pp_field *fields; /* ended by one with no name */
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
 * Writes header and body as one packet into buf. header->size is set; opcode, serial and fds
 * are the caller's. The body is the struct that belongs to the opcode.
 *
 * Returns the packet's size; -EINVAL (no such opcode, a string without NUL, an array count
 * over its maximum: our own bug); -EMSGSIZE (cap is too small).
 */
ssize_t pp_encode(struct pp_header *header, const void *body, void *buf, size_t cap);

/*
 * Reads one packet of `size` bytes that came with `fds` descriptors. Everything is checked:
 * version, known opcode, direction (`reply`: true when the reader is the client), size ==
 * what was received == what the opcode's fields take, fds == those received, every string
 * NUL-terminated with nothing behind its NUL, counts at most their maxima.
 *
 * On failure *ret_header and *ret_body have no meaning.
 * Returns 0; -EBADMSG (malformed); -EPROTONOSUPPORT (other version); -EOPNOTSUPP (well
 * formed header, unknown opcode: *ret_header is valid).
 */
int pp_decode(const void *buf, size_t size, size_t fds, bool reply, struct pp_header *ret_header,
	      union pp_body *ret_body);

/* Writes the tables of PROTOCOL.md. */
void pp_protocol_document(FILE *f);

#endif
