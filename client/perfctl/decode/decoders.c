// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/decode/decoders.h"

int decoders_init(struct decoders *d, size_t n_events)
{
	*d = (struct decoders){ .of_format = calloc(n_events + 1, sizeof(*d->of_format)),
				.n = n_events };
	return d->of_format ? 0 : -ENOMEM;
}

void decoders_done(struct decoders *d)
{
	for (size_t i = 0; d->of_format && i < d->n; i++)
		decoder_free(d->of_format[i].decoder);
	free(d->of_format);
	*d = (struct decoders){};
}

int decoders_get(struct decoders *d, const struct trace_event *e, struct decoder **ret)
{
	struct decoder_place *place;
	int r;

	*ret = NULL;
	if (!e->format)
		return 0;
	place = &d->of_format[e->format_index];
	if (!place->tried) {
		r = decoder_new(e->name, e->format, e->format_size, &place->decoder);
		if (r == -ENOMEM)
			return r;
		place->tried = true;
	}
	*ret = place->decoder;
	return 0;
}
