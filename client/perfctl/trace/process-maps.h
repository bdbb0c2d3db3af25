/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The mappings of one address space: a tree whose nodes are shared by all address spaces that were
 * copied from one another (fork), and never changed while they are shared. So a copy costs nothing,
 * and a change costs the path to the changed place: no file can make it take more memory than a few
 * nodes a record.
 */
#pragma once

#include "client/perfctl/trace/process.h"

struct map_node;

struct map_node *maps_ref(struct map_node *n);
void maps_unref(struct map_node *n);

/* Maps a range and replaces what was there, as mmap(2) does. -ENOMEM: *maps is empty then. */
int maps_insert(struct map_node **maps, const struct map *map);

/* Unmaps the range from start to end. -ENOMEM: *maps is empty then. */
int maps_remove(struct map_node **maps, uint64_t start, uint64_t end);

/* NULL: not mapped. Valid until the next change of any tree. */
const struct map *maps_find(const struct map_node *n, uint64_t address);
