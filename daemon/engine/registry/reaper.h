/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Removes deleted events, in a process of its own: releasing a tracepoint's link can take the
 * kernel 70 ms, and orders must not wait for it. Its queue is the registry's "+del-*" directories,
 * so nothing is forgotten if a process dies.
 */
#pragma once

/* Makes sure that everything deleted so far will be removed. 0 or -errno of fork(2). */
int reaper_kick(void);

/* Waits until all of it is gone, at most so many milliseconds. */
void reaper_wait(int ms);

/* Collects a finished reaper, and starts one in the place of one that failed; to be called on SIGCHLD
 * and now and then. */
void reaper_collect(void);

/* Before the engine ends: starts another reaper for events that were deleted while one was at work;
 * else they would record until the next start. Returns at once. */
void reaper_leave(void);
