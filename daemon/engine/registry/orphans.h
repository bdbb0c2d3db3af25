/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orphan rings: their event was deleted, or got other rings. Their pins are gone, and they exist in
 * the kernel as long as somebody has them mapped. Until then they stay charged. The kernel does not
 * report the end of a map, so the engine checks the maps' ids, ever less often, and only while
 * there are orphans.
 *
 * The orphans of one event have a directory "+del-ID" with the event's `meta`, so that they are not
 * forgotten when a daemon dies. A tape (tapes.h) counts as orphans from the beginning.
 */
#pragma once

#include "daemon/order.h"

/*
 * Registers "+del-ID", just made by pins_remove() or pins_replace(). Maps that the event at
 * `successor` (NULL: none) has as well are not charged here. *ret: id and bytes; id 0 if nothing is
 * charged. Never fails: unreadable orphans are not charged.
 */
void orphans_add(uint64_t id, const char *successor, struct pp_orphans *ret);

/* At start, after pins_recover(): registers all that exist. -errno. */
int orphans_recover(void);

/* Before the reaper removes the pins: readers of an open `stat` must not look for a program that is
 * gone. */
void orphans_bury(const char *path);

/* Runs fn for each, until it returns < 0; returns that, or 0. */
int orphans_foreach(int (*fn)(const struct pp_orphans *orphans, void *userdata), void *userdata);

/* Their bytes in total. */
uint64_t orphans_bytes(void);

/* Milliseconds until orphans_look() is due; -1: there are none. */
int orphans_timeout(void);

/* Something may just have been released: the next check is due soon. */
void orphans_hurry(void);

/* If it is due: checks what is still held, and runs fn for those that hold less than before (bytes
 * 0: all gone, and forgotten). */
void orphans_look(void (*fn)(const struct pp_orphans *orphans, void *userdata), void *userdata);
