/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads an iterator in a thread of its own. A process can make such a read slow, or hold the lock of
 * its mappings for as long as it likes: only a caller that waits for a pipe can give up.
 */
#pragma once

struct pump;

/* Starts to read `fd`, which stays the caller's, to its end, into a pipe. ret_from: the pipe's end to
 * read, valid until pump_stop(). < 0: no thread, or no descriptor. */
int pump_start(int fd, struct pump **ret, int *ret_from);

/* Closes the pipe, and frees `pump`. A read that does not return keeps its thread until it does. < 0: the
 * iterator could not be read, which the caller that read to the pipe's end then learns. */
int pump_stop(struct pump *pump);
