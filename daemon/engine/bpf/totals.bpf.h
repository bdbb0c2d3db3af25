/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The totals of any event's `stat` in numbers (daemon/totals.h). A part of tree.bpf.h, whose maps
 * it reads and whose `stat` calls be_known().
 */
#pragma once

/* A map's address in the kernel, and its id, which tells whether the same map is still there. */
struct place {
	__u64 map;
	__u32 id, n;
};

struct totals_key {
	__u64 id;
	__u32 set, reserved;
};

/* The maps that an event's `stat` reads. A change makes another `stat`, with some other maps. */
struct totals_places {
	struct place rings, ringless, earlier, distances, meta;
	__u64 element; /* of per_cpu, from which the distances count */
	struct tree_constants constants;
};

/* Belongs to the instance and outlives the engine; forgets events that nobody counts. iterators.c
 * sizes it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct totals_key);
	__type(value, struct totals_places);
} known SEC(".maps");

/* The verifier lets a pointer become a number only through memory. */
#define ADDRESS_OF(map)                                                   \
	({                                                                \
		void *pointer = &(map);                                   \
		__u64 number = 0;                                         \
		bpf_probe_read_kernel(&number, sizeof(number), &pointer); \
		number;                                                   \
	})

#define VALUES bpf_core_field_offset(struct bpf_array, pptrs) /* of an array of any kind */

static __always_inline void *read_pointer(__u64 at)
{
	void *pointer = NULL;

	bpf_probe_read_kernel(&pointer, sizeof(pointer), (void *)at);
	return pointer;
}

static __always_inline __u32 id_of(__u64 map)
{
	__u32 id = 0;

	bpf_core_read(&id, sizeof(id), &((struct bpf_array *)map)->map.id);
	return id;
}

static __always_inline struct place place_of(__u64 map)
{
	__u32 n = 0;

	bpf_core_read(&n, sizeof(n), &((struct bpf_array *)map)->map.max_entries);
	return (struct place){ .map = map, .id = id_of(map), .n = n };
}

static __always_inline __u64 per_cpu_element(void)
{
	return (__u64)read_pointer(ADDRESS_OF(per_cpu) + VALUES);
}

/* Each update takes a free element, and its CPU keeps the replaced one for itself. A reader that
 * reads `stat` again and again would use up the elements of all CPUs. */
static __always_inline bool are_known(const struct totals_key *key,
				      const struct totals_places *places)
{
	const __u64 *old = bpf_map_lookup_elem(&known, key), *new = (const void *)places;

	for (unsigned int i = 0; old && i < sizeof(*places) / sizeof(*new); i++)
		if (old[i] != new[i])
			return false;
	return old;
}

/* Works without such a map, too: then the template's own is there, which is empty. */
static __always_inline void be_known(void)
{
	struct totals_key key = { .id = constants.id, .set = constants.set };
	struct totals_places places = {};

	places.rings = place_of(ADDRESS_OF(rings));
	places.ringless = place_of(ADDRESS_OF(ringless));
	places.earlier = place_of(ADDRESS_OF(earlier));
	places.distances = place_of(ADDRESS_OF(distances));
	places.meta = place_of(ADDRESS_OF(meta));
	places.element = per_cpu_element();
	places.constants = constants;
	if (!are_known(&key, &places))
		bpf_map_update_elem(&known, &key, &places, BPF_ANY);
}

/* The progress of the loops below. */
struct totals_walk {
	struct totals_places places;
	struct counts sum;
	__u64 element; /* of our own per_cpu */
	__u64 per_cpu; /* of the CPU: the base of this event's distances */
};

static __always_inline bool sum_ring(struct totals_walk *w, __u32 cpu)
{
	struct pp_ring_live live = {};
	struct pp_ring_limit limit = {};
	void *ring = read_pointer(w->places.rings.map + VALUES + cpu * sizeof(void *));

	if (!ring)
		return false;
	ring += VALUES;
	bpf_probe_read_kernel(&live, sizeof(live), ring + PP_RING_LIVE_OFFSET);
	bpf_probe_read_kernel(&limit, sizeof(limit), ring + PP_RING_LIMIT_OFFSET);
	w->sum.records += live.records;
	w->sum.bytes -= live.head;
	w->sum.limited += limit.limited;
	w->sum.missed += live.missed;
	return true;
}

