/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sealed copies of rings and catalogs. Does not know who asks for them. */
#pragma once

#include <stddef.h>

/*
 * Copies the ring behind fd, of which `size` bytes can be mapped, as it is now. A reader that
 * follows proto/ring.h finds in the copy exactly the records that were whole, in a ring at rest.
 * The recorder keeps recording. *ret is a sealed memfd, read-only and CLOEXEC; the caller owns it.
 *
 * 0; -EBADMSG (not a ring, damaged, or a file that can shrink); -EPROTONOSUPPORT (made by a newer
 * version); another -errno of the kernel's.
 */
int copy_ring(int fd, size_t size, int *ret);

/* Likewise for a catalog, which does not change. */
int copy_catalog(int fd, size_t size, int *ret);
