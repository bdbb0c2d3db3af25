// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A probe's arguments in event text: [NAME=]PLACE[:TYPE],… Owns their syntax, which is that of
 * ftrace's probes. Must not know the kind of probe, except whether it is a return.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "daemon/text.h"

/* ── Types ──────────────────────────────────────────────────────────────────────────────── */

static int parse_type(struct spec_parser *p, const char *text, struct pp_probe_arg *arg)
{
	static const struct {
		const char *text;
		unsigned char size, is_signed, is_hex, is_string;
	} types[] = {
		{ "u8", 1, 0, 0, 0 },	  { "u16", 2, 0, 0, 0 }, { "u32", 4, 0, 0, 0 },
		{ "u64", 8, 0, 0, 0 },	  { "s8", 1, 1, 0, 0 },	 { "s16", 2, 1, 0, 0 },
		{ "s32", 4, 1, 0, 0 },	  { "s64", 8, 1, 0, 0 }, { "x8", 1, 0, 1, 0 },
		{ "x16", 2, 0, 1, 0 },	  { "x32", 4, 0, 1, 0 }, { "x64", 8, 0, 1, 0 },
		{ "string", 8, 0, 0, 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(text, types[i].text)) {
			arg->size = types[i].size;
			arg->is_signed = types[i].is_signed;
			arg->is_hex = types[i].is_hex;
			arg->is_string = types[i].is_string;
			return 0;
		}
	return spec_refuse(p, -EINVAL,
			   "'%.40s' in '%s' is no type of an argument: u8 u16 u32 u64, s8 to s64, "
			   "x8 to x64 and string are",
			   text, p->quote);
}

/* ── Places ─────────────────────────────────────────────────────────────────────────────── */

/* Parses +OFFSET(+OFFSET(…)): strips the offsets from both ends of text, outermost first. */
static int parse_dereferences(struct spec_parser *p, char **text, struct pp_probe_arg *arg)
{
	int32_t offsets[ARRAY_SIZE(arg->offsets)];
	size_t n = 0;

	while (**text == '+' || **text == '-') {
		bool negative = *(*text)++ == '-';
		char *number = strsep(text, "("), *end = *text ? strrchr(*text, ')') : NULL;
		uint32_t value;

		if (!end || end[1])
			return spec_refuse(
				p, -EINVAL,
				"an argument of '%s' lacks brackets: write +OFFSET(PLACE), "
				"as in +8(%%di)",
				p->quote);
		*end = 0;
		if (pp_parse_u32(number, &value) < 0 || value > INT32_MAX)
			return spec_refuse(p, -EINVAL,
					   "'%.20s' in '%s' is no offset: write +OFFSET(PLACE), as "
					   "in +8(%%di)",
					   number, p->quote);
		if (n == ARRAY_SIZE(offsets))
			return spec_refuse(
				p, -EINVAL,
				"an argument of '%s' follows too many pointers: at most %zu",
				p->quote, ARRAY_SIZE(offsets));
		offsets[n++] = negative ? -(int32_t)value : (int32_t)value;
	}
	arg->dereferences = n;
	for (size_t i = 0; i < n; i++)
		arg->offsets[i] = offsets[n - 1 - i];
	return 0;
}

static int parse_argument(struct spec_parser *p, const char *text, bool is_return,
			  struct pp_probe_arg *arg)
{
	if (is_return)
		return spec_refuse(p, -EINVAL,
				   "'%s' asks for %s at the function's return, when arguments are "
				   "gone: use retval, or a probe at its beginning",
				   p->quote, text);
	if (strlen(text) != strlen("arg1") || text[3] < '1' || text[3] > '6')
		return spec_refuse(p, -EINVAL,
				   "'%.20s' in '%s' is no argument: arg1 to arg6 are in registers, "
				   "others at +OFFSET(%%sp)",
				   text, p->quote);
	arg->place = PP_PROBE_ARGUMENT;
	arg->number = text[3] - '0';
	return 0;
}

static int parse_register(struct spec_parser *p, const char *text, struct pp_probe_arg *arg)
{
	int word = spec_register(text);

	if (word < 0)
		return spec_refuse(p, -EINVAL,
				   "'%%%.20s' in '%s' is no register of this machine: write its "
				   "whole name as perf probe does, and take parts by the type",
				   text, p->quote);
	arg->place = PP_PROBE_REGISTER;
	arg->number = word;
	return 0;
}

/* ftrace writes a $ before places that are not registers; here it is optional. */
static int parse_place(struct spec_parser *p, const char *text, bool is_return,
		       struct pp_probe_arg *arg)
{
	if (*text == '%')
		return parse_register(p, text + 1, arg);
	text += *text == '$';
	if (spec_starts_with(text, "arg"))
		return parse_argument(p, text, is_return, arg);
	if (strcmp(text, "retval"))
		return spec_refuse(p, -EINVAL,
				   "'%.40s' in '%s' is no place of an argument: argN, retval, "
				   "%%REGISTER and +OFFSET(PLACE) are",
				   text, p->quote);
	if (!is_return)
		return spec_refuse(p, -EINVAL,
				   "'%s' asks for retval where the function begins: use kretprobe "
				   "or uretprobe",
				   p->quote);
	arg->place = PP_PROBE_RETURN;
	return 0;
}

/* ── Arguments ──────────────────────────────────────────────────────────────────────────── */

static int set_name(struct spec_parser *p, const char *name, const struct pp_source *source,
		    struct pp_probe_arg *arg)
{
	if (strlen(name) >= sizeof(arg->name) ||
	    !spec_consists_of(name, SPEC_LETTERS SPEC_DIGITS) || !*name ||
	    strchr(SPEC_DIGITS, *name))
		return spec_refuse(
			p, -EINVAL,
			"'%.40s' in '%s' is no name for an argument: letters, digits and "
			"_, at most %zu",
			name, p->quote, sizeof(arg->name) - 1);
	if (spec_starts_with(name, "common_") || spec_starts_with(name, "__"))
		return spec_refuse(p, -EINVAL,
				   "an argument of '%s' is called %s, as fields that every record "
				   "has: choose a name without common_ and __ before it",
				   p->quote, name);
	for (uint32_t i = 0; i < source->n_args; i++)
		if (!strcmp(name, source->args[i].name))
			return spec_refuse(p, -EINVAL,
					   "two arguments of '%s' are called %s: name them, as in "
					   "first=%s",
					   p->quote, name, name);
	strcpy(arg->name, name);
	return 0;
}

static int parse_arg(struct spec_parser *p, char *text, struct pp_source *source)
{
	struct pp_probe_arg arg = { .size = 8, .is_hex = 1 };
	char *place = text, *name = strsep(&place, "="), *type;
	int r;

	if (!place) {
		place = name;
		name = NULL;
	}
	type = strchr(place, ':');
	if (type)
		*type++ = 0;
	r = parse_dereferences(p, &place, &arg);
	if (r == 0)
		r = parse_place(p, place, source->is_return, &arg);
	if (r == 0)
		r = set_name(p, name ? name : place + (*place == '%' || *place == '$'), source,
			     &arg);
	if (r == 0 && type)
		r = parse_type(p, type, &arg);
	if (r < 0)
		return r;
	source->args[source->n_args++] = arg;
	return 0;
}

int spec_parse_args(struct spec_parser *p, char *text, struct pp_source *source)
{
	char *arg;

	while ((arg = strsep(&text, ","))) {
		int r;

		if (source->n_args == PP_PROBE_ARGS_MAX)
			return spec_refuse(p, -EINVAL, "'%s' has too many arguments: at most %d",
					   p->quote, PP_PROBE_ARGS_MAX);
		r = parse_arg(p, arg, source);
		if (r < 0)
			return r;
	}
	return 0;
}
