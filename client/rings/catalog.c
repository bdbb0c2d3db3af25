// SPDX-License-Identifier: LGPL-2.1-or-later
/* The private copy of a catalog. The file behind the descriptor may come from anywhere and change
 * at any moment; so it is copied first and checked then. */
#include "client/rings/catalog.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>

#include "client/public.h"
#include "client/rings/bpf.h"
#include "client/rings/sample.h"
#include "proto/io.h"

#define CATALOG_MAX (1UL << 28)

static int not_a_catalog(int fd)
{
	return client_fail(-EBADMSG,
			   "descriptor %d is not the catalog of an event of perfpersist, or it is "
			   "damaged",
			   fd);
}

/* A mapped file may be truncated, so it is read. */
static int read_file(int fd, void *buf, size_t size)
{
	return pp_pread_all(fd, buf, size, 0) == (ssize_t)size ? 0 : not_a_catalog(fd);
}

static int read_map(int fd, void *buf, size_t size)
{
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return not_a_catalog(fd);
	memcpy(buf, map, size);
	munmap(map, size);
	return 0;
}

static int find_size(int fd, size_t said, bool *ret_is_file, size_t *ret)
{
	struct pp_catalog_header h;
	size_t size = said;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return client_fail(-errno, "cannot look at descriptor %d: %m", fd);
	*ret_is_file = S_ISREG(st.st_mode);
	if (*ret_is_file)
		size = st.st_size > 0 ? (size_t)st.st_size : 0;
	else if (!size)
		size = client_bpf_value_size(fd);
	if (!size) {
		r = *ret_is_file ? not_a_catalog(fd) : read_map(fd, &h, sizeof(h));
		if (r < 0)
			return r;
		size = h.size;
	}
	if (size < sizeof(h) || size > CATALOG_MAX)
		return not_a_catalog(fd);
	*ret = size;
	return 0;
}

static int copy_catalog(int fd, size_t said, void **ret)
{
	_cleanup_free_ void *bytes = NULL;
	bool is_file = false;
	size_t size = 0;
	int r;

	r = find_size(fd, said, &is_file, &size);
	if (r < 0)
		return r;
	bytes = malloc(size);
	if (!bytes)
		return client_fail(-ENOMEM, "cannot open the event: no memory for its catalog");
	r = is_file ? read_file(fd, bytes, size) : read_map(fd, bytes, size);
	if (r < 0)
		return r;
	r = pp_catalog_check(bytes, size);
	if (r == -EPROTONOSUPPORT)
		return client_fail(r,
				   "cannot read the catalog in descriptor %d: it was made by a "
				   "newer version of perfpersist; update libperfpersist",
				   fd);
	if (r < 0)
		return not_a_catalog(fd);
	*ret = TAKE_PTR(bytes);
	return 0;
}

int client_catalog_open(int fd, size_t size, struct client_catalog *ret)
{
	_cleanup_close_ int owned = fd;
	struct client_catalog c = { .bytes = NULL };
	int r = copy_catalog(owned, size, &c.bytes);

	if (r < 0)
		return r;
	c.n = ((const struct pp_catalog_header *)c.bytes)->n_sources;
	c.event_id = ((const struct pp_catalog_header *)c.bytes)->event_id;
	c.fd = TAKE_FD(owned);
	*ret = c;
	return 0;
}

void client_catalog_done(struct client_catalog *c)
{
	if (c->bytes)
		close(c->fd);
	free(c->bytes);
	*c = (struct client_catalog){ .bytes = NULL };
}

void client_catalog_source(const struct client_catalog *c, uint32_t i,
			   struct perfpersist_source *ret)
{
	const struct pp_catalog_entry *e = pp_catalog_entry(c->bytes, i);
	const char *bytes = c->bytes;

	*ret = (struct perfpersist_source){
		.sz = ret->sz,
		.id = e->id,
		.sample_type = e->sample_type,
		.recorder = e->recorder,
		.event = bytes + e->text_offset,
		.event_size = e->text_size,
		.attr = e->attr_size ? bytes + e->attr_offset : NULL,
		.attr_size = e->attr_size,
		.format = e->format_size ? bytes + e->format_offset : NULL,
		.format_size = e->format_size,
	};
}

static struct pp_sample_form form_of(uint64_t sample_type, const void *attr, size_t attr_size)
{
	struct perf_event_attr a = {};

	if (sample_type & PERF_SAMPLE_REGS_USER)
		memcpy(&a, attr, MIN(attr_size, sizeof(a)));
	return (struct pp_sample_form){
		.sample_type = sample_type,
		.sample_regs_user = a.sample_regs_user,
	};
}

int client_decode(const struct pp_ring_header *h, const struct client_catalog *c,
		  const void *record, size_t size, struct perfpersist_sample *ret)
{
	const struct pp_catalog_entry *e;
	struct pp_sample_form form;
	int r, source;
	uint64_t id;

	if (h->n_sources <= 1) {
		form = form_of(h->sample_type, h->attr, h->attr_size);
		return sample_decode(&form, record, size, ret);
	}
	if (!c->bytes || size < sizeof(struct perf_event_header) + sizeof(id))
		return -EBADMSG;
	memcpy(&id, (const char *)record + sizeof(struct perf_event_header), sizeof(id));
	source = pp_catalog_find(c->bytes, id);
	if (source < 0)
		return -EBADMSG;
	e = pp_catalog_entry(c->bytes, (uint32_t)source);
	if (!(e->sample_type & PERF_SAMPLE_IDENTIFIER)) /* otherwise its fields would be at other
							 * offsets */
		return -EBADMSG;
	form = form_of(e->sample_type, (const char *)c->bytes + e->attr_offset, e->attr_size);
	r = sample_decode(&form, record, size, ret);
	if (r >= 0)
		ret->source = (uint32_t)source;
	return r;
}
