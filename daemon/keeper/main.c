// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfpersist-keeper: holds the perf rings of process records and the table made from them, while
 * all other programs come and go. It has no rights, and gets everything it works on. */
#include <string.h>
#include <systemd/sd-daemon.h>

#include "daemon/keeper/server.h"
#include "daemon/log.h"
#include "daemon/start.h"
#include "proto/macro.h"

#define PROGRAM "perfpersist-keeper"

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

static const struct option options[] = {
	{ "instance", required_argument, NULL, 'i' },
	{ "exit-idle", no_argument, NULL, 'e' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{},
};

static int take_option(int option, const char *argument _unused_, void *exit_idle)
{
	if (option == 'e')
		*(bool *)exit_idle = true;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct start start = { PROGRAM, usage, options, take_option };
	bool exit_idle = false;
	int r, listener;

	log_open(PROGRAM);
	r = start_options(&start, argc, argv, &exit_idle);
	if (r != 0)
		return r < 0 ? 2 : EXIT_SUCCESS;
	listener = start_socket(PROGRAM);
	if (listener < 0)
		return 2;
	start_without_rights("perfpersist-kee");
	sd_notify(0, "READY=1\nSTATUS=keeping");
	r = serve_keeping(listener, exit_idle);
	if (r >= 0)
		return EXIT_SUCCESS;
	log_error("The keeper's loop failed: %s.", strerror(-r));
	return EXIT_FAILURE;
}
