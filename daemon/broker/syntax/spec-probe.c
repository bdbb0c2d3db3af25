// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Probes in event text: kprobe: kretprobe: uprobe: uretprobe: usdt:. Owns the part before the
 * arguments; spec-args.c has the arguments. Places in files are looked up here, with the rights of
 * the daemon's user; only the engine knows the kernel's functions.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "daemon/text.h"

#define FUNCTION SPEC_LETTERS SPEC_DIGITS ".$"

static const struct kind {
	const char *prefix;
	bool is_user, is_return, is_static;
} kinds[] = {
	{ "kprobe:", false, false, false }, { "kretprobe:", false, true, false },
	{ "uprobe:", true, false, false },  { "uretprobe:", true, true, false },
	{ "usdt:", true, false, true },
};

static const struct kind *find_kind(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (spec_starts_with(text, kinds[i].prefix))
			return &kinds[i];
	return NULL;
}

bool spec_is_probe(const char *text)
{
	return find_kind(text) != NULL;
}

static void cleanup_elf(struct spec_elf *f)
{
	if (f->elf)
		spec_elf_close(f);
}

/* ── Parts ──────────────────────────────────────────────────────────────────────────────── */

/* Strips "(ARGS)" from the end of text, if there is one, and parses it. */
static int take_args(struct spec_parser *p, char *text, struct pp_source *s)
{
	char *open = strchr(text, '('), *end;

	if (!open)
		return 0;
	end = strrchr(open, ')');
	if (!end || end[1])
		return spec_refuse(p, -EINVAL,
				   "'%s' lacks the bracket behind its arguments: write "
				   "FUNCTION(ARG,...) and nothing behind it",
				   p->quote);
	*open = *end = 0;
	/* f() has no arguments, like f. */
	return open[1] ? spec_parse_args(p, open + 1, s) : 0;
}

/* Strips "+OFFSET" from the end of text. */
static int take_offset(struct spec_parser *p, char *text, const struct kind *kind, uint64_t *ret)
{
	char *plus = strchr(text, '+');

	if (!plus)
		return 0;
	if (kind->is_return)
		return spec_refuse(p, -EINVAL,
				   "'%s' has an offset, but a return has none: leave it out",
				   p->quote);
	if (pp_parse_u64(plus + 1, ret) < 0 || *ret > UINT32_MAX)
		return spec_refuse(p, -EINVAL,
				   "'%s' has an offset that is none: write FUNCTION+16 or "
				   "FUNCTION+0x10",
				   p->quote);
	*plus = 0;
	return 0;
}

static int set_function(struct spec_parser *p, const char *name, struct pp_source *s)
{
	if (pp_is_glob(name))
		return spec_refuse(p, -EOPNOTSUPP,
				   "'%s' is a glob, which only tracepoints can be given by: write "
				   "one probe for each function, with commas between",
				   p->quote);
	if (!*name || !spec_consists_of(name, FUNCTION))
		return spec_refuse(
			p, -EINVAL,
			"'%s' does not name a function: write it in letters, digits, _ . "
			"and $, as in kprobe:do_exit or uprobe:/bin/bash:readline",
			p->quote);
	if (pp_copy_text(s->name, sizeof(s->name), name) < 0)
		return spec_refuse(p, -EINVAL,
				   "the function in '%s' has too long a name: at most %d bytes; "
				   "uprobe:PATH:OFFSET does without",
				   p->quote, PP_TP_NAME_SIZE - 1);
	return 0;
}

static int set_path(struct spec_parser *p, const char *path, struct pp_source *s)
{
	if (*path != '/')
		return spec_refuse(p, -EINVAL,
				   "'%s' has no absolute path: write the whole of it, as in "
				   "uprobe:/bin/bash:readline",
				   p->quote);
	if (pp_copy_text(s->path, sizeof(s->path), path) < 0)
		return spec_refuse(p, -EINVAL, "the path in '%s' is too long: at most %d bytes",
				   p->quote, PP_PATH_SIZE - 1);
	return 0;
}

/* ── Kernel ─────────────────────────────────────────────────────────────────────────────── */

static int parse_kprobe(struct spec_parser *p, char *text, const struct kind *kind,
			struct pp_source *s)
{
	int r;

	s->kind = PP_SOURCE_KPROBE;
	r = take_offset(p, text, kind, &s->offset);
	if (r == 0)
		r = set_function(p, text, s);
	return r < 0 ? r : spec_add(p, s, NULL);
}

/* ── User ───────────────────────────────────────────────────────────────────────────────── */

