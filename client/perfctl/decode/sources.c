// SPDX-License-Identifier: LGPL-2.1-or-later
/* An opened event's sources. Makes a source's decoder at its first record. */
#include <string.h>

#include "client/perfctl/decode/sources.h"

static int open_one(struct perfpersist_event *e, size_t i, struct source *ret)
{
	struct source s = { .info.sz = sizeof(s.info) };
	int r = perfpersist_event_source(e, i, &s.info);

	if (r < 0)
		return r;
	s.name = strndup(s.info.event, s.info.event_size);
	if (!s.name)
		return -ENOMEM;
	*ret = s;
	return 0;
}

int sources_open(struct perfpersist_event *e, struct sources *ret)
{
	struct sources s = { .n = perfpersist_event_sources(e) };
	int r = 0;

	s.all = calloc(s.n + 1, sizeof(*s.all));
	if (!s.all)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < s.n; i++)
		r = open_one(e, i, &s.all[i]);
	if (r < 0) {
		sources_done(&s);
		return r;
	}
	*ret = s;
	return 0;
}

void sources_done(struct sources *s)
{
	for (size_t i = 0; s->all && i < s->n; i++) {
		decoder_free(s->all[i].decoder);
		free(s->all[i].name);
	}
	free(s->all);
	*s = (struct sources){};
}

struct source *sources_of(struct sources *s, const struct perfpersist_sample *sample)
{
	struct source *one = sample->source < s->n ? &s->all[sample->source] : NULL;

	if (!one || one->tried)
		return one;
	one->tried = true;
	/* Without a valid format, records are shown as hex. */
	if (one->info.format &&
	    decoder_new(one->name, one->info.format, one->info.format_size, &one->decoder) < 0)
		one->decoder = NULL;
	return one;
}
