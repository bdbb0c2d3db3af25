/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes over the registry of an earlier version: there NAMESPACE/EVENT, an event's first name, was
 * its directory, the records of its other names were "alias-ID", and by-id/ had symlinks.
 */
#pragma once

/*
 * At start, before names_recover(), which makes the links. Every step is one that the next start goes
 * on from, also where that version died in the middle of its own. What cannot be understood is logged
 * and left alone. -errno.
 */
int takeover(void);
