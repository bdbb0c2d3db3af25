/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Takes over the registry of an earlier version: there NAMESPACE/EVENT, an event's first name, was
 * its directory, the records of its other names were "alias-ID", and by-id/ had symlinks.
 */
#pragma once

/*
 * At start, before names_recover(), which makes the links. The next start can continue after any
 * step, even if that version died in the middle of its own. Logs what it cannot read, and leaves it
 * alone. -errno.
 */
int takeover(void);
