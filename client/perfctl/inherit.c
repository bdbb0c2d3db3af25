// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * `reopen NAME -- CMD`: executes CMD, which inherits the rings as sd_listen_fds(3) expects them.
 * The kernel lets CMD only read them.
 */
#include <fcntl.h>
#include <string.h>

#include "client/perfctl/perfctl.h"

#define FIRST_FD 3 /* SD_LISTEN_FDS_START */

/* Moves the rings to FIRST_FD and up, without CLOEXEC. Closes the descriptors that were there. */
static int place_rings(struct perfpersist_event *e, size_t n)
{
	_cleanup_free_ int *high = calloc(n + 1, sizeof(*high));

	if (!high)
		return -ENOMEM;
	/* Move all of them out of the way first, so that dup2(2) closes none that is still
	 * needed. */
	for (size_t i = 0; i < n; i++) {
		high[i] = fcntl(perfpersist_ring_fd(e, i), F_DUPFD_CLOEXEC, FIRST_FD + (int)n);
		if (high[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++)
		if (dup2(high[i], FIRST_FD + (int)i) < 0)
			return -errno;
	return 0;
}

/* "cpu0:cpu1:…" */
static int ring_names(struct perfpersist_event *e, size_t n, char **ret)
{
	size_t size;
	char *names = NULL;
	FILE *f = open_memstream(&names, &size);

	if (!f)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%scpu%d", i ? ":" : "", perfpersist_ring_cpu(e, i));
	if (fclose(f)) {
		free(names);
		return -ENOMEM;
	}
	*ret = names;
	return 0;
}

static int set_environment(struct perfpersist_event *e, size_t n, const char *ns, const char *name)
{
	_cleanup_free_ char *names = NULL;
	char number[24], event[136];
	int r;

	r = ring_names(e, n, &names);
	if (r < 0)
		return r;
	if (setenv("LISTEN_FDNAMES", names, 1))
		return -errno;
	snprintf(number, sizeof(number), "%zu", n);
	if (setenv("LISTEN_FDS", number, 1))
		return -errno;
	snprintf(number, sizeof(number), "%d", (int)getpid());
	if (setenv("LISTEN_PID", number, 1))
		return -errno;
	snprintf(event, sizeof(event), "%s/%s", ns, name);
	return setenv("PERFPERSIST_EVENT", event, 1) ? -errno : 0;
}

int run_with_rings(struct perfpersist_event *e, const char *ns, const char *name, char **command)
{
	size_t n = perfpersist_event_rings(e);
	int r;

	fflush(NULL);
	r = set_environment(e, n, ns, name);
	if (r >= 0)
		r = place_rings(e, n);
	if (r < 0) {
		complain("cannot pass the rings of %s/%s to %s: %s", ns, name, command[0],
			 strerror(-r));
		return EXIT_FAILED;
	}
	execvp(command[0], command);
	r = errno;
	complain("cannot run %s: %s", command[0], strerror(r));
	return r == ENOENT ? 127 : 126;
}
