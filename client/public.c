// SPDX-License-Identifier: LGPL-2.1-or-later
/* Each thread's last error message, and the library's version. */
#include "client/public.h"

#include <stdarg.h>

#include "client/perfpersist.h"

static _Thread_local char sentence[CLIENT_SENTENCE_SIZE] = "nothing has failed";

int client_fail(int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	return error;
}

const char *client_sentence(void)
{
	return sentence;
}

_public_ const char *perfpersist_version(void)
{
	return PP_VERSION;
}
