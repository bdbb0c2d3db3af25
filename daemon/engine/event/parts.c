// SPDX-License-Identifier: LGPL-2.1-or-later
/* The parts of an event. See parts.h. */
#include "daemon/engine/event/parts.h"

#include <bpf/bpf.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/cpus.h"
#include "daemon/engine/event/catalog-make.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/recorders/fire.h"
#include "daemon/engine/registry/meta.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/registry/tree.h"
#include "daemon/engine/registry/wakeups.h"
#include "daemon/engine/sources/links.h"
#include "proto/macro.h"

/* What else has the perf events of tasks is not ours to say, nor how long it takes to release them. */
static void drop_draft(struct parts *p)
{
	if (p->binding.n && p->draft.path[0]) {
		pins_discard(&p->draft);
		reaper_kick();
	}
	pins_abandon(&p->draft);
}

void parts_done(struct parts *p)
{
	drop_draft(p);
	user_program_done(&p->user);
	programs_done(&p->programs);
	sources_done(&p->sources);
	rings_done(&p->rings);
	free(p->parsed);
	close_fd(p->catalog);
	close_fd(p->ringless);
	close_fd(p->earlier);
	close_fd(p->trigger);
	close_fd(p->targets);
	close_fd(p->pairs);
	close_fd(p->pending);
	fire_done(&p->fire);
	close_fd(p->meta);
	close_fd(p->wakeups);
	close_fd(p->sending);
	*p = (struct parts)PARTS_NONE;
}

/* ── making ─────────────────────────────────────────────────────────────────────────────── */

/* The only source's tracepoint, whose format is in the rings' headers; else NULL. */
static const struct tracepoint *only_tracepoint(const struct parts *p)
{
	return p->sources.n == 1 ? p->sources.v[0].tp : NULL;
}

uint64_t parts_memory(const struct parts *p)
{
	return rings_memory(&p->event) + rings_pages(p->event.catalog_size) + p->user_memory;
}

int parts_plan(struct parts *p, struct failure *f)
{
	const struct tracepoint *tp = only_tracepoint(p);
	const struct source *first = &p->sources.v[0];
	struct pp_event *e = &p->event;
	uint32_t spill = sources_spill_size(&p->sources);

	if (spill > e->spec.data_size)
		return fail(f, EINVAL,
			    "A record of '%s' may take %u bytes, more than a buffer of %llu holds; "
			    "give at least -m %lluK.",
			    e->spec.event, spill, (unsigned long long)e->spec.data_size,
			    1ULL << (64 - __builtin_clzll((spill - 1) / 1024)));
	e->recorder = first->recorder->kind;
	e->missed_unknown = sources_missed(&p->sources);
	e->sample_type = p->sources.n > 1 ? PERF_SAMPLE_IDENTIFIER : first->sample_type;
	e->spill_size = spill;
	e->header_size = rings_header_size(tp ? tp->format_size : 0);
	e->n_sources = p->sources.n;
	e->weight = sources_weight(&p->sources);
	e->memory = parts_memory(p);
	return 0;
}

static int no_maps(int r, struct failure *f)
{
	return fail(f, -r,
		    "This kernel does not let BPF maps be created (%s); perfpersist needs "
		    "CONFIG_BPF_SYSCALL=y and the right to use it.",
		    strerror(-r));
}

static int no_rings(const struct pp_spec *spec, int r, struct failure *f)
{
	if (r == -ENOSYS || r == -EPERM)
		return no_maps(r, f);
	if (r == -ENOMEM || r == -E2BIG)
		return fail(f, ENOMEM,
			    "The kernel has no memory for rings of %llu bytes per CPU (%s); give a "
			    "smaller -m.",
			    (unsigned long long)spec->data_size, strerror(-r));
	return fail(f, -r, "Cannot make the rings of '%s/%s': %s.", spec->ns, spec->name,
		    strerror(-r));
}

/* A count for each possible CPU: too few bytes to be charged. */
static int make_ringless(int *ret)
{
	int possible = pp_cpus_possible(), fd;

	if (possible < 0)
		return possible;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_ringless", 4, 8, possible, NULL);
	if (fd < 0)
		return fd;
	*ret = fd;
	return 0;
}

int parts_make_rings(struct parts *p, struct failure *f)
{
	const struct pp_event *e = &p->event;
	int r = rings_create(e, &p->sources.v[0].attr, only_tracepoint(p), &p->rings);

	/* New rings go on with the old ones' count of events that found no ring. */
	if (r >= 0 && e->spec.flags & PP_EVENT_ALL_CPUS && p->ringless < 0)
		r = make_ringless(&p->ringless);
	return r < 0 ? no_rings(&e->spec, r, f) : 0;
}

