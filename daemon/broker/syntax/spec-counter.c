// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Counters in event text: perf's names, rHEX, modifiers, and breakpoints (mem:). Owns their syntax
 * and error messages; must not know whether this machine counts them.
 */
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "proto/symbol.h"
#include "daemon/text.h"

/* ── Modifiers ──────────────────────────────────────────────────────────────────────────── */

/* As in perf, each modifier except p stands once. */
static int check_modifiers(struct spec_parser *p, const char *mods)
{
	unsigned precise = 0;

	for (const char *m = mods; *m; m++) {
		precise += *m == 'p';
		if (strchr(SPEC_MODIFIERS_OTHER, *m))
			return spec_refuse(p, -EOPNOTSUPP,
					   "modifier '%c' of '%s' is one that this version does "
					   "not know: u k h H G I p pp ppp are",
					   *m, p->quote);
		if (!strchr(SPEC_MODIFIERS, *m))
			return spec_refuse(p, -EINVAL,
					   "'%c' in '%s' is not a modifier: u k h H G I p pp ppp "
					   "are",
					   *m, p->quote);
		if (*m != 'p' && strchr(m + 1, *m))
			return spec_refuse(p, -EINVAL,
					   "modifier '%c' stands twice in '%s': write it once", *m,
					   p->quote);
	}
	if (precise > 3)
		return spec_refuse(p, -EINVAL,
				   "'%s' asks for more precision than there is: at most ppp",
				   p->quote);
	return 0;
}

/*
 * perf's meaning, checked against perf 6.1. Without modifiers guests are excluded. u, k and h count
 * only the levels named; H and G count only the sides named, and override the others about guests.
 * u and p exclude guests; k, h and I do not.
 */
static void apply_modifiers(const char *mods, struct pp_source *s)
{
	const uint32_t levels = PP_EXCLUDE_USER | PP_EXCLUDE_KERNEL | PP_EXCLUDE_HV;
	const uint32_t sides = PP_EXCLUDE_HOST | PP_EXCLUDE_GUEST;

	s->exclude = 0;
	if (strpbrk(mods, "ukh"))
		s->exclude |= levels;
	if (strpbrk(mods, "HG"))
		s->exclude |= sides;
	else if (!*mods || strpbrk(mods, "up"))
		s->exclude |= PP_EXCLUDE_GUEST;
	for (; *mods; mods++) {
		switch (*mods) {
		case 'u':
			s->exclude &= ~PP_EXCLUDE_USER;
			break;
		case 'k':
			s->exclude &= ~PP_EXCLUDE_KERNEL;
			break;
		case 'h':
			s->exclude &= ~PP_EXCLUDE_HV;
			break;
		case 'H':
			s->exclude &= ~PP_EXCLUDE_HOST;
			break;
		case 'G':
			s->exclude &= ~PP_EXCLUDE_GUEST;
			break;
		case 'I':
			s->exclude |= PP_EXCLUDE_IDLE;
			break;
		case 'p':
			s->precise_ip++;
			break;
		}
	}
}

int spec_modify(struct spec_parser *p, const char *mods, struct pp_source *source)
{
	int r;

	r = check_modifiers(p, mods);
	if (r < 0)
		return r;
	apply_modifiers(mods, source);
	return 0;
}

/* ── Names ──────────────────────────────────────────────────────────────────────────────── */

static int refuse_silent(struct spec_parser *p)
{
	return spec_refuse(p, -EOPNOTSUPP,
			   "'%s' never counts anything, so there is nothing to record: use an "
			   "event that happens, such as cpu-clock",
			   p->quote);
}

/* r1a8, r0x1a8 */
static int parse_raw(struct spec_parser *p, const char *name, uint64_t *ret)
{
	const char *digits = spec_starts_with(name, "r0x") ? name + 3 : name + 1;
	char number[2 + 16 + 1];

	if (name[0] != 'r' || !*digits || !spec_consists_of(digits, SPEC_HEX_DIGITS))
		return 0;
	if (strlen(digits) > 16)
		return spec_refuse(p, -EINVAL, "'%s' is too large: r has at most 16 digits",
				   p->quote);
	snprintf(number, sizeof(number), "0x%.16s", digits);
	pp_parse_u64(number, ret);
	return 1;
}

