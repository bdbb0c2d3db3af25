/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sealed copies of rings and catalogs. Knows nothing of who wants them. */
#pragma once

#include <stddef.h>

/*
 * A copy of the ring behind fd, of which `size` bytes can be mapped, as it is at this moment:
 * whoever reads the copy as proto/ring.h says finds exactly the records that were whole, in a
 * ring at rest. The recorder is not paused. *ret is a sealed memfd, read-only and CLOEXEC, the
 * caller's.
 *
 * 0; -EBADMSG (not a ring, damaged, or it could shrink under us); -EPROTONOSUPPORT (of a newer
 * version); another -errno of the kernel's.
 */
int copy_ring(int fd, size_t size, int *ret);

/* Likewise of a catalog, which does not change. */
int copy_catalog(int fd, size_t size, int *ret);
