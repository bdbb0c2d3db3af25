/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Removes what was deleted, in a process of its own: to release a tracepoint's link can take
 * the kernel 70 ms, and orders must not wait for it. Its queue is the registry's "+del-*"
 * directories, so nothing is forgotten whoever dies.
 */
#pragma once

/* Makes sure that all that is deleted now will be removed. 0 or -errno of fork(2). */
int reaper_kick(void);

/* Waits until all of it is gone, but no longer than so many milliseconds. */
void reaper_wait(int ms);

/* Collects a reaper that has finished; to be called on SIGCHLD. */
void reaper_collect(void);

/* Before the engine ends: what was deleted while a reaper was at work is left to another one, or it
 * would record until the next start. Returns at once. */
void reaper_leave(void);
