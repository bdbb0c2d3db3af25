/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the request-*.c files only. */
#pragma once

#include "daemon/broker/request/describe.h"
#include "daemon/broker/request/request.h"

/* The current request. */
struct request {
	struct service *service;
	struct peer *peer;
	const struct pp_header *header;
	/* Whether unprivileged users may load programs: read once. */
	enum { REQUEST_BPF_UNASKED, REQUEST_BPF_OPEN, REQUEST_BPF_CLOSED } bpf;
};

#define refuse(r, error, ...) peer_fail((r)->peer, (r)->header, error, __VA_ARGS__)

/* Each of these refuses the request before it returns false or NULL. */
bool request_may(struct request *req, const struct namespace *ns, enum pp_right right);
/* The namespace that a list is about, in *ret; NULL: all. */
bool request_may_list(struct request *req, const char *name, const struct namespace **ret);
bool request_is_synced(struct request *req);
bool request_is_made(struct request *req, const struct event *e);
struct event *request_find(struct request *req, const struct pp_msg_name *which,
			   enum pp_right right);

/* The same, or a tape of that id; e->is_tape. Only for reading. */
struct event *request_find_or_tape(struct request *req, const struct pp_msg_name *which,
				   enum pp_right right);

/* Whether the peer, which may read there, may hold live rings of that namespace; otherwise it gets
 * copies. */
bool request_may_hold(struct request *req, const struct namespace *ns);

/* The event in the form for this peer. */
void request_describe(struct request *req, const struct event *e, const struct tree_stat *stat,
		      struct pp_msg_event *ret);
void request_reply_event(struct request *req, const struct event *e);

/* A peer gets one reply with copies or sideband at a time: whether one is under way. The next
 * starts when the peer has read it. */
bool request_has_opening(const struct request *req);
bool request_has_asking(const struct request *req);

/* A request that waits for a file of the keeper's. The caller embeds it in a larger struct. */
struct asking {
	struct asking *next, **link;
	struct service *service;
	struct peer_claim claim;
	struct pp_header header;
};

void asking_begin(struct asking *a, struct request *req);
void asking_end(struct asking *a);

/* Sends the reply; with the file, which is charged as a copy of so many bytes, unless fd < 0. 0; -errno:
 * nothing was sent. */
int asking_reply(struct asking *a, uint32_t uid, const void *reply, int fd, uint64_t size);

/* Refuses it for such an error, or the keeper's. has, what: of the sentences: what the keeper does,
 * and what is wanted. False: the error has no sentence that all such requests share. */
bool asking_refuse(struct request *req, int err, const char *has, const char *what);

/* A request that is answered when an order completes: with the event, unless `answer` is set. */
struct pending {
	struct waiter waiter; /* first: a waiter of ours is a pending request */
	struct service *service;
	struct peer_claim claim;
	struct pp_header header;
	/* Handles the result; also runs when the peer is gone: then r->peer is NULL. Returns
	 * whether the request is finished; otherwise it waits for another order, and p may be freed
	 * by now. */
	bool (*answer)(struct request *req, struct pending *p, const struct event *e);
	/* CREATE of an event with AUX areas: what answers when it traces, and its id. */
	bool (*then)(struct request *req, struct pending *p, const struct event *e);
	uint64_t created;
	void *data; /* for `answer`; freed with it */
	struct tree_stat stat;
	uint32_t count; /* for `answer`; of descriptors that are handed out: how many there are */
	struct aux_wait aux; /* of an event with AUX areas: until it traces */
};

/* Claims the request; or refuses it and returns NULL. */
struct pending *request_wait(struct request *req);

/* Goes on as if an order had completed; NULL: that is answered already. May free p. */
void request_go_on(struct pending *p, const struct outcome *outcome);

/* Handles the return value of an order (see lifecycle.h); 0: nothing to do. On error refuses the
 * request and frees p. */
void request_ordered(struct request *req, struct pending *p, int err, const char *ns,
		     const char *name);

/* The errno value, positive, that clients get for a return value of lifecycle.h. */
int request_error(int err);

/* The error message for a return value of lifecycle.h. */
void request_explain(const struct request *req, int err, const char *ns, const char *name,
		     char *buf, size_t size);

/* Creates the event of either request. trigger: NULL: it is none; its condition is settled. until: the
 * last selection ends pairs. */
void request_make(struct request *req, const struct pp_msg_create_request *request,
		  struct pp_trigger_spec *trigger, bool until);

/* Checks rights and texts of a request for an event: *ret, and service.parsed. Or refuses it. */
bool request_resolve(struct request *req, const struct pp_msg_create_request *request,
		     struct pp_trigger_spec *trigger, bool until, struct pp_spec *ret);

void request_create(struct request *req, const struct pp_msg_create_request *request);
void request_delete(struct request *req, const struct pp_msg_name *request);
void request_change(struct request *req, const struct pp_msg_change_request *request);
void request_pause(struct request *req, const struct pp_msg_pause_request *request);
void request_limits(struct request *req, const struct pp_msg_limits_request *request);
void request_open(struct request *req, const struct pp_msg_open_request *request);
void request_watch(struct request *req, const struct pp_msg_watch_request *request);
void request_cpus(struct request *req, const struct pp_msg_cpus_request *request);
void request_wakeup(struct request *req, const struct pp_msg_name *request);
void request_trigger(struct request *req, const struct pp_msg_trigger_request *request);
void request_triggers(struct request *req, const struct pp_msg_list_request *request);
void request_fire(struct request *req, const struct pp_msg_name *request);
void request_tapes(struct request *req, const struct pp_msg_list_request *request);
void request_release(struct request *req, const struct pp_msg_name *request);
void request_adopt(struct request *req, const struct pp_msg_create_request *request);
void request_attach(struct request *req, const struct pp_msg_attach_request *request);
void request_claim(struct request *req, const struct pp_msg_claim_request *request);
void request_descriptors(struct request *req, const struct pp_msg_name *request);
void request_auxtrace(struct request *req, const struct pp_msg_auxtrace_request *request);
void request_sideband(struct request *req, const struct pp_msg_sideband_request *request);
