// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes, reads and checks the fixed parts of a checkpoint's file. Trusts no byte of it. */
#include "client/local/checkpoint-file.h"

#include <string.h>
#include <sys/stat.h>

#include "client/local/saved-write.h"
#include "client/rings/event.h"
#include "proto/cursor.h"
#include "proto/io.h"
#include "proto/macro.h"
#include "proto/siphash.h"

#define HEADER_MAX (64U << 20)

/* Against damage, not against forgers: who can write the file can also write what it should be. */
static uint64_t checksum(const void *bytes, size_t n)
{
	static const uint8_t key[16];
	struct siphash h;

	siphash_begin(&h, key);
	siphash_add(&h, bytes, n);
	return siphash_end(&h);
}

void checkpoint_layout_done(struct checkpoint_layout *l)
{
	free(l->rings);
	free(l->info);
	free(l->bytes);
	*l = (struct checkpoint_layout){};
}

/* ── reading ────────────────────────────────────────────────────────────────────────────── */

/* Where everything is, from what the header has told. */
static void lay_out(struct checkpoint_layout *l)
{
	uint64_t at = ALIGN_TO((uint64_t)l->bytes_size, CHECKPOINT_PAGE);

	l->slot_size =
		ALIGN_TO(sizeof(struct checkpoint_slot) + l->n * sizeof(struct checkpoint_ring),
			 CHECKPOINT_PAGE);
	for (size_t i = 0; i < ARRAY_SIZE(l->slot_at); i++) {
		l->slot_at[i] = at;
		at += l->slot_size;
	}
	for (size_t i = 0; i < l->n; i++) {
		l->rings[i].at = at;
		at += ALIGN_TO(checkpoint_place_size(&l->rings[i].header), CHECKPOINT_PAGE);
	}
	l->size = at;
}

static int parse_ring(struct cursor *c, struct pp_ring_header *ret, const uint8_t **ret_format)
{
	const void *raw = cursor_bytes(c, sizeof(*ret));
	/* Checked against its own promise: the ring itself is elsewhere. */
	int r = raw ? pp_ring_check(raw, SIZE_MAX, ret) : -EBADMSG;

	if (r < 0)
		return r;
	*ret_format = cursor_bytes(c, ret->format_size);
	return *ret_format ? 0 : -EBADMSG;
}

static int parse(struct checkpoint_layout *l)
{
	struct cursor c = { .p = l->bytes, .left = l->bytes_size };
	const struct checkpoint_header *h = cursor_bytes(&c, sizeof(*h));
	const void *info = cursor_bytes(&c, h->info_size);
	int r = 0;

	l->catalog_size = h->catalog_size;
	l->catalog = cursor_bytes(&c, h->catalog_size);
	if (c.bad)
		return -EBADMSG;
	if (!l->catalog_size)
		l->catalog = NULL;
	l->n = h->n_rings;
	l->rings = calloc(l->n, sizeof(*l->rings));
	l->info = strndup(info, h->info_size);
	if (!l->rings || !l->info)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < l->n; i++)
		r = parse_ring(&c, &l->rings[i].header, &l->rings[i].format);
	if (r < 0 || c.left)
		return r < 0 ? r : -EBADMSG;
	lay_out(l);
	return 0;
}

static bool is_whole(const struct checkpoint_layout *l)
{
	struct checkpoint_header *h = (void *)l->bytes;
	uint64_t promised = h->checksum, sum;

	h->checksum = 0;
	sum = checksum(l->bytes, l->bytes_size);
	h->checksum = promised;
	return sum == promised;
}

/* A newer version may have anything behind the first words. */
static int check_header(const struct checkpoint_header *h, uint64_t file_size)
{
	if (h->magic != CHECKPOINT_MAGIC || !h->version)
		return -EBADMSG;
	if (h->version > CHECKPOINT_VERSION)
		return -EPROTONOSUPPORT;
	if (h->size < sizeof(*h) || h->size > MIN(HEADER_MAX, file_size) || !h->n_rings ||
	    h->n_rings > CHECKPOINT_RINGS_MAX)
		return -EBADMSG;
	return 0;
}

int checkpoint_header_read(int fd, struct checkpoint_layout *ret)
{
	_cleanup_(checkpoint_layout_done) struct checkpoint_layout l = {};
	struct checkpoint_header h;
	ssize_t n = pp_pread_all(fd, &h, sizeof(h), 0);
	struct stat st;
	int r;

	if (n < 0 || fstat(fd, &st) < 0)
		return n < 0 ? (int)n : -errno;
	r = n == sizeof(h) ? check_header(&h, (uint64_t)st.st_size) : -EBADMSG;
	if (r < 0)
		return r;
	l.bytes_size = h.size;
	l.bytes = malloc(h.size);
	if (!l.bytes)
		return -ENOMEM;
	n = pp_pread_all(fd, l.bytes, h.size, 0);
	if (n < 0)
		return (int)n;
	/* Another read: it may say something else. */
	if ((size_t)n != h.size || memcmp(&h, l.bytes, sizeof(h)) != 0 || !is_whole(&l))
		return -EBADMSG;
	r = parse(&l);
	if (r >= 0 && l.size > (uint64_t)st.st_size)
		r = -EBADMSG; /* cut off: what it holds is never larger than what it takes */
	if (r < 0)
		return r;
	*ret = l;
	l = (struct checkpoint_layout){};
	return 0;
}

