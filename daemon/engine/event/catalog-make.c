// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes catalogs. Knows nothing of rings. */
#include "daemon/engine/event/catalog-make.h"

#include <bpf/bpf.h>
#include <string.h>

#include "proto/catalog.h"
#include "proto/macro.h"

struct writing {
	char *base; /* NULL: only measures */
	size_t at;
};

static void put(struct writing *w, const void *from, size_t size, uint32_t *ret_offset,
		uint32_t *ret_size)
{
	if (w->base)
		memcpy(w->base + w->at, from, size);
	*ret_offset = size ? w->at : 0;
	*ret_size = size;
	w->at += ALIGN_TO(size, 8UL);
}

static void put_source(struct writing *w, const struct source *source, struct pp_catalog_entry *e)
{
	char text[PP_TP_NAME_SIZE * 2];

	source_text(source, text, sizeof(text));
	*e = (struct pp_catalog_entry){
		.id = source->id,
		.sample_type = PERF_SAMPLE_IDENTIFIER | source->sample_type,
		.recorder = source->recorder->kind,
	};
	put(w, text, strlen(text), &e->text_offset, &e->text_size);
	put(w, &source->attr, sizeof(source->attr), &e->attr_offset, &e->attr_size);
	if (source->tp)
		put(w, source->tp->format, source->tp->format_size, &e->format_offset,
		    &e->format_size);
}

/* Writes into base, which is zeroed; base NULL: only measures. Returns the size. */
static size_t write_catalog(char *base, const struct sources *s, uint64_t event_id)
{
	struct pp_catalog_header *h = (struct pp_catalog_header *)base;
	struct pp_catalog_entry nowhere, *entries = (struct pp_catalog_entry *)(h + 1);
	struct writing w = { base, sizeof(*h) + s->n * sizeof(*entries) };

	for (size_t i = 0; i < s->n; i++)
		put_source(&w, &s->v[i], base ? &entries[i] : &nowhere);
	if (base)
		*h = (struct pp_catalog_header){
			.magic = PP_CATALOG_MAGIC,
			.version = PP_CATALOG_VERSION,
			.header_size = sizeof(*h),
			.entry_size = sizeof(*entries),
			.n_sources = s->n,
			.size = w.at,
			.event_id = event_id,
		};
	return w.at;
}

int catalog_create(const struct sources *s, uint64_t event_id, int *ret_fd, uint32_t *ret_size)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	size_t size = write_catalog(NULL, s, event_id);
	_cleanup_close_ int fd = -EBADF;
	void *base;

	if (size > UINT32_MAX)
		return -E2BIG;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_catalog", 4, size, 1, &opts);
	if (fd < 0)
		return fd;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	write_catalog(base, s, event_id);
	munmap(base, size);
	if (bpf_map_freeze(fd) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	*ret_size = size;
	return 0;
}

int catalog_read(int fd, uint32_t size, void **ret)
{
	_cleanup_free_ void *copy = malloc(size);
	void *base;

	if (!copy)
		return -ENOMEM;
	base = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	memcpy(copy, base, size);
	munmap(base, size);
	if (pp_catalog_check(copy, size) < 0)
		return -EBADMSG;
	*ret = TAKE_PTR(copy);
	return 0;
}

void catalog_records(const void *catalog, struct source_record *ret, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct pp_catalog_entry *e = pp_catalog_entry(catalog, i);

		ret[i] = (struct source_record){
			.text = (const char *)catalog + e->text_offset,
			.text_size = e->text_size,
			.format = (const char *)catalog + e->format_offset,
			.format_size = e->format_size,
			.recorder = e->recorder,
		};
	}
}
