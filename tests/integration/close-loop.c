// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes the same cheap system call forever: close(-1), with a sequence number as a second argument,
 * which the kernel ignores and raw_syscalls:sys_enter records.
 *
 *   close-loop CPU
 */
#include "tests/integration/observe.h"

int main(int argc, char **argv)
{
	if (argc != 2)
		die("usage: close-loop CPU");
	pin_to((int)parse_count(argv[1]));
	for (uint64_t seq = 0;; seq++)
		syscall(SYS_close, -1L, seq);
}