int parts_add_rings(struct parts *p, const struct pp_cpumask *cpus, struct failure *f)
{
	int r = rings_add(&p->event, cpus, &p->sources.v[0].attr, only_tracepoint(p), &p->rings);

	return r < 0 ? no_rings(&p->event.spec, r, f) : 0;
}

int parts_make_catalog(struct parts *p, struct failure *f)
{
	int r;

	if (p->sources.n == 1)
		return 0;
	r = catalog_create(&p->sources, p->event.origin, &p->catalog, &p->event.catalog_size);
	if (r < 0)
		return fail(f, -r,
			    "Cannot make the catalog of the %zu events of '%s/%s' (%s); name "
			    "fewer.",
			    p->sources.n, p->event.spec.ns, p->event.spec.name, strerror(-r));
	p->event.memory = parts_memory(p);
	return 0;
}

static int pin(struct parts *p, int fd, const char *leaf, uid_t owner, gid_t group, mode_t mode,
	       struct failure *f)
{
	int r = pins_add(&p->draft, fd, leaf, owner, group, mode);

	if (r < 0)
		return fail(f, -r, "Cannot pin %s of '%s/%s' in the registry: %s.", leaf,
			    p->event.spec.ns, p->event.spec.name, strerror(-r));
	return 0;
}

int parts_pin_rings(struct parts *p, struct failure *f)
{
	char leaf[32];
	int r = pin(p, p->rings.outer, "rings", 0, 0, 0600, f);

	for (unsigned i = 0; r >= 0 && i < p->rings.n; i++) {
		snprintf(leaf, sizeof(leaf), "cpu%u", p->rings.cpu[i]);
		r = pin(p, p->rings.fd[i], leaf, p->broker, 0, 0600, f);
	}
	if (r >= 0 && p->catalog >= 0)
		r = pin(p, p->catalog, "catalog", p->broker, 0, 0600, f);
	if (r >= 0 && p->ringless >= 0)
		r = pin(p, p->ringless, "ringless", 0, 0, 0600, f);
	if (r >= 0 && p->earlier >= 0)
		r = pin(p, p->earlier, "earlier", 0, 0, 0600, f);
	/* The broker reads the counts; the engine opens it again as a member of root's group. */
	if (r >= 0 && p->trigger >= 0)
		r = pin(p, p->trigger, "trigger", p->broker, 0, 0460, f);
	if (r >= 0 && p->targets >= 0)
		r = pin(p, p->targets, "targets", 0, 0, 0600, f);
	if (r >= 0 && p->pending >= 0)
		r = pin(p, p->pending, "pending", 0, 0, 0600, f);
	/* The broker maps it to look for pairs whose end is missing. What it could write there would
	 * fire the trigger or not, as its orders do. */
	if (r >= 0 && p->pairs >= 0)
		r = pin(p, p->pairs, "pairs", p->broker, 0, 0660, f);
	return r;
}

/* *ret is for free(3). */
static int list_maps(const struct parts *p, struct meta_map **ret, size_t *ret_n)
{
	_cleanup_free_ struct meta_map *maps = calloc(p->rings.n + 1, sizeof(*maps));
	size_t n = p->rings.n;
	int r = maps ? rings_maps(&p->rings, &p->event, maps) : -ENOMEM;

	if (r >= 0 && p->catalog >= 0)
		r = meta_map_describe(p->catalog, UINT32_MAX, rings_pages(p->event.catalog_size), 0,
				      &maps[n++]);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(maps);
	*ret_n = n;
	return 0;
}

static int make_meta(struct parts *p, bool pending, struct failure *f)
{
	_cleanup_free_ struct meta_map *maps = NULL;
	size_t n;
	int r = list_maps(p, &maps, &n);

	if (r >= 0)
		r = meta_create(&p->event, p->parsed, maps, n, &p->binding.target, pending,
				&p->meta);
	if (r < 0)
		return fail(f, -r, "Cannot write down what '%s/%s' is: %s.", p->event.spec.ns,
			    p->event.spec.name, strerror(-r));
	return pin(p, p->meta, "meta", 0, 0, 0600, f);
}

static int make_tree(struct parts *p, struct tree_files *ret)
{
	_cleanup_free_ uint32_t *programs = NULL;
	size_t n = 0;
	int r = 0;

	if (p->event.missed_unknown != PP_MISSED_UNKNOWN)
		r = links_counted(&p->sources, p->draft.path, &programs, &n);
	return r < 0 ? r
		     : tree_create(&p->event, p->broker, p->meta, p->rings.outer, p->ringless,
				   p->earlier, programs, n, ret);
}

