// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfpersist-dumper: copies rings for readers that may not have the rings themselves. It has no
 * rights, gets everything it works on from the broker, and keeps nothing: it can die at any moment.
 */
#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon/dumper/server.h"
#include "daemon/log.h"
#include "daemon/start.h"

#define PROGRAM "perfpersist-dumper"

static const char usage[] =
	"Usage: perfpersist-dumper\n"
	"\n"
	"Copies rings for perfpersistd, over the SOCK_SEQPACKET socket that it is handed in the\n"
	"LISTEN_FDS convention. Not to be started by hand.\n"
	"\n"
	"  --instance NAME   shown in the list of processes, and nothing else\n"
	"  --broker-pid PID  take jobs from no other process of our user\n"
	"  --version, --help\n";

static const struct option options[] = {
	{ "instance", required_argument, NULL, 'i' },
	{ "broker-pid", required_argument, NULL, 'p' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{},
};

static int take_option(int option, const char *argument, void *broker)
{
	return option == 'p' ? start_broker_pid(argument, broker) : 0;
}

int main(int argc, char **argv)
{
	static const struct start start = { PROGRAM, usage, options, take_option };
	uint32_t broker = 0;
	int r, listener;

	log_open(PROGRAM);
	r = start_options(&start, argc, argv, &broker);
	if (r != 0)
		return r < 0 ? 2 : EXIT_SUCCESS;
	listener = start_socket(PROGRAM);
	if (listener < 0)
		return 2;
	start_without_rights("perfpersist-dum");
	signal(SIGALRM, SIG_DFL);
	sd_notify(0, "READY=1\nSTATUS=waiting for jobs");
	r = serve_copies(listener, (pid_t)broker);
	log_error("The dumper's loop failed: %s.", strerror(-r));
	return EXIT_FAILURE;
}
