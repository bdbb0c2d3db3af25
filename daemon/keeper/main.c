// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfpersist-keeper: holds what the kernel says of processes, and the rings in which it says it,
 * while all others come and go. It has no rights at all, and is handed everything it works on.
 */
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "daemon/keeper/server.h"
#include "daemon/log.h"
#include "proto/macro.h"

static const char usage[] =
	"Usage: perfpersist-keeper\n"
	"\n"
	"Keeps the names and mappings of processes for perfpersistd, which asks over the\n"
	"SOCK_SEQPACKET socket that it is handed in the LISTEN_FDS convention. Not to be started\n"
	"by hand.\n"
	"\n"
	"  --instance NAME   shown in the list of processes, and nothing else\n"
	"  --exit-idle       end when there is nothing to keep and nobody connected, or when the\n"
	"                    socket's file is gone\n"
	"  --version, --help\n";

/* Returns 0 to go on, 1 to exit with success, or -EINVAL. */
static int parse_options(int argc, char **argv, bool *ret_exit_idle)
{
	static const struct option longs[] = {
		{ "instance", required_argument, NULL, 'i' },
		{ "exit-idle", no_argument, NULL, 'e' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) >= 0)
		switch (c) {
		case 'i':
			break;
		case 'e':
			*ret_exit_idle = true;
			break;
		case 'V':
			puts("perfpersist-keeper " PP_VERSION);
			return 1;
		case 'h':
			fputs(usage, stdout);
			return 1;
		default:
			return -EINVAL;
		}
	if (optind < argc) {
		log_error("'%s' is not expected; see --help.", argv[optind]);
		return -EINVAL;
	}
	return 0;
}

int main(int argc, char **argv)
{
	bool exit_idle = false;
	int r;

	log_open("perfpersist-keeper");
	r = parse_options(argc, argv, &exit_idle);
	if (r != 0)
		return r < 0 ? 2 : EXIT_SUCCESS;
	if (sd_listen_fds(1) != 1 ||
	    sd_is_socket(SD_LISTEN_FDS_START, AF_UNIX, SOCK_SEQPACKET, 1) <= 0) {
		log_error("One listening SOCK_SEQPACKET socket is expected in LISTEN_FDS; "
			  "perfpersistd, or perfpersist-keeper.socket, starts the keeper.");
		return 2;
	}
	/* Started from a descriptor it would be called by its number. */
	prctl(PR_SET_NAME, "perfpersist-kee");
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* as the broker */
	sd_notify(0, "READY=1\nSTATUS=keeping");
	r = serve_keeping(SD_LISTEN_FDS_START, exit_idle);
	if (r >= 0)
		return EXIT_SUCCESS;
	log_error("The keeper's loop failed: %s.", strerror(-r));
	return EXIT_FAILURE;
}
