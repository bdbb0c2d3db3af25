// SPDX-License-Identifier: LGPL-2.1-or-later
/* Notes why an order failed. Knows no reasons itself. */
#include "daemon/engine/failure.h"

#include <stdarg.h>

int fail(struct failure *f, int error, const char *fmt, ...)
{
	va_list args;

	if (f->error)
		return -error;
	f->error = error;
	va_start(args, fmt);
	vsnprintf(f->sentence, sizeof(f->sentence), fmt, args);
	va_end(args);
	return -error;
}
