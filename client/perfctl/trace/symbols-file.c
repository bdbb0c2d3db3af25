// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the file with the functions of one dso, and checks that it is still the same file. */
#include "client/perfctl/trace/symbols-file.h"

#include <limits.h>
#include <string.h>
#include <sys/auxv.h>

#include "proto/macro.h"

/* ── Programs and libraries ── */

/* perf caches the files that it saw, by build id; they outlive the originals. */
static int load_cached(const struct dso *dso, struct strangers *strangers, struct elf_symbols *ret)
{
	struct elf_identity which = { dso->build_id, dso->build_id_size, 0, 0, strangers };
	const char *home = getenv("HOME");
	char path[PATH_MAX];
	int n;

	if (!home || !dso->build_id_size)
		return -ENOENT;
	n = snprintf(path, sizeof(path) - 3 * BUILD_ID_SIZE_MAX, "%s/.debug/.build-id/", home);
	if (n < 0 || (size_t)n >= sizeof(path) - 3 * BUILD_ID_SIZE_MAX)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < dso->build_id_size && i < BUILD_ID_SIZE_MAX; i++)
		n += sprintf(path + n, i == 0 ? "%02x/" : "%02x", dso->build_id[i]);
	strcpy(path + n, "/elf");
	return elf_symbols_read(path, &which, ret);
}

static bool is_memory(const char *path)
{
	static const char *const begins[] = { "//",    "/dev/zero", "/anon_hugepage",
					      "/SYSV", "[heap]",    "[stack" };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(path, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static void load_elf(const struct dso *dso, struct strangers *strangers, struct symbols_file *ret)
{
	struct elf_identity which = { dso->build_id, dso->build_id_size, dso->device, dso->inode,
				      strangers };

	ret->memory = is_memory(dso->path);
	if (ret->memory || dso->path[0] != '/')
		return;
	if (elf_symbols_read(dso->path, &which, &ret->elf) < 0 &&
	    load_cached(dso, strangers, &ret->elf) < 0)
		return;
	ret->kind = SYMBOLS_ELF;
}

/* The kernel maps the same vdso into each process: ours will do, if it is the same kernel. */
static void load_vdso(const struct map *map, const struct kernel_id *kernel,
		      struct symbols_file *ret)
{
	const struct dso *dso = map->dso;
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR); /* NOLINT */

	/* Below 4 GiB it belongs to a 32-bit program. */
	if (!image || map->start < 1ULL << 32 || map->end - map->start > 1 << 20 ||
	    (!dso->build_id_size && !kernel_is_running(kernel)))
		return;
	if (elf_symbols_read_image(image, map->end - map->start, dso->build_id, dso->build_id_size,
				   &ret->elf) >= 0)
		ret->kind = SYMBOLS_ELF;
}

/* ── The kernel ── */

static bool kernel_there(struct symbols_kernel *k)
{
	if (!k->tried)
		k->there = kernel_symbols_read(&k->id, &k->symbols) >= 0;
	k->tried = true;
	return k->there;
}

static bool is_kernel_address(uint64_t address)
{
	return address >> 63;
}

/* Its map's offset is the address of _text when the trace was made: another one in another boot. */
static void load_core(const struct map *map, struct symbols_kernel *kernel,
		      struct symbols_file *ret)
{
	if (!kernel_there(kernel))
		return;
	ret->kind = SYMBOLS_KERNEL;
	ret->table = &kernel->symbols.core;
	if (kernel->symbols.text && is_kernel_address(map->offset))
		ret->slide = kernel->symbols.text - map->offset;
}

/* "[nf_nat]" and "/lib/modules/6.1.0/kernel/net/nf-nat.ko.xz" are "nf_nat". */
static bool module_name(const struct dso *dso, char *ret, size_t size)
{
	const char *slash = strrchr(dso->path, '/');
	const char *name = slash ? slash + 1 : dso->path;
	size_t len;

	name += name[0] == '[';
	len = strcspn(name, slash ? "." : "]");
	if (!len || len >= size)
		return false;
	for (size_t i = 0; i < len; i++)
		ret[i] = name[i] == '-' ? '_' : name[i];
	ret[len] = '\0';
	return true;
}

/* Modules keep their addresses only in this boot and while loaded: the functions must lie in the
 * map. */
static void load_module(const struct map *map, struct symbols_kernel *kernel,
			struct symbols_file *ret)
{
	struct symtab *table;
	char name[64];

	if (!module_name(map->dso, name, sizeof(name)) || !kernel_there(kernel))
		return;
	table = kernel_symbols_module(&kernel->symbols, name);
	if (!table || !table->n || table->entries[0].start < map->start ||
	    table->entries[0].start >= map->end)
		return;
	ret->kind = SYMBOLS_KERNEL;
	ret->table = table;
}

static void load_kernel(const struct map *map, struct symbols_kernel *kernel,
			struct symbols_file *ret)
{
	const char *path = map->dso->path;

	if (!strncmp(path, "[kernel.", strlen("[kernel.")))
		load_core(map, kernel, ret);
	else if (path[0] == '[' || path[0] == '/')
		load_module(map, kernel, ret);
	else
		ret->kind = SYMBOLS_ALONE;
}

/* ── Both ── */

void symbols_file_load(const struct map *map, struct symbols_kernel *kernel,
		       struct strangers *strangers, struct symbols_file *ret)
{
	*ret = (struct symbols_file){};
	if (map->dso->kernel)
		load_kernel(map, kernel, ret);
	else if (!strcmp(map->dso->path, "[vdso]"))
		load_vdso(map, &kernel->id, ret);
	else
		load_elf(map->dso, strangers, ret);
	if (ret->kind == SYMBOLS_ELF)
		ret->table = &ret->elf.table;
}

bool symbols_file_address(const struct symbols_file *f, const struct map *map, uint64_t address,
			  uint64_t *ret)
{
	switch (f->kind) {
	case SYMBOLS_ELF:
		return elf_symbols_address(&f->elf, map->offset + (address - map->start), ret);
	case SYMBOLS_KERNEL:
		*ret = address + f->slide;
		return true;
	default:
		return false;
	}
}

void symbols_file_done(struct symbols_file *f)
{
	elf_symbols_done(&f->elf);
	*f = (struct symbols_file){};
}
