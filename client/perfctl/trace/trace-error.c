// SPDX-License-Identifier: LGPL-2.1-or-later
/* Error messages, and memory that lives as long as a trace. */
#include <stdarg.h>
#include <stdlib.h>

#include "client/perfctl/trace/trace-internal.h"

static _Thread_local char error[512];

const char *trace_error(void)
{
	return error;
}

int trace_damaged(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, sizeof(error), format, args);
	va_end(args);
	return -EBADMSG;
}

int trace_note_damage(struct trace *t, const char *format, ...)
{
	va_list args;
	int r;

	if (t->damage)
		return 0;
	va_start(args, format);
	r = vasprintf(&t->damage, format, args);
	va_end(args);
	if (r < 0) {
		t->damage = NULL;
		return -ENOMEM;
	}
	return 0;
}

struct blob {
	struct blob *next;
	void *bytes;
};

int trace_keep(struct trace *t, void *bytes)
{
	struct blob *b = malloc(sizeof(*b));

	if (!b || !bytes) {
		free(b);
		free(bytes);
		return -ENOMEM;
	}
	*b = (struct blob){ .next = t->blobs, .bytes = bytes };
	t->blobs = b;
	return 0;
}

void trace_free_kept(struct trace *t)
{
	while (t->blobs) {
		struct blob *b = t->blobs;

		t->blobs = b->next;
		free(b->bytes);
		free(b);
	}
}
