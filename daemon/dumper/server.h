/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Takes the broker's jobs, one at a time, and sends the copies back. */
#ifndef PP_DUMPER_SERVER_H
#define PP_DUMPER_SERVER_H

/* Serves the listening SOCK_SEQPACKET socket until something fails for good: -errno. */
int serve_copies(int listener);

#endif
