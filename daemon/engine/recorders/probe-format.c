// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A probe's payload as a tracepoint's format: the common fields, the probe's address, and the
 * arguments, as ftrace writes it for its own probes. Knows the layout of the payload, not the
 * program that fills it.
 */
#include "daemon/engine/recorders/probe.h"

#include <ctype.h>
#include <string.h>

#include "proto/macro.h"

#define FIELDS_MAX (4 + 2 + PP_PROBE_ARGS_MAX)
#define ID_FIRST 0x8000 /* above the kernel's; common_type has 16 bits */

/* A tracepoint to which fields are added, and its text. */
struct draft {
	struct tracepoint *tp;
	FILE *out;
};

static void add_field(struct draft *d, const char *type, const char *name, uint32_t size,
		      uint32_t count, bool is_signed)
{
	struct tp_field *f = &d->tp->fields[d->tp->n_fields++];

	*f = (struct tp_field){
		.offset = ALIGN_TO(d->tp->fixed_size, count > 1 ? 8U : size),
		.size = size * count,
		.is_signed = is_signed,
		.is_array = count > 1,
		.is_text = count > 1,
	};
	snprintf(f->name, sizeof(f->name), "%s", name);
	d->tp->fixed_size = f->offset + f->size;
	fprintf(d->out, "\tfield:%s %s", type, name);
	if (count > 1)
		fprintf(d->out, "[%u]", count);
	fprintf(d->out, ";\toffset:%u;\tsize:%u;\tsigned:%d;\n", f->offset, f->size, is_signed);
}

static void add_argument(struct draft *d, const struct pp_probe_arg *arg)
{
	char type[8];

	if (arg->is_string) {
		add_field(d, "char", arg->name, 1, PP_PROBE_STRING_SIZE, false);
		return;
	}
	snprintf(type, sizeof(type), "%c%u", arg->is_signed ? 's' : 'u', 8 * arg->size);
	add_field(d, type, arg->name, arg->size, 1, arg->is_signed);
}

static void add_fields(struct draft *d, const struct pp_source *parsed)
{
	add_field(d, "unsigned short", "common_type", 2, 1, false);
	add_field(d, "unsigned char", "common_flags", 1, 1, false);
	add_field(d, "unsigned char", "common_preempt_count", 1, 1, false);
	add_field(d, "int", "common_pid", 4, 1, true);
	fputc('\n', d->out);
	if (parsed->is_return) {
		add_field(d, "unsigned long", "__probe_func", 8, 1, false);
		add_field(d, "unsigned long", "__probe_ret_ip", 8, 1, false);
	} else {
		add_field(d, "unsigned long", "__probe_ip", 8, 1, false);
	}
	for (uint32_t i = 0; i < parsed->n_args; i++)
		add_argument(d, &parsed->args[i]);
}

static void print_argument(FILE *out, const struct pp_probe_arg *arg)
{
	/* A length for each size: a printer may not look at the field's sign. */
	static const char *const lengths[] = { [1] = "hh", [2] = "h", [4] = "", [8] = "L" };
	const char *length = arg->is_string ? "" : lengths[arg->size];

	if (arg->is_string)
		fprintf(out, " %s=\\\"%%s\\\"", arg->name);
	else if (arg->is_hex)
		fprintf(out, " %s=0x%%%sx", arg->name, length);
	else
		fprintf(out, " %s=%%%s%c", arg->name, length, arg->is_signed ? 'd' : 'u');
}

static void print_format(FILE *out, const struct pp_source *parsed)
{
	fputs(parsed->is_return ? "\nprint fmt: \"(%lx <- %lx)" : "\nprint fmt: \"(%lx)", out);
	for (uint32_t i = 0; i < parsed->n_args; i++)
		print_argument(out, &parsed->args[i]);
	fputs(parsed->is_return ? "\", REC->__probe_func, REC->__probe_ret_ip"
				: "\", REC->__probe_ip",
	      out);
	for (uint32_t i = 0; i < parsed->n_args; i++)
		fprintf(out, ", REC->%s", parsed->args[i].name);
	fputc('\n', out);
}

/* FNV-1a: the same text has the same id, so that an id found twice means the same. */
static uint32_t id_of(const char *name, const char *body)
{
	uint32_t hash = 2166136261;

	for (const char *s = name; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 16777619;
	for (const char *s = body; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 16777619;
	return ID_FIRST | (hash ^ hash >> 16) % ID_FIRST;
}

/* Event names allow no other characters. */
static void take_name(const struct pp_source *parsed, char ret[static 128])
{
	size_t i;

	for (i = 0; i < 127 && parsed->name[i]; i++)
		ret[i] = isalnum((unsigned char)parsed->name[i]) ? parsed->name[i] : '_';
	ret[i] = '\0';
	if (!i)
		strcpy(ret, "probe");
}

/* Writes the text after the ID; fills in the fields. -ENOMEM. */
static int write_body(const struct pp_source *parsed, struct tracepoint *tp, char **ret)
{
	struct draft d = { .tp = tp };
	size_t size;

	tp->fields = calloc(FIELDS_MAX, sizeof(*tp->fields));
	if (!tp->fields)
		return -ENOMEM;
	d.out = open_memstream(ret, &size);
	if (!d.out)
		return -ENOMEM;
	fputs("format:\n", d.out);
	add_fields(&d, parsed);
	print_format(d.out, parsed);
	return fclose(d.out) ? -ENOMEM : 0;
}

static bool is_size(uint32_t size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

int probe_tracepoint(const struct pp_source *parsed, struct tracepoint *ret)
{
	bool is_kprobe = parsed->kind == PP_SOURCE_KPROBE;
	_cleanup_free_ char *body = NULL;
	struct tracepoint tp = {};
	int r;

	if ((!is_kprobe && parsed->kind != PP_SOURCE_UPROBE) || parsed->n_args > PP_PROBE_ARGS_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < parsed->n_args; i++)
		if (!parsed->args[i].is_string && !is_size(parsed->args[i].size))
			return -EINVAL;
	snprintf(tp.system, sizeof(tp.system), "%s%sprobe", is_kprobe ? "k" : "u",
		 parsed->is_return ? "ret" : "");
	take_name(parsed, tp.name);
	r = write_body(parsed, &tp, &body);
	if (r >= 0) {
		tp.id = id_of(tp.name, body);
		r = asprintf(&tp.format, "name: %s\nID: %u\n%s", tp.name, tp.id, body);
	}
	if (r < 0) {
		tp.format = NULL;
		tracepoint_done(&tp);
		return -ENOMEM;
	}
	tp.format_size = (size_t)r;
	*ret = tp;
	return 0;
}
