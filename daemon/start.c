// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/start.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"

int start_options(const struct start *start, int argc, char **argv, void *context)
{
	int c;

	while ((c = getopt_long(argc, argv, "h", start->options, NULL)) >= 0)
		switch (c) {
		case 'V':
			printf("%s " PP_VERSION "\n", start->program);
			return 1;
		case 'h':
			fputs(start->usage, stdout);
			return 1;
		case '?':
			return -EINVAL;
		default:
			if (start->take(c, optarg, context) < 0)
				return -EINVAL;
		}
	if (optind == argc)
		return 0;
	log_error("Unexpected argument '%s'; see --help.", argv[optind]);
	return -EINVAL;
}

int start_broker_pid(const char *text, uint32_t *ret)
{
	uint32_t pid;

	if (pp_parse_u32(text, &pid) < 0 || !pid || pid > INT_MAX) {
		log_error("Invalid --broker-pid '%s': not a process id.", text);
		return -EINVAL;
	}
	*ret = pid;
	return 0;
}

int start_socket(const char *program)
{
	if (sd_listen_fds(1) == 1 &&
	    sd_is_socket(SD_LISTEN_FDS_START, AF_UNIX, SOCK_SEQPACKET, 1) > 0)
		return SD_LISTEN_FDS_START;
	log_error("One listening SOCK_SEQPACKET socket is expected in LISTEN_FDS; perfpersistd, or "
		  "%s.socket, starts the %s.",
		  program, strchr(program, '-') + 1);
	return -EINVAL;
}

void start_without_rights(const char *name)
{
	prctl(PR_SET_NAME, name);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* as the broker */
}
