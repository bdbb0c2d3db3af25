// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/events/recordable.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/macro.h"
#include "proto/nearest.h"
#include "proto/symbol.h"

const char *const recordable_kinds[RECORDABLE_KINDS] = {
	"software", "hardware", "cache", "pmu", "tracepoint", "form",
};

struct finding {
	const struct recordable_machine *machine;
	struct recordables found;
	bool has_processor; /* a PMU that counts hardware events */
	int error;
};

static void add(struct finding *f, enum recordable_kind kind, bool is_unsure, const char *about,
		const char *fmt, ...) _printf_(5, 6);
static void add(struct finding *f, enum recordable_kind kind, bool is_unsure, const char *about,
		const char *fmt, ...)
{
	struct recordable one = { .kind = kind, .about = about, .is_unsure = is_unsure };
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&one.name, fmt, ap);
	va_end(ap);
	if (n < 0 || !GROW(f->found.all, f->found.n)) {
		if (n >= 0)
			free(one.name);
		f->error = -ENOMEM;
		return;
	}
	f->found.all[f->found.n++] = one;
	f->found.some_unsure |= is_unsure;
}

/* ── Counters ───────────────────────────────────────────────────────────────────────────── */

static int open_one(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	struct perf_event_attr a = *attr;
	int fd = (int)syscall(SYS_perf_event_open, &a, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

/* The daemon opens it on a CPU. An ordinary user may not, but perhaps for a process of his own. */
static int sample(struct perf_event_attr *attr)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int r = -ENODEV;

	for (int cpu = 0; r == -ENODEV && cpu < cpus; cpu++) /* it may be offline */
		r = open_one(attr, -1, cpu);
	if (r != -EACCES && r != -EPERM)
		return r;
	attr->exclude_kernel = attr->exclude_hv = 1;
	return open_one(attr, 0, -1);
}

/* config, config1 and config2 of struct perf_event_attr */
struct config {
	uint64_t words[3];
};

/* Adds it if it can be sampled. */
static void add_counter(struct finding *f, enum recordable_kind kind, uint32_t type,
			const struct config *config, const char *name)
{
	struct perf_event_attr attr = {
		.type = type,
		.size = sizeof(attr),
		.config = config->words[0],
		.config1 = config->words[1],
		.config2 = config->words[2],
		.freq = 1,
		.sample_freq = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.disabled = 1,
		.exclude_guest = 1,
	};
	int r = f->machine->sample(&attr);

	if (r == 0)
		add(f, kind, false, NULL, "%s", name);
	else if ((r == -EACCES || r == -EPERM) && f->has_processor)
		add(f, kind, true, NULL, "%s", name);
}

/* Every kernel has the software events. */
static void find_symbols(struct finding *f)
{
	const struct symbol *s;

	for (size_t i = 0; (s = symbol_at(i)); i++) {
		const char *const names[] = { s->name, s->alias };

		for (size_t k = 0; s->counts && k < ARRAY_SIZE(names) && names[k]; k++)
			if (s->type == PERF_TYPE_SOFTWARE)
				add(f, RECORDABLE_SOFTWARE, false, NULL, "%s", names[k]);
			else
				add_counter(f, RECORDABLE_HARDWARE, s->type,
					    &(struct config){ { s->config } }, names[k]);
	}
}

static void find_caches(struct finding *f)
{
	char name[SYMBOL_CACHE_SIZE];
	struct config config = {};

	for (size_t i = 0; symbol_cache_name(i, name, sizeof(name)); i++)
		if (symbol_cache(name, &config.words[0]) == 0)
			add_counter(f, RECORDABLE_CACHE, PERF_TYPE_HW_CACHE, &config, name);
}

/* ── PMUs ───────────────────────────────────────────────────────────────────────────────── */

static glob_t paths(const char *fmt, ...) _printf_(1, 2);
static glob_t paths(const char *fmt, ...)
{
	char pattern[512];
	glob_t g = {};
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(pattern, sizeof(pattern), fmt, ap);
	va_end(ap);
	glob(pattern, 0, NULL, &g);
	return g;
}

/* The first line of a file; false: there is none. */
static bool read_line(char *line, int size, const char *fmt, ...) _printf_(3, 4);
static bool read_line(char *line, int size, const char *fmt, ...)
{
	_cleanup_fclose_ FILE *file = NULL;
	char path[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	file = fopen(path, "re");
	if (!file || !fgets(line, size, file))
		return false;
	line[strcspn(line, "\n")] = '\0';
	return true;
}

/* The word that a term or a format names, "config1", of n letters; NULL: it is none. */
static uint64_t *find_word(struct config *config, const char *name, size_t n)
{
	static const char *const names[] = { "config", "config1", "config2" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == n && !memcmp(names[i], name, n))
			return &config->words[i];
	return NULL;
}

/* Puts a term's value into the bits that its format names: "config:0-7,21". False: it is kept elsewhere. */
static bool apply_format(const char *format, uint64_t value, struct config *config)
{
	size_t n = strcspn(format, ":");
	uint64_t *word = find_word(config, format, n);

	if (!word || !format[n])
		return false;
	for (const char *p = format + n + 1; isdigit((unsigned char)*p);) {
		char *end;
		unsigned long first = strtoul(p, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < 64; first++, value >>= 1)
			*word |= (value & 1) << first;
		p = end + (*end == ',');
	}
	return true;
}

/* terms: what a PMU's events/NAME holds, "event=0x3c,umask=0x00". False: what the kernel would make of it is
 * not known, as where a term is left to the user ("core=?"). */
static bool read_config(const struct finding *f, const char *pmu, char *terms, struct config *ret)
{
	char *term, format[128];

	*ret = (struct config){};
	while ((term = strsep(&terms, ","))) {
		char *value = term;
		uint64_t number, *word;

		term = strsep(&value, "=");
		if (value && !isdigit((unsigned char)*value))
			return false;
		number = value ? strtoull(value, NULL, 0) : 1;
		word = find_word(ret, term, strlen(term));
		if (word)
			*word = number;
		else if (!read_line(format, sizeof(format), "%s/%s/format/%s", f->machine->devices,
				    pmu, term) ||
			 !apply_format(format, number, ret))
			return false;
	}
	return true;
}

static void find_pmu(struct finding *f, const char *pmu, uint32_t type)
{
	_cleanup_(globfree) glob_t g = paths("%s/%s/events/*", f->machine->devices, pmu);

	for (size_t i = 0; i < g.gl_pathc; i++) {
		const char *event = strrchr(g.gl_pathv[i], '/') + 1;
		char terms[256], name[192];
		struct config config;

		if (strchr(event, '.')) /* .scale, .unit, .snapshot */
			continue;
		snprintf(name, sizeof(name), "%.90s/%.90s/", pmu, event);
		if (read_line(terms, sizeof(terms), "%s", g.gl_pathv[i]) &&
		    read_config(f, pmu, terms, &config))
			add_counter(f, RECORDABLE_PMU, type, &config, name);
	}
}

static bool has_pmu(const struct finding *f, const char *name)
{
	char type[32];

	return read_line(type, sizeof(type), "%s/%s/type", f->machine->devices, name);
}

/* Processors' own PMUs have `cpus`, or the oldest type. */
static void find_processor(struct finding *f)
{
	_cleanup_(globfree) glob_t cpus = paths("%s/*/cpus", f->machine->devices);
	_cleanup_(globfree) glob_t types = paths("%s/*/type", f->machine->devices);
	char type[32];

	f->has_processor = cpus.gl_pathc > 0;
	for (size_t i = 0; i < types.gl_pathc; i++)
		if (read_line(type, sizeof(type), "%s", types.gl_pathv[i]))
			f->has_processor |= strtoul(type, NULL, 10) == PERF_TYPE_RAW;
}

static void find_pmus(struct finding *f)
{
	_cleanup_(globfree) glob_t g = paths("%s/*/type", f->machine->devices);
	char type[32];

	for (size_t i = 0; i < g.gl_pathc; i++) {
		char *end = strrchr(g.gl_pathv[i], '/');

		if (!read_line(type, sizeof(type), "%s", g.gl_pathv[i]))
			continue;
		*end = '\0';
		find_pmu(f, strrchr(g.gl_pathv[i], '/') + 1, (uint32_t)strtoul(type, NULL, 10));
	}
}

/* ── Tracepoints ────────────────────────────────────────────────────────────────────────── */

static FILE *open_tracefs(const struct finding *f, const char *file)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", f->machine->tracefs, file);
	return fopen(path, "re");
}

/*
 * Probes and synthetic events that somebody made through tracefs are listed as if they were tracepoints,
 * and take no programs: "p:kprobes/open vfs_open", "s:synthetic/wakeup …". Returns them with colons, each
 * between two newlines.
 */
static char *read_made(const struct finding *f)
{
	_cleanup_fclose_ FILE *file = open_tracefs(f, "dynamic_events");
	_cleanup_free_ char *line = NULL;
	size_t size = 0, n;
	char *made = NULL;
	FILE *out = open_memstream(&made, &n);

	if (!out)
		return NULL;
	fputc('\n', out);
	while (file && getline(&line, &size, file) > 0) {
		char *name = strchr(line, ':'), *slash;

		if (!name)
			continue;
		name++;
		name[strcspn(name, " \t\n")] = '\0';
		slash = strchr(name, '/');
		if (slash)
			*slash = ':';
		fprintf(out, "%s%s\n", slash ? "" : "synthetic:", name);
	}
	if (fclose(out)) {
		free(made);
		return NULL;
	}
	return made;
}

static void find_tracepoints(struct finding *f)
{
	_cleanup_fclose_ FILE *file = open_tracefs(f, "available_events");
	_cleanup_free_ char *made = NULL, *line = NULL;
	size_t size = 0;

	if (!file) {
		f->found.no_tracepoints = -errno;
		return;
	}
	made = read_made(f);
	if (!made)
		f->error = -ENOMEM;
	while (!f->error && getline(&line, &size, file) > 0) {
		char pattern[256];

		line[strcspn(line, "\n")] = '\0';
		snprintf(pattern, sizeof(pattern), "\n%s\n", line);
		if (!strstr(made, pattern))
			add(f, RECORDABLE_TRACEPOINT, false, NULL, "%s", line);
	}
}

/* ── What needs a name of the user's ────────────────────────────────────────────────────── */

static void find_forms(struct finding *f)
{
	static const struct {
		const char *pmu, *form, *about;
	} forms[] = {
		{ "tracepoint", "SYSTEM:GLOB", "all tracepoints that match, as in 'block:*'" },
		{ "kprobe", "kprobe:FUNCTION[+OFFSET][(ARGS)]", "a function of the kernel" },
		{ "kprobe", "kretprobe:FUNCTION[(ARGS)]", "the return of one" },
		{ "uprobe", "uprobe:FILE:FUNCTION[+OFFSET][(ARGS)]",
		  "a function of a program or library" },
		{ "uprobe", "uretprobe:FILE:FUNCTION[(ARGS)]", "the return of one" },
		{ "uprobe", "usdt:FILE:[PROVIDER:]NAME", "a probe that its author put there" },
		{ "breakpoint", "mem:ADDRESS[/LENGTH][:ACCESS]",
		  "a breakpoint; ACCESS: r, w, x or rw" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (has_pmu(f, forms[i].pmu))
			add(f, RECORDABLE_FORM, false, forms[i].about, "%s", forms[i].form);
	if (f->has_processor)
		add(f, RECORDABLE_FORM, false, "an event of the processor by its number", "rHEX");
}

/* ── All of it ──────────────────────────────────────────────────────────────────────────── */

static const struct recordable_machine *this_machine(void)
{
	static struct recordable_machine machine = {
		.tracefs = "/sys/kernel/tracing/",
		.devices = "/sys/bus/event_source/devices",
		.sample = sample,
	};

	if (access("/sys/kernel/tracing/events", F_OK) < 0 && errno == ENOENT &&
	    access("/sys/kernel/debug/tracing/events", F_OK) == 0)
		machine.tracefs = "/sys/kernel/debug/tracing/";
	return &machine;
}

int recordables_find(const struct recordable_machine *machine, struct recordables *ret)
{
	struct finding f = { .machine = machine ?: this_machine() };

	find_processor(&f);
	find_symbols(&f);
	find_caches(&f);
	find_pmus(&f);
	find_tracepoints(&f);
	find_forms(&f);
	if (f.error < 0) {
		recordables_done(&f.found);
		return f.error;
	}
	*ret = f.found;
	return 0;
}

void recordables_done(struct recordables *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->all[i].name);
	free(r->all);
	*r = (struct recordables){};
}

const char *recordables_nearest(const struct recordables *r, const char *text)
{
	const char *colon = strchr(text, ':');
	struct pp_nearest s;

	/* A tracepoint's system is nearly always right and says nothing of the similarity. */
	pp_nearest_begin(&s, text, strlen(colon ? colon + 1 : text));
	for (size_t i = 0; i < r->n; i++) {
		if (r->all[i].kind == RECORDABLE_FORM)
			continue;
		if (!strcmp(r->all[i].name, text))
			return NULL;
		pp_nearest_consider(&s, r->all[i].name);
	}
	return s.best;
}
