// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfpersist-dumper: makes the copies of rings that readers get who may not have the rings
 * themselves. It has no rights at all, is handed everything it works on by the broker, and
 * keeps nothing: it can die at any moment.
 */
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "daemon/dumper/server.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"

static const char usage[] =
	"Usage: perfpersist-dumper\n"
	"\n"
	"Copies rings for perfpersistd, over the SOCK_SEQPACKET socket that it is handed in the\n"
	"LISTEN_FDS convention. Not to be started by hand.\n"
	"\n"
	"  --instance NAME   shown in the list of processes, and nothing else\n"
	"  --broker-pid PID  obey no other process of our user\n"
	"  --version, --help\n";

/* Returns 0 to go on, 1 to exit with success, or -EINVAL. */
static int parse_options(int argc, char **argv, uint32_t *ret_broker)
{
	static const struct option longs[] = {
		{ "instance", required_argument, NULL, 'i' },
		{ "broker-pid", required_argument, NULL, 'p' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) >= 0)
		switch (c) {
		case 'i':
			break;
		case 'p':
			if (pp_parse_u32(optarg, ret_broker) < 0 || !*ret_broker ||
			    *ret_broker > INT_MAX) {
				log_error("--broker-pid: '%s' is no process's number.", optarg);
				return -EINVAL;
			}
			break;
		case 'V':
			puts("perfpersist-dumper " PP_VERSION);
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
	uint32_t broker = 0;
	int r;

	log_open("perfpersist-dumper");
	r = parse_options(argc, argv, &broker);
	if (r != 0)
		return r < 0 ? 2 : EXIT_SUCCESS;
	if (sd_listen_fds(1) != 1 ||
	    sd_is_socket(SD_LISTEN_FDS_START, AF_UNIX, SOCK_SEQPACKET, 1) <= 0) {
		log_error("One listening SOCK_SEQPACKET socket is expected in LISTEN_FDS; "
			  "perfpersistd, or perfpersist-dumper.socket, starts the dumper.");
		return 2;
	}
	/* Started from a descriptor it would be called by its number. */
	prctl(PR_SET_NAME, "perfpersist-dum");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGALRM, SIG_DFL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* as the broker */
	sd_notify(0, "READY=1\nSTATUS=waiting for jobs");
	r = serve_copies(SD_LISTEN_FDS_START, (pid_t)broker);
	log_error("The dumper's loop failed: %s.", strerror(-r));
	return EXIT_FAILURE;
}
