// SPDX-License-Identifier: LGPL-2.1-or-later
/* The kernel's functions. If the trace is of the running kernel, /proc/kallsyms is certain to be
 * right; it shows addresses only to privileged users. */
#include "client/perfctl/trace/symbols-kernel.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/utsname.h>

#include "client/perfctl/trace/symbols-elf.h"
#include "proto/macro.h"

#define KERNEL_MODULES_MAX 4096

/* ── The kernel's identity ── */

/* The note with the build id, among all notes of the kernel. */
static size_t find_build_id(const uint8_t *notes, size_t size, uint8_t *ret, size_t max)
{
	Elf64_Nhdr n;

	for (size_t at = 0; size - at >= sizeof(n);) {
		size_t name, desc;

		memcpy(&n, notes + at, sizeof(n));
		at += sizeof(n);
		name = ALIGN_TO((size_t)n.n_namesz, 4);
		desc = ALIGN_TO((size_t)n.n_descsz, 4);
		if (name > size - at || desc > size - at - name)
			break;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == sizeof("GNU") &&
		    !memcmp(notes + at, "GNU", sizeof("GNU")) && n.n_descsz <= max) {
			memcpy(ret, notes + at + name, n.n_descsz);
			return n.n_descsz;
		}
		at += name + desc;
	}
	return 0;
}

static size_t running_build_id(uint8_t *ret, size_t max)
{
	_cleanup_close_ int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	uint8_t notes[4096];
	ssize_t n = fd >= 0 ? read(fd, notes, sizeof(notes)) : -1;

	return n > 0 ? find_build_id(notes, (size_t)n, ret, max) : 0;
}

bool kernel_is_running(const struct kernel_id *id)
{
	struct utsname u;
	uint8_t own[64];
	size_t n;

	if (!*id->release && !id->build_id_size)
		return false;
	if (*id->release && (uname(&u) < 0 || strcmp(u.release, id->release)))
		return false;
	if (!id->build_id_size)
		return true;
	n = running_build_id(own, sizeof(own));
	return n == id->build_id_size && !memcmp(own, id->build_id, n);
}

/* ── /proc/kallsyms and System.map ── */

static int module_of(struct kernel_symbols *k, const char *name, size_t len, struct symtab **ret)
{
	struct kernel_module *modules;
	char *copy;

	/* A module's symbols are adjacent. */
	for (size_t i = k->n_modules; i--;)
		if (!strncmp(k->modules[i].name, name, len) && !k->modules[i].name[len]) {
			*ret = &k->modules[i].table;
			return 0;
		}
	if (k->n_modules >= KERNEL_MODULES_MAX)
		return -E2BIG;
	modules = reallocarray(k->modules, k->n_modules + 1, sizeof(*modules));
	if (!modules)
		return -ENOMEM;
	k->modules = modules;
	copy = strndup(name, len);
	if (!copy)
		return -ENOMEM;
	modules[k->n_modules] = (struct kernel_module){ .name = copy };
	*ret = &modules[k->n_modules++].table;
	return 0;
}

static bool binding_of(char type, enum symtab_binding *ret)
{
	switch (type) {
	case 'T':
		*ret = SYMTAB_GLOBAL;
		return true;
	case 't':
		*ret = SYMTAB_LOCAL;
		return true;
	case 'W':
	case 'w':
		*ret = SYMTAB_WEAK;
		return true;
	}
	return false;
}

static int parse_line(struct kernel_symbols *k, char *line)
{
	enum symtab_binding binding;
	struct symtab *table = &k->core;
	char *end, *name, *module;
	uint64_t address = strtoull(line, &end, 16);

	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ')
		return 0;
	name = end + 3;
	if (!address || !binding_of(end[1], &binding))
		return 0;
	name[strcspn(name, "\n")] = '\0';
	module = strstr(name, "\t[");
	if (module) {
		int r = module_of(k, module + 2, strcspn(module + 2, "]"), &table);

		if (r < 0)
			return r;
		*module = '\0';
	}
	if (!*name)
		return 0;
	/* As in perf, the first of these gives the kernel's place. */
	if (!module && !strcmp(name, "_text"))
		k->text = address;
	if (!module && !strcmp(name, "_stext") && !k->text)
		k->text = address;
	return symtab_add(table, address, 0, binding, name);
}

