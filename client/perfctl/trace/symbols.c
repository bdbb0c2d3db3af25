// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of functions for addresses: finds the map, its file once, and the function in the file, and
 * caches the result. */
#include "client/perfctl/trace/symbols.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/stat.h>

#include "client/perfctl/trace/demangle.h"
#include "client/perfctl/trace/process-table.h"
#include "client/perfctl/trace/symbols-file.h"
#include "proto/macro.h"
#include "proto/regular.h"

/* Cached addresses: in a program, some thousand are hit again and again. */
#define CACHE_SIZE 16384

/* For all strangers' files together. A large C++ program has 30 MiB. */
#define STRANGE_TABLES (256U << 20)
#define STRANGE_COPIES (4ULL << 30)

static const char unknown[] = "[unknown]";

struct cached {
	const struct symbols_file *file; /* NULL: an empty slot */
	uint64_t address;		 /* in the file */
	struct symtab_entry *entry;	 /* NULL: no function there */
};

struct symbols {
	char *release;
	struct symbols_kernel kernel;
	size_t dsos_seen;	     /* that are not the kernel's, which has a build id */
	struct symbols_file **files; /* by the dsos' indices; NULL: not loaded yet */
	size_t n_files;
	struct keytable by_file; /* the first dso of each file, by a hash */
	struct strangers strangers;
	struct demangler demangler;
	bool keep_mangled;
	struct cached cache[CACHE_SIZE];
};

int symbols_new(const struct trace_info *info, struct symbols **ret)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->release = strdup(info->release ?: "");
	if (!s->release) {
		free(s);
		return -ENOMEM;
	}
	s->kernel.id.release = s->release;
	s->strangers = (struct strangers){ STRANGE_TABLES, STRANGE_COPIES, false };
	demangler_init(&s->demangler);
	*ret = s;
	return 0;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	/* A file that several dsos share is freed with the one whose index it has, at the end. */
	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i] && s->files[i]->index != i)
			s->files[i] = NULL;
	for (size_t i = 0; i < s->n_files; i++)
		if (s->files[i]) {
			symbols_file_done(s->files[i]);
			free(s->files[i]);
		}
	free(s->files);
	keytable_done(&s->by_file);
	kernel_symbols_done(&s->kernel.symbols);
	demangler_done(&s->demangler);
	free(s->release);
	free(s);
}

void symbols_keep_mangled(struct symbols *s)
{
	s->keep_mangled = true;
}

bool symbols_refused(const struct symbols *s)
{
	return s && s->strangers.refused;
}

/* The kernel's build id is that of its dso, whichever that is. */
static void learn_kernel(struct symbols *s, struct processes *p)
{
	if (s->kernel.tried || s->kernel.id.build_id)
		return;
	/* A hostile file has any number of them. One that has no build id gets none later. */
	for (; s->dsos_seen < processes_dsos(p); s->dsos_seen++) {
		const struct dso *dso = processes_dso(p, s->dsos_seen);

		if (dso->build_id_size && !strncmp(dso->path, "[kernel.", strlen("[kernel."))) {
			s->kernel.id.build_id = dso->build_id;
			s->kernel.id.build_id_size = dso->build_id_size;
			return;
		}
	}
}

static struct symbols_file **place_of(struct symbols *s, uint32_t index)
{
	if (index >= s->n_files) {
		size_t n = MAX(64, (size_t)index * 2);
		struct symbols_file **files =
			reallocarray(s->files, n, sizeof(struct symbols_file *));

		if (!files)
			return NULL;
		memset(files + s->n_files, 0, (n - s->n_files) * sizeof(*files));
		s->files = files;
		s->n_files = n;
	}
	return &s->files[index];
}

/* A file has many paths, by links and by "/./", and a trace can name it by each. Its functions are
 * loaded once. 0: not a file, and not shared. */
static uint64_t file_key(const struct dso *dso, struct stat *ret)
{
	uint64_t key;

	if (dso->kernel || dso->path[0] != '/' ||
	    regular_stat(AT_FDCWD, dso->path, RESOLVE_NO_MAGICLINKS, ret) < 0)
		return 0;
	key = keytable_mix(ret->st_ino ^ keytable_mix(ret->st_dev));
	for (size_t i = 0; i < dso->build_id_size; i++)
		key = keytable_mix(key ^ dso->build_id[i]);
	return key ^ (!dso->build_id_size && dso->inode);
}

/* A file loaded for another dso that would be the same for this one; or NULL. */
static struct symbols_file *find_loaded(struct symbols *s, struct processes *p,
					const struct dso *dso, uint64_t key, const struct stat *st)
{
	int64_t i = key ? keytable_get(&s->by_file, key) : -1;
	const struct dso *other = i < 0 ? NULL : processes_dso(p, (size_t)i);
	struct symbols_file *f = i < 0 ? NULL : s->files[i];

	if (!f || f->kind != SYMBOLS_ELF || f->device != st->st_dev || f->inode != st->st_ino ||
	    other->build_id_size != dso->build_id_size || other->device != dso->device ||
	    other->inode != dso->inode ||
	    memcmp(other->build_id, dso->build_id, dso->build_id_size))
		return NULL;
	return f;
}

