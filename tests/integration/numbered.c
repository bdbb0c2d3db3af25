// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Makes N cheap system calls that carry a number: close(-1), with FROM, FROM + 1, … as a second
 * argument, which the kernel ignores and raw_syscalls:sys_enter records. Moves on to another CPU
 * after each 100.
 *
 *   numbered FROM N
 */
#include <sched.h>

#include "tests/integration/observe.h"

int main(int argc, char **argv)
{
	uint64_t from, n;
	cpu_set_t all;
	int cpu = 0;

	if (argc != 3)
		die("usage: numbered FROM N");
	from = parse_count(argv[1]);
	n = parse_count(argv[2]);
	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		die("sched_getaffinity: %m");
	for (uint64_t i = 0; i < n; i++) {
		if (i % 100 == 0) {
			do
				cpu = (cpu + 1) % CPU_SETSIZE;
			while (!CPU_ISSET(cpu, &all));
			pin_to(cpu);
		}
		syscall(SYS_close, -1L, from + i);
	}
	return 0;
}
