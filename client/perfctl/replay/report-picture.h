/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The records of a report, and the pictures that are written while they are read. */
#pragma once

#include "client/perfctl/replay/report-against.h"
#include "client/perfctl/replay/report.h"

struct picture;

/* Sums up the whole input, and passes it to the picture (NULL: none). 0, -EBADMSG (the rest is damaged, and
 * it has complained; the sums have all before it), -ENOMEM, or a write error. */
int report_read(struct input *in, const struct selection *selection, struct aggregate *a,
		struct picture *picture);

/* Reads all and writes --html or --perfetto. Takes the comparison over; it is empty if there is none.
 * Returns an exit code; has complained if it is not EXIT_OK. */
int report_picture(const struct report_options *o, struct input *in,
		   const struct selection *selection, struct aggregate *a,
		   struct report_against *against);
