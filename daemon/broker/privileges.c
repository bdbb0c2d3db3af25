// SPDX-License-Identifier: LGPL-2.1-or-later
/* Raw system calls, so that the broker links no library for this. */
#include "daemon/broker/privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/macro.h"

static int empty_bounding_set(void)
{
	/* PR_CAPBSET_READ fails after the last capability that this kernel knows. */
	for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return -errno;
	return 0;
}

static int change_user(uid_t uid, gid_t gid)
{
	uid_t real, effective, saved;

	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	if (getresuid(&real, &effective, &saved) < 0)
		return -errno;
	return real == uid && effective == uid && saved == uid ? 0 : -EPERM;
}

static int empty_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

int privileges_drop(uid_t uid, gid_t gid)
{
	int r;

	if (geteuid() == 0) {
		r = empty_bounding_set();
		if (r < 0)
			return r;
		r = change_user(uid, gid);
		if (r < 0)
			return r;
	}
	r = empty_capabilities();
	if (r < 0)
		return r;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}
