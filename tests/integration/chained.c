// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Does a little of everything, below a stack that is known: outer(), middle(), inner(). Writes to a pipe,
 * reads what it wrote, starts children and waits for them, gets a signal, touches new pages, sleeps,
 * allocates, and writes a word whose address `chained --address` prints.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile uint64_t word;

static volatile sig_atomic_t signals;
static int pipes[2];

static void on_signal(int signal)
{
	signals += signal == SIGUSR1;
}

static void touch(void)
{
	volatile char *page =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		exit(1);
	*page = 1;
	munmap((void *)page, 4096);
}

static __attribute__((noinline)) void inner(unsigned i)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	volatile char *block;
	uint64_t number = i;
	pid_t pid;

	word = i;
	if (write(pipes[1], &number, sizeof(number)) != sizeof(number) ||
	    read(pipes[0], &number, sizeof(number)) != sizeof(number) || number != i)
		exit(1);
	block = malloc(100000 + i);
	if (!block)
		exit(1);
	*block = 1;
	free((void *)block);
	touch();
	raise(SIGUSR1);
	nanosleep(&pause, NULL);
	pid = fork();
	if (pid < 0)
		exit(1);
	if (!pid)
		_exit(0);
	if (waitpid(pid, NULL, 0) != pid)
		exit(1);
}

static __attribute__((noinline)) void middle(unsigned i)
{
	inner(i);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

static __attribute__((noinline)) void outer(unsigned i)
{
	middle(i);
	__asm__ volatile("" ::: "memory");
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--address")) {
		printf("%#lx\n", (unsigned long)&word);
		return 0;
	}
	if (argc != 2 || pipe(pipes) < 0 || signal(SIGUSR1, on_signal) == SIG_ERR)
		return 2;
	for (unsigned i = 0; i < (unsigned)atoi(argv[1]); i++)
		outer(i);
	return signals == atoi(argv[1]) ? 0 : 1;
}