/* NULL: out of memory, and therefore no name. */
static const struct symbols_file *file_of(struct symbols *s, struct processes *p,
					  const struct map *map)
{
	struct symbols_file **place = place_of(s, map->dso->index);
	struct stat st = {};
	uint64_t key;

	if (!place || *place)
		return place ? *place : NULL;
	key = file_key(map->dso, &st);
	*place = find_loaded(s, p, map->dso, key, &st);
	if (*place)
		return *place;
	*place = calloc(1, sizeof(**place));
	if (!*place)
		return NULL;
	learn_kernel(s, p);
	symbols_file_load(map, &s->kernel, &s->strangers, *place);
	(*place)->index = map->dso->index;
	(*place)->device = st.st_dev;
	(*place)->inode = st.st_ino;
	/* If it cannot be stored, it is read again. */
	if (key && (*place)->kind == SYMBOLS_ELF)
		keytable_set(&s->by_file, key, map->dso->index);
	return *place;
}

static struct symtab_entry *look_up(struct symbols *s, const struct symbols_file *f,
				    uint64_t address)
{
	uint64_t hash = (address ^ (uintptr_t)f >> 4) * 0x9e3779b97f4a7c15ULL;
	struct cached *c = &s->cache[hash >> 32 & (CACHE_SIZE - 1)];

	if (c->file != f || c->address != address)
		*c = (struct cached){ f, address, symtab_find(f->table, address) };
	return c->entry;
}

static const char *shown(struct symbols *s, const struct symtab *table, struct symtab_entry *e)
{
	const char *name = symtab_name(table, e);

	if (!e->tried && !s->keep_mangled)
		e->shown = demangle(&s->demangler, name);
	e->tried = true;
	return e->shown ?: name;
}

/* The function at an address, or, for a return address, before it: at the call. The unwinder gives
 * other addresses as well: with no function before it, it was not a return address. */
static struct symtab_entry *look_around(struct symbols *s, const struct symbols_file *f,
					uint64_t address, bool is_return)
{
	struct symtab_entry *e = is_return && address ? look_up(s, f, address - 1) : NULL;

	/* Padding with a name precedes the kernel's functions; nothing runs there. */
	if (e && !strncmp(symtab_name(f->table, e), "__pfx_", strlen("__pfx_")))
		e = NULL;
	return e ?: look_up(s, f, address);
}

static void find(struct symbols *s, struct processes *p, uint32_t pid, uint64_t address,
		 bool kernel, bool is_return, struct symbol *ret)
{
	const struct map *map = processes_find(p, pid, address, kernel);
	const struct symbols_file *f;
	struct symtab_entry *e;
	uint64_t at;

	*ret = (struct symbol){ .name = unknown, .place = address, .start = address };
	if (!map)
		return;
	ret->dso = map->dso;
	f = file_of(s, p, map);
	if (!f)
		return;
	if (!kernel && !f->memory)
		ret->place = ret->start = map->offset + (address - map->start);
	if (f->kind == SYMBOLS_ALONE) {
		ret->name = map->dso->name;
		ret->start = map->start;
		ret->offset = address - map->start;
		return;
	}
	if (!symbols_file_address(f, map, address, &at))
		return;
	e = look_around(s, f, at, is_return);
	if (!e)
		return;
	ret->name = shown(s, f->table, e);
	ret->start = e->start;
	ret->offset = at - e->start;
}

void symbols_find(struct symbols *s, struct processes *p, uint32_t pid, uint64_t address,
		  bool kernel, struct symbol *ret)
{
	find(s, p, pid, address, kernel, false, ret);
}

/* ── Call chains ── */

enum space { USER, KERNEL, OTHER };

/* For a sample without marks, or before the first mark. */
static enum space space_of(uint32_t misc)
{
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
		return KERNEL;
	case PERF_RECORD_MISC_USER:
		return USER;
	}
	return OTHER;
}

static enum space space_from(uint64_t mark)
{
	switch (mark) {
	case (uint64_t)PERF_CONTEXT_KERNEL:
		return KERNEL;
	case (uint64_t)PERF_CONTEXT_USER:
		return USER;
	}
	return OTHER;
}

static void fill(struct symbols *s, struct processes *p, uint32_t pid, uint64_t address,
		 enum space space, bool is_return, struct symbols_frame *ret)
{
	*ret = (struct symbols_frame){ .address = address, .kernel = space == KERNEL };
	if (space == OTHER)
		ret->symbol =
			(struct symbol){ .name = unknown, .place = address, .start = address };
	else
		find(s, p, pid, address, space == KERNEL, is_return, &ret->symbol);
}

size_t symbols_chain(struct symbols *s, struct processes *p, const struct trace_record *r,
		     struct symbols_frame *frames, size_t max)
{
	const struct perfpersist_sample *sample = &r->sample;
	enum space space = space_of(r->misc);
	bool is_return = false; /* the first of each space is the interrupted instruction */
	size_t n = 0;

	for (size_t i = 0; i < sample->n_callchain && n < max; i++) {
		uint64_t ip;

		memcpy(&ip, (const char *)sample->callchain + i * sizeof(ip), sizeof(ip));
		if (ip >= (uint64_t)PERF_CONTEXT_MAX) {
			space = space_from(ip);
			is_return = false;
			continue;
		}
		fill(s, p, r->pid, ip, space, is_return, &frames[n++]);
		is_return = true;
	}
	if (!n && max && r->event && r->event->sample_type & PERF_SAMPLE_IP)
		fill(s, p, r->pid, sample->ip, space_of(r->misc), false, &frames[n++]);
	return n;
}
