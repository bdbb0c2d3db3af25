// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Runs, makes system calls, raises a signal and touches pages below functions that are known, and that
 * keep no frame pointers: main(), first() … seventh(). Then does it on stacks that end soon: at their
 * top, at a page that is not mapped, and at one that is mapped and not there.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 8
#define STACK_FROM 4 /* page of a stack that ends soon */

#define FUNCTION __attribute__((noinline))

static volatile sig_atomic_t signals;
static volatile unsigned long sum;
static unsigned long spins;
static ucontext_t back;

static void on_signal(int signal)
{
	signals += signal == SIGUSR1;
}

/* perf does not unwind the C library's functions with debugging information elsewhere. */
static inline __attribute__((always_inline)) long call(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long result;

	asm volatile("syscall"
		     : "=a"(result)
		     : "a"(number), "D"(a), "S"(b), "d"(c)
		     : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 asm("x8") = number, x0 asm("x0") = a, x1 asm("x1") = b, x2 asm("x2") = c;

	asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#endif
}

static FUNCTION void act(void)
{
	volatile char *page =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || call(SYS_write, -1, 0, 1) == 1)
		exit(1);
	*page = 1;
	munmap((void *)page, PAGE);
	call(SYS_tgkill, getpid(), gettid(), SIGUSR1);
}

/* Their frames have different sizes, and something to do after each call. */
static FUNCTION unsigned long seventh(unsigned long n)
{
	for (unsigned long i = 0; i < spins; i++)
		sum += i * n;
	act();
	return sum + n;
}

static FUNCTION unsigned long sixth(unsigned long n)
{
	volatile char some[200];

	some[n % 200] = 1;
	return seventh(n) * 3 + (unsigned long)some[n % 200];
}

static FUNCTION unsigned long fifth(unsigned long n)
{
	return sixth(n) + 2;
}

static FUNCTION unsigned long fourth(unsigned long n)
{
	volatile unsigned long some[9];

	some[n % 9] = n;
	return fifth(n) + some[n % 9];
}

static FUNCTION unsigned long third(unsigned long n)
{
	return fourth(n) ^ 5;
}

static FUNCTION unsigned long second(unsigned long n)
{
	volatile char some[3000];

	some[n % 3000] = 1;
	return third(n) + (unsigned long)some[n % 3000];
}

static FUNCTION unsigned long first(unsigned long n)
{
	return second(n) + 7;
}

static void elsewhere(void)
{
	act();
}

/* On a stack whose top is the end of a page; `behind` makes of the next page what it is. */
static void act_on(void (*behind)(char *page))
{
	char *pages = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ucontext_t context;

	if (pages == MAP_FAILED || getcontext(&context) < 0)
		exit(1);
	context.uc_stack.ss_sp = pages;
	context.uc_stack.ss_size = (STACK_FROM + 1) * PAGE;
	context.uc_link = &back;
	behind(pages + (STACK_FROM + 1) * PAGE);
	makecontext(&context, elsewhere, 0);
	swapcontext(&back, &context);
	munmap(pages, PAGES * PAGE);
}

static void forbidden(char *page)
{
	mprotect(page, PAGE, PROT_NONE);
}

static void unmapped(char *page)
{
	munmap(page, PAGE);
}

static void absent(char *page)
{
	madvise(page, PAGE, MADV_DONTNEED);
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;

	spins = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	signal(SIGUSR1, on_signal);
	for (unsigned long i = 0; i < rounds; i++) {
		sum += first(i);
		act_on(forbidden);
		act_on(unmapped);
		act_on(absent);
	}
	return signals == 4 * (int)rounds ? 0 : 1;
}