static __always_inline void sum_earlier(struct totals_walk *w, __u32 cpu)
{
	struct tree_counts earlier = {};

	if (cpu < w->places.earlier.n)
		bpf_probe_read_kernel(
			&earlier, sizeof(earlier),
			(void *)(w->places.earlier.map + VALUES + cpu * sizeof(earlier)));
	w->sum.records += earlier.records;
	w->sum.bytes += earlier.bytes;
	w->sum.limited += earlier.limited;
	w->sum.missed += earlier.missed;
}

static __always_inline void sum_ringless(struct totals_walk *w, __u32 cpu)
{
	__u64 ringless = 0;

	if (cpu < w->places.ringless.n)
		bpf_probe_read_kernel(
			&ringless, sizeof(ringless),
			(void *)(w->places.ringless.map + VALUES + cpu * sizeof(ringless)));
	w->sum.missed += ringless;
}

static long sum_program(__u32 i, struct totals_walk *w)
{
	__u64 distance = 0, misses = 0;

	bpf_probe_read_kernel(&distance, sizeof(distance),
			      (void *)(w->places.distances.map + VALUES + i * sizeof(distance)));
	bpf_probe_read_kernel(&misses, sizeof(misses), (void *)(w->per_cpu + distance));
	w->sum.missed += misses;
	return 0;
}

static long sum_cpu(__u32 cpu, struct totals_walk *w)
{
	void *mine;
	__u32 zero = 0;

	sum_ringless(w, cpu);
	if (!sum_ring(w, cpu))
		return 0;
	sum_earlier(w, cpu);
	if (!w->places.constants.n_programs)
		return 0;
	mine = bpf_map_lookup_percpu_elem(&per_cpu, &zero, cpu);
	bpf_probe_read_kernel(&w->per_cpu, sizeof(w->per_cpu), &mine);
	w->per_cpu += w->places.element - w->element;
	bpf_loop(w->places.constants.n_programs, sum_program, w, 0);
	return 0;
}

/* Maps may disappear with their event, or its change, while they are read: then the result is
 * void. */
static __always_inline bool are_there(const struct totals_places *places)
{
	return id_of(places->rings.map) == places->rings.id &&
	       id_of(places->ringless.map) == places->ringless.id &&
	       id_of(places->earlier.map) == places->earlier.id &&
	       id_of(places->distances.map) == places->distances.id &&
	       id_of(places->meta.map) == places->meta.id;
}

/* The event is being deleted: the programs whose misses it counts may be gone. */
static __always_inline bool is_on_its_way_out(const struct totals_places *places)
{
	__u32 deleted = 1;

	bpf_probe_read_kernel(
		&deleted, sizeof(deleted),
		(void *)(places->meta.map + VALUES + offsetof(struct pp_meta_head, deleted)));
	return deleted;
}

/* Copies the element, which another event may take over at any moment, from its beginning to its
 * end. */
static __always_inline bool take_places(const struct totals_places *of,
					const struct totals_key *key, struct totals_places *ret)
{
	const volatile struct totals_places *again = of;

	*ret = *of;
	barrier();
	return ret->constants.id == key->id && ret->constants.set == key->set &&
	       again->rings.map == ret->rings.map && again->constants.id == key->id &&
	       again->constants.set == key->set;
}

SEC("syscall")
int totals(struct pp_totals *ctx)
{
	struct totals_key key = { .id = ctx->id, .set = ctx->set };
	const struct totals_places *places = bpf_map_lookup_elem(&known, &key);
	struct totals_walk walk = {};

	ctx->known = 0;
	if (!places || !take_places(places, &key, &walk.places))
		return 0;
	walk.element = per_cpu_element();
	if (are_there(&walk.places))
		bpf_loop(possible_cpus, sum_cpu, &walk, 0);
	if (!are_there(&walk.places) || is_on_its_way_out(&walk.places)) {
		bpf_map_delete_elem(&known, &key);
		return 0;
	}
	ctx->records = walk.sum.records;
	ctx->bytes = walk.sum.bytes;
	ctx->limited = walk.sum.limited;
	ctx->missed = walk.sum.missed;
	ctx->missed_unknown = walk.places.constants.missed_unknown;
	ctx->missed_at_least = walk.places.constants.missed_at_least;
	ctx->known = 1;
	return 0;
}
