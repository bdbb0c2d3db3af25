// SPDX-License-Identifier: LGPL-2.1-or-later
/* Loads instructions into the kernel. */
#include "daemon/engine/emit/program.h"

#include <string.h>

#include "daemon/log.h"
#include "proto/macro.h"

#define LOG_BYTES (1024 * 1024)
#define LOG_TAIL 900 /* a verifier's log says what matters at its end */

/* Asks the verifier for its log only after a refusal: the log costs time. */
int program_load(enum bpf_prog_type type, const char *name, const struct bpf_insn *insns, size_t n,
		 struct bpf_prog_load_opts *opts)
{
	_cleanup_free_ char *log = NULL;
	size_t length;
	int fd, again;

	fd = bpf_prog_load(type, name, "GPL", insns, n, opts);
	if (fd >= 0)
		return fd;
	log = calloc(1, LOG_BYTES);
	if (!log)
		return fd;
	opts->log_buf = log;
	opts->log_size = LOG_BYTES;
	opts->log_level = 1;
	again = bpf_prog_load(type, name, "GPL", insns, n, opts);
	if (again >= 0)
		return again;
	length = strnlen(log, LOG_BYTES);
	log_debug("The kernel refuses the program %s (%s): %s", name, strerror(-fd),
		  length > LOG_TAIL ? log + length - LOG_TAIL : log);
	return fd; /* not the second error: that may be ENOSPC, for the log */
}
