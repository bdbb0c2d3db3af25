/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Orphan rings: their event was deleted, or got other rings. Their pins are gone, and they live on
 * in the kernel while somebody has them mapped. Until then they stay charged. The kernel does not
 * tell when a map ends, so the engine asks for the maps' ids, ever less often, and only while there
 * are orphans.
 *
 * The orphans of one event have a directory "+del-ID" with the `meta` of what it was, so that none
 * is forgotten when a daemon dies.
 */
#pragma once

#include "daemon/order.h"

/*
 * Takes note of "+del-ID", just made by pins_remove() or pins_replace(), and has it reaped. Maps
 * that the event at `successor` (NULL: none) has as well are not charged here. *ret: id and
 * bytes; id 0 if nothing is charged. Never fails: what cannot be read is not charged.
 */
void orphans_add(uint64_t id, const char *successor, struct pp_orphans *ret);

/* At start, after pins_recover(): takes note of all that there are. -errno. */
int orphans_recover(void);

/* Before the reaper removes the pins of one: who still has its `stat` open must not look for a
 * program that is gone. */
void orphans_bury(const char *path);

/* Runs fn for each, until it returns < 0; returns that, or 0. */
int orphans_foreach(int (*fn)(const struct pp_orphans *orphans, void *userdata), void *userdata);

/* Bytes that they all hold. */
uint64_t orphans_bytes(void);

/* Milliseconds until orphans_look() is due; -1: there are none. */
int orphans_timeout(void);

/* Something may have been released just now: look soon. */
void orphans_hurry(void);

/* If it is due: looks what is still held, runs fn for those that hold less than before (bytes 0:
 * all gone, and forgotten). */
void orphans_look(void (*fn)(const struct pp_orphans *orphans, void *userdata), void *userdata);
