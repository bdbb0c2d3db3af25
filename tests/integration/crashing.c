// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes N cheap system calls that carry a number, as `numbered` does, on one CPU; then writes to address 0,
 * and so dies by the kernel's SIGSEGV. Leaves no core.
 *
 *   crashing FROM N [handled | TERM | KILL]
 *
 * handled: it has a handler for that signal, which exits. TERM, KILL: it dies by that one instead.
 */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/integration/observe.h"

static void on_signal(int number)
{
	_exit(number);
}

int main(int argc, char **argv)
{
	struct rlimit none = {};
	volatile int *nowhere = NULL;
	uint64_t from, n;

	if (argc < 3)
		die("usage: crashing FROM N [handled | TERM | KILL]");
	from = parse_count(argv[1]);
	n = parse_count(argv[2]);
	if (argc > 3 && !strcmp(argv[3], "handled"))
		signal(SIGSEGV, on_signal);
	else if (argc > 3)
		kill(getpid(), !strcmp(argv[3], "KILL") ? SIGKILL : SIGTERM);
	setrlimit(RLIMIT_CORE, &none);
	for (uint64_t i = 0; i < n; i++)
		syscall(SYS_close, -1L, from + i);
	*nowhere = 1;
	return 0;
}
