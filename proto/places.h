/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The paths of an instance. Each path of an instance NAME ends in "-NAME"; the system's own
 * instance has the empty name.
 *
 *   /run/perfpersist[-NAME]/           0755
 *     control                          the broker's socket
 *     engine, dumper                   their sockets, for the broker alone
 *     keeper                           its socket, for the broker and root
 *     lock, engine.lock                held by the foreground's daemon; by each engine
 *     registry/                        a bpffs:
 *       by-id/                         0711 root: nobody else can list it
 *       by-id/ID/                      an event; ID is what its rings say
 *       by-id/ID/info, stat            text for people      broker:GROUP, r as the oldest name's namespace
 *       by-id/ID/cpuN                  ring of CPU N        0600 broker's user
 *       by-id/ID/catalog               of several sources   0600 broker's user
 *       by-id/ID/meta                  what it was made from 0600 root
 *       by-id/ID/name-ID               each of its names (name-record.h) 0600 root
 *       by-id/ID/rings, …              the outer map, slots, links 0600 root; counters that others are
 *                                      about to replace, and their slots, with "former-"
 *       by-id/ID/tape, spare,          of an armed event: which set of rings records, the second set,
 *                sidesN, frozen        programs for each set, events while none records 0600 root
 *       by-id/ID/fired, kept           what turned it; for a moment, see +tape-ID 0600 root
 *       by-id/ID/stopped               the trigger's firing that has paused it 0600 root
 *       by-id/ID/trigger               a trigger's limits and counts 0460 broker's user:root
 *       by-id/ID/targets, fireN        the tapes that it turns, its programs 0600 root
 *       NAMESPACE/EVENT                a name: symlink to ../by-id/ID
 *       +new-N/, +del-ID/              being made; being reaped, or still mapped by somebody
 *       +tape-ID/                      what an event had recorded when a trigger fired, until it is
 *                                      released: its rings, catalog, meta and `fired`, as above
 *       +kept-ID/                      likewise, of a trigger whose tapes are saved if somebody asks for it
 *       +frozen-ID                     symlink to an event that a trigger has frozen, until what it
 *                                      had recorded is saved
 *       +last-id                       the newest id given
 *       +wakeups                       ring buffer of wakeups 0660 broker's user:root
 *       +firings                       ring buffer of firings (daemon/trigger.h) 0660 broker's user:root
 *       +cpus                          when each CPU went offline (daemon/hotplug.h) 0440 broker's user:root
 *       +cpus-link                     the program that writes it 0600 root
 *       +totals                        program that counts any event (daemon/totals.h) 0660 broker's user:root
 *       +totals-known-1                that program's map of events 0600 root
 *   /etc/perfpersist[-NAME]/, /usr/lib/perfpersist[-NAME]/
 *     events.d/NAME.conf               configured events; also in /run/perfpersist[-NAME]/
 *   /var/lib/perfpersist[-NAME]/
 *     events.d/NS.NAME.conf            the same, written by `perfctl create --boot`
 *     saved/TIME/                      the rings' contents at a shutdown, written by `perfctl save`
 *     checkpoints/                     0755 (client/local/checkpoints.h), of the user of `perfctl
 *                                      checkpoint`, who writes there what events record, and what
 *                                      earlier boots have left as saves
 *     snapshots/                       0750, files 0640, or 0600 where the namespace's group may not
 *                                      read; of the user of `perfctl snapshots collect`, who writes
 *                                      one for each firing of a trigger
 *     snapshots.done/                  an empty file for each of them whose command has run; of the
 *                                      user of `perfctl snapshots exec`
 */
#pragma once

#include <stddef.h>

#define PP_PLACE_RUN "/run/perfpersist"
#define PP_BY_ID "by-id" /* no namespace can have this name */

/*
 * "/run/perfpersist[-INSTANCE]" + leaf ("", "/control", "/registry", …). instance may be NULL.
 * Returns 0; -EINVAL (not a valid instance name); -ENAMETOOLONG.
 */
int pp_place(const char *instance, const char *leaf, char *buf, size_t size);