int parts_make_files(struct parts *p, bool pending, struct failure *f)
{
	_cleanup_(tree_files_done) struct tree_files files = { -EBADF, -EBADF };
	const struct pp_spec *spec = &p->event.spec;
	mode_t mode = 0400 | (spec->mode & 040) | (spec->mode & 04);
	int r;

	r = make_meta(p, pending, f);
	if (r < 0)
		return r;
	r = make_tree(p, &files);
	if (r < 0)
		return fail(f, -r, "Cannot make the registry's files of '%s/%s': %s.", spec->ns,
			    spec->name, strerror(-r));
	r = pin(p, files.info, "info", p->broker, spec->group, mode, f);
	return r < 0 ? r : pin(p, files.stat, "stat", p->broker, spec->group, mode, f);
}

int parts_write_down(struct parts *p, bool pending, struct failure *f)
{
	_cleanup_free_ struct meta_map *maps = NULL;
	size_t n;
	int r = list_maps(p, &maps, &n);

	if (r >= 0)
		r = meta_update_maps(p->meta, &p->event, maps, n, pending);
	return r < 0 ? fail(f, -r, "Cannot write down the rings of '%s/%s': %s.", p->event.spec.ns,
			    p->event.spec.name, strerror(-r))
		     : 0;
}

/* ── opening ────────────────────────────────────────────────────────────────────────────── */

static int open_catalog(const struct meta_map *maps, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (maps[i].cpu == UINT32_MAX)
			return meta_map_open(&maps[i]);
	return -EBADF;
}

static int open_trigger(const char *path, struct parts *p)
{
	p->trigger = pins_get(path, "trigger");
	p->targets = pins_get(path, "targets");
	p->pairs = pins_get(path, "pairs");
	p->pending = pins_get(path, "pending");
	if (p->trigger < 0 || p->targets < 0)
		return MIN(p->trigger, p->targets);
	if (p->pairs < 0 && p->pairs != -ENOENT) /* that: it has none */
		return p->pairs;
	/* that: the program of an earlier version does all of it, behind the record */
	return p->pending == -ENOENT ? 0 : MIN(p->pending, 0);
}

static int open_all(const char *path, struct parts *p, bool *ret_pending)
{
	_cleanup_free_ struct meta_map *maps = NULL;
	size_t n = 0;
	int r;

	p->meta = pins_get(path, "meta");
	if (p->meta < 0)
		return p->meta;
	r = meta_read_all(p->meta, &p->event, &p->parsed, &maps, &n, ret_pending);
	if (r < 0)
		return r;
	snprintf(p->name, sizeof(p->name), "%s/%s", p->event.spec.ns, p->event.spec.name);
	r = meta_read_target(p->meta, &p->binding.target);
	if (r < 0)
		return r;
	if (p->event.spec.flags & (PP_EVENT_PROGRAM | PP_EVENT_ADOPTED | PP_EVENT_BOUND))
		p->user_memory = p->event.memory - MIN(p->event.memory, parts_memory(p));
	r = pins_get(path, "rings");
	if (r >= 0)
		r = rings_open(r, maps, n, &p->rings);
	if (r >= 0 && p->event.spec.flags & PP_EVENT_ALL_CPUS)
		r = p->ringless = pins_get(path, "ringless");
	if (r >= 0)
		p->earlier = pins_get(path, "earlier");
	if (r >= 0 && p->earlier < 0 && p->earlier != -ENOENT) /* that: there are none */
		r = p->earlier;
	if (r >= 0 && p->event.spec.flags & PP_EVENT_TRIGGER)
		r = open_trigger(path, p);
	if (r < 0 || p->event.n_sources == 1)
		return r;
	p->catalog = open_catalog(maps, n);
	return p->catalog;
}

int parts_open(const char *path, uid_t broker, struct parts *ret, bool *ret_pending,
	       struct failure *f)
{
	_cleanup_(parts_done) struct parts p = PARTS_NONE;
	int r;

	p.broker = broker;
	r = open_all(path, &p, ret_pending);
	if (r < 0)
		return fail(f, -r, "Cannot open the pins of '%s': %s.", path, strerror(-r));
	*ret = p;
	p = (struct parts)PARTS_NONE;
	return 0;
}

