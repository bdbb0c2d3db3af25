// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks catalogs, which may come from anywhere. */
#include "proto/catalog.h"

#include <errno.h>
#include <stdbool.h>

static bool is_inside(const struct pp_catalog_header *h, __u32 offset, __u32 size)
{
	return (__u64)offset + size <= h->size;
}

int pp_catalog_check(const void *catalog, size_t size)
{
	const struct pp_catalog_header *h = catalog;

	if (size < sizeof(*h) || h->magic != PP_CATALOG_MAGIC || h->version == 0)
		return -EBADMSG;
	if (h->version > PP_CATALOG_VERSION)
		return -EPROTONOSUPPORT;
	if (h->header_size != sizeof(*h) || h->entry_size != sizeof(struct pp_catalog_entry) ||
	    h->n_sources == 0 || h->n_sources > PP_SOURCES_MAX || h->size > size ||
	    sizeof(*h) + (__u64)h->n_sources * h->entry_size > h->size)
		return -EBADMSG;
	for (__u32 i = 0; i < h->n_sources; i++) {
		const struct pp_catalog_entry *e = pp_catalog_entry(catalog, i);

		if (e->id != PP_SOURCE_ID(h->event_id, i) || e->attr_size > 256 ||
		    !is_inside(h, e->text_offset, e->text_size) ||
		    !is_inside(h, e->attr_offset, e->attr_size) ||
		    !is_inside(h, e->format_offset, e->format_size))
			return -EBADMSG;
	}
	return 0;
}

const struct pp_catalog_entry *pp_catalog_entry(const void *catalog, __u32 i)
{
	const struct pp_catalog_header *h = catalog;

	return (const struct pp_catalog_entry *)((const char *)catalog + h->header_size) + i;
}

int pp_catalog_find(const void *catalog, __u64 id)
{
	const struct pp_catalog_header *h = catalog;
	__u64 index = id & (PP_SOURCES_MAX - 1);

	return index < h->n_sources && id == PP_SOURCE_ID(h->event_id, index) ? (int)index : -1;
}