int kernel_symbols_parse(FILE *f, struct kernel_symbols *ret)
{
	_cleanup_(kernel_symbols_done) struct kernel_symbols k = {};
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;

	while (getline(&line, &cap, f) > 0) {
		int r = parse_line(&k, line);

		if (r < 0)
			return r;
	}
	if (!k.core.n)
		return -ENOENT;
	symtab_finish(&k.core);
	for (size_t i = 0; i < k.n_modules; i++)
		symtab_finish(&k.modules[i].table);
	*ret = k;
	k = (struct kernel_symbols){};
	return 0;
}

static int read_text(const char *path, struct kernel_symbols *ret)
{
	_cleanup_(cleanup_fclose) FILE *f = fopen(path, "re");

	return f ? kernel_symbols_parse(f, ret) : -errno;
}

/* ── vmlinux ── */

static int read_vmlinux(const char *path, const struct kernel_id *id, struct kernel_symbols *ret)
{
	struct elf_identity which = { .build_id = id->build_id,
				      .build_id_size = id->build_id_size };
	struct elf_symbols elf = {};
	int r = elf_symbols_read(path, &which, &elf);

	if (r < 0)
		return r;
	if (!elf.text) {
		elf_symbols_done(&elf);
		return -ENOENT;
	}
	*ret = (struct kernel_symbols){ .core = elf.table, .text = elf.text };
	return 0;
}

static int read_vmlinux_of_release(const struct kernel_id *id, struct kernel_symbols *ret)
{
	static const struct {
		const char *before, *after;
	} places[] = {
		{ "/usr/lib/debug/boot/vmlinux-", "" },
		{ "/usr/lib/debug/lib/modules/", "/vmlinux" },
		{ "/lib/modules/", "/vmlinux" },
		{ "/lib/modules/", "/build/vmlinux" },
		{ "/boot/vmlinux-", "" },
	};

	/* It becomes part of a path. */
	if (!*id->release || strchr(id->release, '/'))
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char path[PATH_MAX];
		int n = snprintf(path, sizeof(path), "%s%s%s", places[i].before, id->release,
				 places[i].after);

		if (n > 0 && (size_t)n < sizeof(path) && read_vmlinux(path, id, ret) >= 0)
			return 0;
	}
	return -ENOENT;
}

static int read_vmlinux_of_build_id(const struct kernel_id *id, struct kernel_symbols *ret)
{
	if (!id->build_id_size)
		return -ENOENT;
	return read_vmlinux(debug_path(id->build_id, id->build_id_size).text, id, ret);
}

/* It has no build id of its own: only used for the running kernel, whose name it has. */
static int read_system_map(const struct kernel_id *id, struct kernel_symbols *ret)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "/boot/System.map-%s", id->release);

	if (!*id->release || strchr(id->release, '/') || n < 0 || (size_t)n >= sizeof(path))
		return -ENOENT;
	return read_text(path, ret);
}

int kernel_symbols_read(const struct kernel_id *id, struct kernel_symbols *ret)
{
	bool running = kernel_is_running(id);

	if (running && read_text("/proc/kallsyms", ret) >= 0)
		return 0;
	if (read_vmlinux_of_build_id(id, ret) >= 0 || read_vmlinux_of_release(id, ret) >= 0)
		return 0;
	if (running && read_system_map(id, ret) >= 0)
		return 0;
	return -ENOENT;
}

struct symtab *kernel_symbols_module(struct kernel_symbols *k, const char *name)
{
	for (size_t i = 0; i < k->n_modules; i++)
		if (!strcmp(k->modules[i].name, name))
			return &k->modules[i].table;
	return NULL;
}

void kernel_symbols_done(struct kernel_symbols *k)
{
	symtab_done(&k->core);
	for (size_t i = 0; i < k->n_modules; i++) {
		free(k->modules[i].name);
		symtab_done(&k->modules[i].table);
	}
	free(k->modules);
	*k = (struct kernel_symbols){};
}
