// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens what keeps an event alive. See handout.h. */
#include "daemon/engine/event/handout.h"

#include <string.h>

#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/pins.h"
#include "proto/macro.h"

#define LEAF_SIZE 32

/* The names of pins, in falling order: PROG_ARRAYs come before links. */
struct leaves {
	char (*v)[LEAF_SIZE];
	size_t n;
};

static void leaves_done(struct leaves *l)
{
	free(l->v);
}

static int add_leaf(const char *path _unused_, const char *leaf, void *userdata)
{
	struct leaves *l = userdata;
	void *more;

	if (!pins_is_link(leaf) && !pins_is_programs(leaf))
		return 0;
	if (strlen(leaf) >= LEAF_SIZE)
		return -EBADMSG;
	more = reallocarray(l->v, l->n + 1, LEAF_SIZE);
	if (!more)
		return -ENOMEM;
	l->v = more;
	snprintf(l->v[l->n++], LEAF_SIZE, "%s", leaf);
	return 0;
}

static int by_name_down(const void *a, const void *b)
{
	return strcmp(b, a);
}

static int read_all(const char *path, struct meta_map **ret, size_t *ret_n, struct leaves *leaves)
{
	_cleanup_close_ int meta = pins_get(path, "meta");
	struct pp_event event;
	int r = meta < 0 ? meta : meta_read_all(meta, &event, NULL, ret, ret_n, NULL);

	if (r >= 0)
		r = pins_foreach_leaf(path, add_leaf, leaves);
	if (r >= 0 && leaves->n > 0)
		qsort(leaves->v, leaves->n, LEAF_SIZE, by_name_down);
	return r;
}

static int open_one(const char *path, const struct meta_map *maps, size_t n_maps,
		    const struct leaves *leaves, size_t i)
{
	const char *leaf;

	if (i < n_maps)
		return meta_map_open(&maps[i]);
	leaf = leaves->v[i - n_maps];
	return pins_is_link(leaf) ? pins_get(path, leaf) : pins_get_to_read(path, leaf);
}

static int open_page(const char *path, uint32_t first, struct pp_fds *ret, uint32_t *ret_total)
{
	_cleanup_(leaves_done) struct leaves leaves = {};
	_cleanup_free_ struct meta_map *maps = NULL;
	size_t n_maps = 0;
	int r = read_all(path, &maps, &n_maps, &leaves);

	for (size_t i = first; r >= 0 && i < n_maps + leaves.n && ret->n < PP_FDS_MAX; i++) {
		r = open_one(path, maps, n_maps, &leaves, i);
		if (r >= 0)
			ret->fd[ret->n++] = r;
	}
	*ret_total = n_maps + leaves.n;
	return MIN(r, 0);
}

int event_hand_out(const char *path, uint32_t first, struct pp_fds *ret, uint32_t *ret_total,
		   struct failure *f)
{
	int r = open_page(path, first, ret, ret_total);

	if (r >= 0)
		return 0;
	pp_fds_close(ret);
	return fail(f, -r, "Cannot open what keeps '%s' alive: %s.", path, strerror(-r));
}