static int restore_several(struct parts *p, struct failure *f)
{
	_cleanup_free_ struct source_record *records = NULL;
	_cleanup_free_ void *catalog = NULL;
	size_t n = p->event.n_sources;
	int r;

	r = catalog_read(p->catalog, p->event.catalog_size, &catalog);
	if (r < 0)
		return fail(f, -r, "Cannot read the catalog of '%s/%s': %s.", p->event.spec.ns,
			    p->event.spec.name, strerror(-r));
	records = calloc(n, sizeof(*records));
	if (!records)
		return fail(f, ENOMEM, "No memory for the %zu events of '%s/%s'.", n,
			    p->event.spec.ns, p->event.spec.name);
	if (((struct pp_catalog_header *)catalog)->n_sources != n)
		return fail(f, EBADMSG, "The catalog of '%s/%s' is damaged; delete the event.",
			    p->event.spec.ns, p->event.spec.name);
	catalog_records(catalog, records, n);
	return sources_restore(&p->event.spec, p->parsed, records, n, p->event.origin, &p->sources,
			       f);
}

/* The format is in each ring's header. */
static int restore_one(struct parts *p, struct failure *f)
{
	size_t size = p->event.header_size;
	struct pp_ring_header *h = mmap(NULL, size, PROT_READ, MAP_SHARED, p->rings.fd[0], 0);
	struct source_record record = { .recorder = p->event.recorder };
	int r;

	if (h == MAP_FAILED)
		return fail(f, errno, "Cannot map a ring of '%s/%s': %s.", p->event.spec.ns,
			    p->event.spec.name, strerror(errno));
	record.format = (const char *)h + PP_RING_FORMAT_OFFSET;
	record.format_size = MIN(h->format_size, size - PP_RING_FORMAT_OFFSET);
	r = sources_restore(&p->event.spec, p->parsed, &record, 1, p->event.origin, &p->sources, f);
	munmap(h, size);
	return r;
}

int parts_restore(struct parts *p, const char *path, struct failure *f)
{
	int r = p->event.n_sources > 1 ? restore_several(p, f) : restore_one(p, f);

	if (r < 0)
		return r;
	parts_bind(p);
	links_recognize(&p->sources, path);
	return programs_open(&p->sources, path, &p->programs, f);
}

int parts_drop_former(const char *path)
{
	int r = programs_stop_former(path);

	return r < 0 ? r : links_drop_former(path);
}

void parts_bind(struct parts *p)
{
	p->sources.binding = p->event.spec.flags & PP_EVENT_BOUND ? &p->binding : NULL;
}

/* ── either ─────────────────────────────────────────────────────────────────────────────── */

static int read_condition(struct parts *p, struct failure *f)
{
	struct pp_trigger trigger;
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(p->trigger, &zero, &trigger) < 0)
		return fail(f, errno, "Cannot read when the trigger '%s/%s' fires: %s.",
			    p->event.spec.ns, p->event.spec.name, strerror(errno));
	p->condition = (struct recorder_condition){
		.is = trigger.spec.condition,
		.trigger_fd = p->trigger,
		.pairs_fd = p->pairs,
	};
	return 0;
}

static int read_trigger(struct parts *p, struct failure *f)
{
	const struct fire fire = {
		.state_fd = p->trigger,
		.targets_fd = p->targets,
		.pending_fd = p->pending,
	};
	int r;

	if (p->trigger < 0)
		return 0;
	r = read_condition(p, f);
	if (r < 0 || p->pending < 0 || p->fire.n)
		return r;
	r = fire_make(&fire, &p->fire);
	return r < 0 ? fail(f, -r, "Cannot make the function that fires the trigger '%s/%s': %s.",
			    p->event.spec.ns, p->event.spec.name, strerror(-r))
		     : 0;
}

int parts_target(struct parts *p, struct recorder_target *ret, struct failure *f)
{
	const struct pp_event *e = &p->event;
	int r;

	if (e->spec.flags & PP_EVENT_WAKEUP && p->wakeups < 0) {
		p->wakeups = wakeups_fd(p->broker);
		r = p->wakeups < 0 ? p->wakeups : (p->sending = sending_fd());
		if (r < 0) {
			p->wakeups = close_fd(p->wakeups);
			return fail(f, -r, "Cannot make the buffer of wakeups: %s.", strerror(-r));
		}
	}
	r = read_trigger(p, f);
	if (r < 0)
		return r;
	*ret = (struct recorder_target){
		.fd = p->rings.outer,
		.ringless_fd = p->ringless,
		.header_size = e->header_size,
		.data_size = pp_spec_ring_data(&e->spec),
		.spill_size = e->spill_size,
		.nests = sources_nest(&p->sources),
		.cpu = p->rings.cpu,
		.ring_fd = p->rings.fd,
		.n = p->rings.n,
		.max_rate = e->spec.max_rate,
		.wakeup_fd = p->wakeups,
		.sending_fd = p->sending,
		.event_id = e->origin,
		.condition = p->condition.is.kind ? &p->condition : NULL,
		.fire = p->fire.n ? &p->fire : NULL,
	};
	return 0;
}
