/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What is left of deleted and replaced events: rings whose pins are gone, and which live on in
 * the kernel while somebody has them mapped. They stay charged until then. The kernel tells of
 * no map's end, so that it is asked, by the maps' ids, ever less often, and only while there are
 * any remains.
 *
 * Each has a directory "+del-ID" with the `meta` of what it was, so that none is forgotten
 * whoever dies.
 */
#pragma once

#include "daemon/order.h"

/*
 * Takes note of "+del-ID", just made by pins_remove() or pins_replace(), and has it reaped. Maps
 * that the event at `successor` (NULL: none) has as well are not charged here. *ret: id and
 * bytes; id 0 if nothing is charged. Never fails: what cannot be read is not charged.
 */
void remains_add(uint64_t id, const char *successor, struct pp_remains *ret);

/* At start, after pins_recover(): takes note of all that there are. -errno. */
int remains_recover(void);

/* Before the reaper removes the pins of one: who still has its `stat` open must not look for a
 * program that is gone. */
void remains_bury(const char *path);

/* Runs fn for each, until it returns < 0; returns that, or 0. */
int remains_foreach(int (*fn)(const struct pp_remains *remains, void *userdata), void *userdata);

/* Bytes that they all hold. */
uint64_t remains_bytes(void);

/* Milliseconds until remains_look() is due; -1: there are none. */
int remains_timeout(void);

/* Something may have been released just now: look soon. */
void remains_hurry(void);

/* If it is due: looks what is still held, runs fn for those that hold less than before (bytes 0:
 * all gone, and forgotten). */
void remains_look(void (*fn)(const struct pp_remains *remains, void *userdata), void *userdata);