static bool ring_is_good(const struct checkpoint_ring *r, const struct pp_ring_header *h)
{
	return r->held <= h->data_size && (r->held | r->place | r->live.head) % 8 == 0 &&
	       r->held <= 0 - r->live.head;
}

int checkpoint_slot_read(int fd, const struct checkpoint_layout *l, unsigned which,
			 struct checkpoint_slot *ret)
{
	const size_t skip = sizeof(ret->checksum);
	ssize_t n = pp_pread_all(fd, ret, l->slot_size, l->slot_at[which]);

	if (n < 0)
		return (int)n;
	if ((size_t)n != l->slot_size || !ret->sequence ||
	    ret->checksum != checksum((const uint8_t *)ret + skip, l->slot_size - skip))
		return -EBADMSG;
	for (size_t i = 0; i < l->n; i++)
		if (!ring_is_good(&ret->rings[i], &l->rings[i].header))
			return -EBADMSG;
	return 0;
}

int checkpoint_slot_find(int fd, const struct checkpoint_layout *l, struct checkpoint_slot **ret)
{
	_cleanup_free_ struct checkpoint_slot *a = malloc(l->slot_size), *b = malloc(l->slot_size);
	int first = a && b ? checkpoint_slot_read(fd, l, 0, a) : -ENOMEM, second;

	if (first < 0 && first != -EBADMSG)
		return first;
	second = checkpoint_slot_read(fd, l, 1, b);
	if (second < 0 && second != -EBADMSG)
		return second;
	if (first < 0 && second < 0)
		return -ENOENT;
	if (first >= 0 && (second < 0 || a->sequence > b->sequence)) {
		*ret = TAKE_PTR(a);
		return 0;
	}
	*ret = TAKE_PTR(b);
	return 1;
}

/* ── making ─────────────────────────────────────────────────────────────────────────────── */

void checkpoint_slot_seal(const struct checkpoint_layout *l, struct checkpoint_slot *slot)
{
	const size_t skip = sizeof(slot->checksum);

	slot->checksum = checksum((const uint8_t *)slot + skip, l->slot_size - skip);
}

static int print_info(const struct perfpersist_event *e, char **ret, size_t *ret_size)
{
	FILE *f = open_memstream(ret, ret_size);

	if (!f)
		return -ENOMEM;
	saved_print_info(f, &e->base);
	return fclose(f) ? -ENOMEM : 0;
}

/* The live words belong to the slots. */
static int print_ring(FILE *f, const struct client_ring *ring)
{
	struct pp_ring_header h = ring->header;
	_cleanup_free_ uint8_t *format = malloc(h.format_size + 1);
	int r;

	if (!format)
		return -ENOMEM;
	h.live = (struct pp_ring_live){};
	h.limit = (struct pp_ring_limit){};
	r = client_ring_read(ring, sizeof(h), format, h.format_size);
	if (r < 0)
		return r;
	fwrite(&h, sizeof(h), 1, f);
	fwrite(format, 1, h.format_size, f);
	return 0;
}

static int print_header(FILE *f, const struct perfpersist_event *e)
{
	const struct pp_catalog_header *catalog = e->catalog.bytes;
	_cleanup_free_ char *info = NULL;
	struct checkpoint_header h = {
		.magic = CHECKPOINT_MAGIC,
		.version = CHECKPOINT_VERSION,
		.n_rings = (uint32_t)e->n,
		.catalog_size = catalog ? catalog->size : 0,
	};
	size_t size = 0;
	int r = print_info(e, &info, &size);

	if (r < 0)
		return r;
	h.info_size = (uint32_t)size;
	fwrite(&h, sizeof(h), 1, f);
	fwrite(info, 1, size, f);
	if (catalog)
		fwrite(catalog, 1, h.catalog_size, f);
	for (size_t i = 0; r >= 0 && i < e->n; i++)
		r = print_ring(f, &e->rings[i]);
	return r;
}

int checkpoint_header_make(struct perfpersist_event *e, struct checkpoint_layout *ret)
{
	_cleanup_(checkpoint_layout_done) struct checkpoint_layout l = {};
	struct checkpoint_header *h;
	FILE *f;
	int r;

	if (!e->n || e->n > CHECKPOINT_RINGS_MAX)
		return -EINVAL;
	f = open_memstream((char **)&l.bytes, &l.bytes_size);
	if (!f)
		return -ENOMEM;
	r = print_header(f, e);
	if (fclose(f) && r >= 0)
		r = -ENOMEM;
	if (r >= 0 && l.bytes_size > HEADER_MAX)
		r = -EFBIG;
	if (r < 0)
		return r;
	h = (void *)l.bytes;
	h->size = l.bytes_size;
	h->checksum = checksum(l.bytes, l.bytes_size);
	r = parse(&l);
	if (r < 0)
		return r;
	*ret = l;
	l = (struct checkpoint_layout){};
	return 0;
}
