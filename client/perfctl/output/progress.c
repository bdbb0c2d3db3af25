// SPDX-License-Identifier: LGPL-2.1-or-later
/* Draws a progress bar if the work takes long. */
#include "client/perfctl/output/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "proto/clock.h"
#include "proto/macro.h"

#define FIRST_AFTER 1000000000ULL
#define AGAIN_AFTER 100000000ULL
#define WIDTH 40

void progress_start(struct progress *p, const char *what)
{
	*p = (struct progress){ .started = pp_clock_ns(CLOCK_MONOTONIC) };
	if (isatty(STDERR_FILENO))
		p->what = what;
}

static void draw(const struct progress *p, double part)
{
	char bar[WIDTH + 1];

	for (int i = 0; i < WIDTH; i++)
		bar[i] = i < (int)(part * WIDTH) ? '=' : ' ';
	bar[WIDTH] = '\0';
	fprintf(stderr, "\r%s [%s] %3d %%", p->what, bar, (int)(part * 100));
	fflush(stderr);
}

void progress_tell(struct progress *p, uint64_t done, uint64_t all)
{
	uint64_t t;

	if (!p->what)
		return;
	t = pp_clock_ns(CLOCK_MONOTONIC);
	if (t - p->started < FIRST_AFTER || t - p->shown < AGAIN_AFTER)
		return;
	p->shown = t;
	p->is_shown = true;
	draw(p, all ? (double)MIN(done, all) / (double)all : 0);
}

void progress_end(struct progress *p)
{
	if (p->is_shown)
		fputs("\r\033[K", stderr);
	p->what = NULL;
	p->is_shown = false;
}