/* Parses FUNCTION[+OFFSET] and finds its place in the file. */
static int find_function(struct spec_parser *p, char *text, const struct kind *kind,
			 struct pp_source *s)
{
	_cleanup_(cleanup_elf) struct spec_elf f = { .fd = -EBADF };
	uint64_t within = 0, offset, size;
	int r;

	r = take_offset(p, text, kind, &within);
	if (r == 0)
		r = set_function(p, text, s);
	if (r == 0)
		r = spec_elf_open(p, s->path, &f);
	if (r == 0)
		r = spec_elf_function(p, &f, s->name, &offset, &size);
	if (r < 0)
		return r;
	if (size && within >= size)
		return spec_refuse(p, -EINVAL,
				   "'%s' is behind the function's end: %s has %llu bytes", p->quote,
				   s->name, (unsigned long long)size);
	s->offset = offset + within;
	return spec_elf_check_offset(p, &f, s->offset);
}

/* A number: an offset in the file. */
static int find_offset(struct spec_parser *p, const char *text, struct pp_source *s)
{
	_cleanup_(cleanup_elf) struct spec_elf f = { .fd = -EBADF };
	int r;

	if (pp_parse_u64(text, &s->offset) < 0 || s->offset > INT64_MAX ||
	    pp_copy_text(s->name, sizeof(s->name), text) < 0)
		return spec_refuse(p, -EINVAL,
				   "'%s' has neither a function nor an offset: write "
				   "uprobe:PATH:FUNCTION or uprobe:PATH:0x1234",
				   p->quote);
	r = spec_elf_open(p, s->path, &f);
	return r < 0 ? r : spec_elf_check_offset(p, &f, s->offset);
}

static int parse_uprobe(struct spec_parser *p, char *text, const struct kind *kind,
			struct pp_source *s)
{
	char *colon = strrchr(text, ':');
	int r;

	if (!colon || colon == text)
		return spec_refuse(p, -EINVAL,
				   "'%s' lacks a part: write %sPATH:FUNCTION, as in "
				   "uprobe:/bin/bash:readline",
				   p->quote, kind->prefix);
	*colon++ = 0;
	r = set_path(p, text, s);
	if (r == 0)
		r = strchr(SPEC_DIGITS, *colon) && *colon ? find_offset(p, colon, s)
							  : find_function(p, colon, kind, s);
	return r < 0 ? r : spec_add(p, s, NULL);
}

/* Each place of a static probe becomes a source, with its own arguments. */
static int parse_usdt(struct spec_parser *p, char *text, struct pp_source *s)
{
	_cleanup_(cleanup_elf) struct spec_elf f = { .fd = -EBADF };
	struct spec_usdt places[PP_TERMS_MAX];
	char *path = strsep(&text, ":"), *provider = text ? strsep(&text, ":") : NULL;
	char *name = text ? text : provider;
	int n, r;

	if (!name || strchr(name, ':') || !*name || !*provider)
		return spec_refuse(p, -EINVAL,
				   "'%s' lacks a part or has too many: write "
				   "usdt:PATH:PROVIDER:NAME, as in usdt:/bin/x:app:begin",
				   p->quote);
	r = set_path(p, path, s);
	if (r == 0)
		r = set_function(p, name, s);
	if (r == 0)
		r = spec_elf_open(p, s->path, &f);
	if (r < 0)
		return r;
	n = spec_elf_usdt(p, &f, text ? provider : NULL, name, places, p->cap - p->n);
	for (int i = 0; i < n && r == 0; i++) {
		struct pp_source place = *s;

		place.offset = places[i].offset;
		place.ref_ctr_offset = places[i].semaphore;
		spec_usdt_args(places[i].args, &place);
		r = spec_add(p, &place, NULL);
	}
	return MIN(n, r);
}

int spec_parse_probe(struct spec_parser *p)
{
	const struct kind *kind = find_kind(p->text);
	struct pp_source s = { .kind = PP_SOURCE_UPROBE, .is_return = kind->is_return };
	char copy[PP_EVENT_TEXT_SIZE], *text = copy + strlen(kind->prefix);
	int r;

	snprintf(copy, sizeof(copy), "%s", p->text);
	r = take_args(p, text, &s);
	if (r < 0)
		return r;
	if (kind->is_static && s.n_args)
		return spec_refuse(
			p, -EINVAL,
			"'%s' names arguments, which a static probe has of its own: leave "
			"the brackets out",
			p->quote);
	if (!kind->is_user)
		return parse_kprobe(p, text, kind, &s);
	return kind->is_static ? parse_usdt(p, text, &s) : parse_uprobe(p, text, kind, &s);
}