int spec_counter(struct spec_parser *p, const char *name, struct pp_source *ret)
{
	const struct symbol *symbol = symbol_find(name);
	struct pp_source s = { .kind = PP_SOURCE_SAMPLING };
	int r;

	if (symbol) {
		if (!symbol->counts)
			return refuse_silent(p);
		s.type = symbol->type;
		s.config = symbol->config;
		*ret = s;
		return 1;
	}
	s.type = PERF_TYPE_HW_CACHE;
	r = symbol_cache(name, &s.config);
	if (r == -EINVAL)
		return spec_refuse(
			p, -EINVAL,
			"'%s' is an operation that this cache lacks: all have loads, L1-dcache LLC "
			"dTLB node also stores, those and L1-icache also prefetches",
			p->quote);
	if (r < 0) {
		s.type = PERF_TYPE_RAW;
		r = parse_raw(p, name, &s.config);
		if (r <= 0)
			return r;
	}
	*ret = s;
	return 1;
}

/* ── Breakpoints: mem:ADDRESS[/LENGTH][:ACCESS][:MODIFIERS] ─────────────────────────────── */

static int parse_access(struct spec_parser *p, const char *text, uint32_t *ret)
{
	static const struct {
		const char *text;
		uint32_t type;
	} accesses[] = {
		{ "r", HW_BREAKPOINT_R },   { "w", HW_BREAKPOINT_W },	{ "x", HW_BREAKPOINT_X },
		{ "rw", HW_BREAKPOINT_RW }, { "wr", HW_BREAKPOINT_RW },
	};

	for (size_t i = 0; i < ARRAY_SIZE(accesses); i++)
		if (!strcmp(text, accesses[i].text)) {
			*ret = accesses[i].type;
			return 0;
		}
	return spec_refuse(p, -EINVAL,
			   "'%s' is an access of '%s' that no breakpoint has: r w rw x are", text,
			   p->quote);
}

/* perf's default: a word for x, else four bytes. Processors support no other lengths. */
static int parse_length(struct spec_parser *p, const char *text, struct pp_source *s)
{
	uint64_t length = s->bp_type == HW_BREAKPOINT_X ? sizeof(long) : HW_BREAKPOINT_LEN_4;

	if (text && (pp_parse_u64(text, &length) < 0 || length == 0 || length > 8 ||
		     (length & (length - 1))))
		return spec_refuse(p, -EINVAL, "the length in '%s' is none: 1, 2, 4 and 8 are",
				   p->quote);
	if (s->bp_type == HW_BREAKPOINT_X && length != sizeof(long))
		return spec_refuse(p, -EINVAL,
				   "the length in '%s' is none for x: leave it out, or write %zu",
				   p->quote, sizeof(long));
#ifdef __x86_64__
	if (s->bp_type != HW_BREAKPOINT_X && s->config1 & (length - 1))
		return spec_refuse(p, -EINVAL,
				   "the address in '%s' is not a multiple of the length, %d: this "
				   "processor watches no others; use more, shorter breakpoints",
				   p->quote, (int)length);
#endif
	s->config2 = length;
	return 0;
}

int spec_parse_breakpoint(struct spec_parser *p)
{
	struct pp_source s = {
		.kind = PP_SOURCE_SAMPLING,
		.type = PERF_TYPE_BREAKPOINT,
		.bp_type = HW_BREAKPOINT_RW,
	};
	char text[PP_EVENT_TEXT_SIZE], *words = text + strlen("mem:");
	char *address, *length, *access, *mods = NULL;
	int r;

	snprintf(text, sizeof(text), "%s", p->text);
	address = strsep(&words, ":");
	access = strsep(&words, ":");
	length = address;
	address = strsep(&length, "/");
	/* A single word is an access if it can be; no letter is both an access and a modifier. */
	if (words || (access && *access && strchr("rwx", *access)))
		mods = words;
	else if (access)
		mods = TAKE_PTR(access);
	if (pp_parse_u64(address, &s.config1) < 0)
		return spec_refuse(p, -EINVAL,
				   "'%s' has no address: write mem:ADDRESS[/LENGTH][:ACCESS], as "
				   "in mem:0xffffffff81000000/8:w",
				   p->quote);
	r = access ? parse_access(p, access, &s.bp_type) : 0;
	if (r == 0)
		r = parse_length(p, length, &s);
	if (r == 0)
		r = spec_modify(p, mods ? mods : "", &s);
	return r < 0 ? r : spec_add(p, &s, NULL);
}
