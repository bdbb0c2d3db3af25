/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Where an instance's things are. An instance NAME has "-NAME" behind each place; the
 * system's own instance is the empty string.
 *
 *   /run/perfpersist[-NAME]/           0755
 *     control                          the broker's socket
 *     engine                           the engine's socket, the broker's alone
 *     lock, engine.lock                held by the foreground's daemon; by each engine
 *     registry/                        a bpffs:
 *       NAMESPACE/EVENT/info, stat     text for people      broker:GROUP, r as the namespace
 *       NAMESPACE/EVENT/cpuN           ring of CPU N        0600 broker's user
 *       NAMESPACE/EVENT/meta           struct pp_event      0600 root
 *       NAMESPACE/EVENT/rings, program                      0600 root
 *       NAMESPACE/EVENT/link, or linkN for each CPU N       0600 root
 *       by-id/ID                       symlink to ../NAMESPACE/EVENT
 *       +new-N/, +del-N/               being made, being reaped
 *       +last-id                       the newest id given
 */
#ifndef PP_PLACES_H
#define PP_PLACES_H

#include <stddef.h>

#define PP_PLACE_RUN "/run/perfpersist"
#define PP_BY_ID "by-id" /* no namespace can have this name */

/*
 * "/run/perfpersist[-INSTANCE]" + leaf ("", "/control", "/registry", …). instance may be NULL.
 * Returns 0; -EINVAL (not a valid instance name); -ENAMETOOLONG.
 */
int pp_place(const char *instance, const char *leaf, char *buf, size_t size);

#endif
