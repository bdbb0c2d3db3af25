// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads /sys and /proc/sys. Draws no conclusions. */
#include "daemon/broker/syntax/machine.h"

#include <fcntl.h>
#include <string.h>

#include "daemon/cpus.h"
#include "daemon/text.h"
#include "proto/macro.h"

/* Reads the file's one line without its newline. */
static int read_line(const char *path, char *buf, size_t size)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

static int read_number(const char *path, uint64_t *ret)
{
	char line[64];
	int r = read_line(path, line, sizeof(line));

	return r < 0 ? r : pp_parse_u64(line, ret);
}

/* A kernel without bpf(2) lacks this file and poses no threat, but then there are no rings to
 * protect either. So unknown counts as open. */
bool machine_unprivileged_bpf(void)
{
	uint64_t number;

	return read_number("/proc/sys/kernel/unprivileged_bpf_disabled", &number) < 0 ||
	       number == 0;
}

int machine_read(struct machine *ret)
{
	struct machine m = { 0 };
	uint64_t number;
	int r;

	r = pp_cpus_read("online", &m.online);
	if (r < 0)
		return r;
	r = pp_cpus_read("possible", &m.possible);
	if (r < 0)
		return r;
	m.max_sample_rate = UINT64_MAX;
	if (read_number("/proc/sys/kernel/perf_event_max_sample_rate", &number) == 0)
		m.max_sample_rate = number;
	m.max_stack = UINT64_MAX;
	if (read_number("/proc/sys/kernel/perf_event_max_stack", &number) == 0)
		m.max_stack = number;
	*ret = m;
	return 0;
}
