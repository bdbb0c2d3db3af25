/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who may do what: all decisions about rights, in one place. Credentials come from the
 * kernel (SO_PEERCRED, SO_PEERGROUPS), never from what a peer says.
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

/* Of the process that connected. 0; -errno. */
int credentials_read(int socket, struct credentials *ret);
void credentials_done(struct credentials *c);

bool credentials_in_group(const struct credentials *c, gid_t group);

/* As the kernel decides for a file of that owner, group and mode. Root may do everything. */
bool policy_allows(const struct credentials *c, const struct namespace *ns, enum pp_right right);

/* Who may make a namespace by creating the first event in it. */
enum policy_makers {
	POLICY_MAKERS_ROOT,
	POLICY_MAKERS_GROUP, /* members of the daemon's group too */
	POLICY_MAKERS_ALL,
};

bool policy_may_make_namespace(const struct credentials *c, enum policy_makers makers, gid_t group);

/*
 * Who of those that may create events may have probes and breakpoints in them: a probe in the
 * middle of an instruction breaks the program that it is set in, one on a hot function slows down
 * the machine, and the file of a uprobe is opened where somebody else's name for it points.
 */
enum policy_probers {
	POLICY_PROBERS_ROOT,
	POLICY_PROBERS_GROUP, /* members of the daemon's group too */
	POLICY_PROBERS_ALL,
};

bool policy_may_probe(const struct credentials *c, enum policy_probers probers, gid_t group);

/* Whether this peer, who may write to the event, may give it other buffers: those, and the old ones
 * for as long as somebody holds them, are charged to its creator. */
bool policy_may_resize(const struct credentials *c, uid_t creator);

/* Whether the peer may be told who ran, and from which files: it is of all users' processes, and so
 * are an event's records. These are all namespaces; those that have no events count for nothing. */
bool policy_may_have_sideband(const struct credentials *c, struct namespace *const *namespaces,
			      size_t n);

/*
 * Whether this peer, who may read the namespace, may be handed its live rings; else it gets
 * copies. The namespace's `live` decides. Where unprivileged_bpf_disabled is 0 (unprivileged_bpf)
 * a peer that is not root could load a program that writes the ring it was given to read.
 */
bool policy_may_hold_rings(const struct credentials *c, const struct namespace *ns,
			   bool unprivileged_bpf);
