/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * All decisions about rights, in one place. Credentials come from the kernel (SO_PEERCRED,
 * SO_PEERGROUPS), never from a peer's packets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/broker/state/namespace.h"
#include "proto/protocol.h"

struct credentials {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* supplementary, sorted */
	size_t n_groups;
};

/* The credentials of the process that connected. 0; -errno. */
int credentials_read(int socket, struct credentials *ret);
void credentials_done(struct credentials *c);

bool credentials_in_group(const struct credentials *c, gid_t group);

/* As the kernel decides for a file with that owner, group and mode. Root may do everything; the
 * daemon's own user may read everything, because it saves what triggers freeze. */
bool policy_allows(const struct credentials *c, const struct namespace *ns, enum pp_right right);

/* The users besides root that have a right over the whole machine, as perfpersistd.conf says. */
enum policy_who {
	POLICY_ROOT,
	POLICY_GROUP, /* members of the daemon's group too */
	POLICY_ALL,
};

/*
 * CreateNamespaces=, Probes= and Programs=, the last two among those that may create events. A probe in
 * the middle of an instruction breaks the program; one on a hot function slows down the machine; and a
 * uprobe's file is opened through a path that somebody else controls. A BPF program that decides on an
 * event's records runs for everybody who passes the event, and outlives the process that loaded it.
 */
bool policy_may(const struct credentials *c, enum policy_who who, gid_t group);

/* Whether this peer may fire triggers there by hand. */
bool policy_may_fire(const struct credentials *c, const struct namespace *ns);

/* Whether this peer may give back what a trigger has frozen there, saved or not. */
bool policy_may_release(const struct credentials *c, const struct namespace *ns);

/* Whether this peer, which may write to the event, may give it other buffers. Its creator is
 * charged for the new buffers, and for the old ones as long as somebody holds them. */
bool policy_may_resize(const struct credentials *c, uid_t creator);

/*
 * Whether this peer, which may write to the namespace, may hand such a perf event over. It gets the entry, and
 * can attach that to other perf events, too; a recorder of one tracepoint reads beyond the payload of another.
 * What a user's perf event of a tracepoint would record, creating the event records as well.
 */
bool policy_may_adopt(const struct credentials *c, bool is_tracepoint);

/*
 * Whether this peer, which may write to the event, may take it as its own. Of its programs only an entry that was
 * given out counts further; so users have only what they opened themselves, and that takes no place from
 * others, as programs on a tracepoint do.
 */
bool policy_may_claim(const struct credentials *c, uid_t creator, bool is_adopted,
		      bool is_tracepoint);

/* Whether the peer may read sideband: the names and files of all users' processes, like an event's
 * records. `namespaces` are all namespaces; those without events do not count. */
bool policy_may_have_sideband(const struct credentials *c, struct namespace *const *namespaces,
			      size_t n);

/*
 * Whether this peer, which may read the namespace, may get its live rings; otherwise it gets
 * copies. The namespace's `live` decides. Where unprivileged_bpf_disabled is 0 (unprivileged_bpf),
 * a peer other than root could load a program that writes to the ring.
 */
bool policy_may_hold_rings(const struct credentials *c, const struct namespace *ns,
			   bool unprivileged_bpf);
