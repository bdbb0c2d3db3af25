// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * User static probes: their notes in .note.stapsdt, and the arguments in a note, in the assembler's
 * syntax: -4@%edi, 8@16(%rsp), 4@$5; on arm64 8@x0, 8@[sp, 16], 4@5. Owns both; must not know the
 * event text. The notes are untrusted.
 */
#include <errno.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>

#include "daemon/broker/syntax/spec-internal.h"
#include "daemon/text.h"

#define NOTES_MAX (16U << 20) /* bytes of all notes of a file */
#define NOTE_TYPE 3	      /* the only kind of note */

/* ── Arguments ──────────────────────────────────────────────────────────────────────────── */

/* Parses a decimal number with or without a sign at *text, and moves *text behind it. */
static bool take_number(const char **text, int64_t *ret)
{
	char digits[24];
	const char *s = *text;
	bool negative = *s == '-';
	uint64_t value;
	size_t n;

	s += negative;
	n = strspn(s, "0123456789xabcdefABCDEF");
	if (n >= sizeof(digits))
		return false;
	snprintf(digits, sizeof(digits), "%.*s", (int)n, s);
	if (pp_parse_u64(digits, &value) < 0)
		return false;
	*ret = (int64_t)(negative ? -value : value);
	*text = s + n;
	return true;
}

static bool set_register(const char *name, size_t n, struct pp_probe_arg *arg)
{
	char text[16];
	int word;

	if (n >= sizeof(text))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)n, name);
	word = spec_register_part(text);
	if (word < 0)
		return false;
	arg->place = PP_PROBE_REGISTER;
	arg->number = word;
	return true;
}

static bool set_dereference(int64_t offset, struct pp_probe_arg *arg)
{
	if (offset < INT32_MIN || offset > INT32_MAX)
		return false;
	arg->dereferences = 1;
	arg->offsets[0] = offset;
	return true;
}

static bool set_constant(const char *s, struct pp_probe_arg *arg)
{
	arg->place = PP_PROBE_CONSTANT;
	return take_number(&s, &arg->value) && !*s;
}

#if defined(__x86_64__)

/* %REG, OFFSET(%REG), $NUMBER. False for a place computed from two registers or a symbol. */
static bool parse_operand(const char *s, struct pp_probe_arg *arg)
{
	int64_t offset = 0;
	size_t n;

	if (*s == '$')
		return set_constant(s + 1, arg);
	if (*s == '%')
		return set_register(s + 1, strlen(s + 1), arg);
	if (*s != '(' && !take_number(&s, &offset))
		return false;
	if (s[0] != '(' || s[1] != '%')
		return false;
	s += 2;
	n = strcspn(s, ")");
	return !strcmp(s + n, ")") && set_register(s, n, arg) && set_dereference(offset, arg);
}

#elif defined(__aarch64__)

/* REG, [REG], [REG, OFFSET], NUMBER. */
static bool parse_operand(const char *s, struct pp_probe_arg *arg)
{
	int64_t offset = 0;
	size_t n;

	if (*s == '-' || (*s >= '0' && *s <= '9'))
		return set_constant(s, arg);
	if (*s != '[')
		return set_register(s, strlen(s), arg);
	n = strcspn(++s, ",]");
	if (!set_register(s, n, arg))
		return false;
	s += n;
	if (*s == ',') {
		s += 1 + strspn(s + 1, " ");
		if (!take_number(&s, &offset))
			return false;
	}
	return !strcmp(s, "]") && set_dereference(offset, arg);
}

#endif

/* SIZE@OPERAND; the size is negative for a signed argument; without a size it is a word. */
static bool parse_arg(const char *text, struct pp_probe_arg *arg)
{
	const char *at = strchr(text, '@');
	int64_t size = 8;

	if (at && (!take_number(&text, &size) || text != at))
		return false;
	if (size != 1 && size != 2 && size != 4 && size != 8 && size != -1 && size != -2 &&
	    size != -4 && size != -8)
		return false;
	arg->size = size < 0 ? -size : size;
	arg->is_signed = size < 0;
	arg->is_hex = size == 8;
	return parse_operand(at ? at + 1 : text, arg);
}

/* Bytes of the first argument; a part in brackets is not split. */
static size_t arg_length(const char *s)
{
	size_t n = 0;

	for (bool inside = false; s[n] && (s[n] != ' ' || inside); n++) {
		inside |= s[n] == '[';
		inside &= s[n] != ']';
	}
	return n;
}

/* An argument with an unsupported place (computed from two registers) is skipped; others keep their
 * numbers. */
void spec_usdt_args(const char *text, struct pp_source *source)
{
	char word[64];

	for (int number = 1; *text && source->n_args < PP_PROBE_ARGS_MAX; number++) {
		struct pp_probe_arg arg = { 0 };
		size_t n;

		text += strspn(text, " ");
		n = arg_length(text);
		if (n == 0)
			break;
		snprintf(word, sizeof(word), "%.*s", (int)MIN(n, sizeof(word) - 1), text);
		snprintf(arg.name, sizeof(arg.name), "arg%d", number);
		if (n < sizeof(word) && parse_arg(word, &arg))
			source->args[source->n_args++] = arg;
		text += n;
	}
}

/* ── Notes ──────────────────────────────────────────────────────────────────────────────── */

struct note {
	uint64_t address, base, semaphore;
	const char *provider, *name, *args;
};

/* The string at *at, which moves behind it; NULL if it has no end. */
static const char *take_string(const char **at, const char *end)
{
	const char *s = *at;
	size_t n = strnlen(s, end - s);

	if (s + n == end)
		return NULL;
	*at = s + n + 1;
	return s;
}

static bool parse_note(const char *owner, size_t owner_size, const char *desc, size_t size,
		       struct note *ret)
{
	const char *at = desc + 3 * sizeof(uint64_t), *end = desc + size;

	if (owner_size != sizeof("stapsdt") || memcmp(owner, "stapsdt", owner_size) ||
	    size < 3 * sizeof(uint64_t))
		return false;
	memcpy(&ret->address, desc, sizeof(uint64_t));
	memcpy(&ret->base, desc + 8, sizeof(uint64_t));
	memcpy(&ret->semaphore, desc + 16, sizeof(uint64_t));
	ret->provider = take_string(&at, end);
	ret->name = ret->provider ? take_string(&at, end) : NULL;
	ret->args = ret->name ? take_string(&at, end) : NULL;
	return ret->args != NULL;
}

/* The next note at *offset, which moves behind it; false at the end. */
static bool next_note(Elf_Data *notes, size_t *offset, struct note *ret)
{
	size_t next, name, desc;
	GElf_Nhdr header;

	while (*offset < notes->d_size &&
	       (next = gelf_getnote(notes, *offset, &header, &name, &desc)) > 0) {
		const char *bytes = notes->d_buf;

		*offset = next;
		if (header.n_type == NOTE_TYPE &&
		    parse_note(bytes + name, header.n_namesz, bytes + desc, header.n_descsz, ret))
			return true;
	}
	return false;
}

/* The present address of .stapsdt.base; a note holds the one from when it was written. 0: none. */
static uint64_t base_address(Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return 0;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *name =
			gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;

		if (name && !strcmp(name, ".stapsdt.base"))
			return shdr.sh_addr;
	}
	return 0;
}

static int take_place(struct spec_parser *p, struct spec_elf *f, const struct note *n,
		      uint64_t base, struct spec_usdt *ret)
{
	uint64_t moved = base && n->base ? base - n->base : 0;
	uint64_t address = n->address + moved, semaphore = n->semaphore + moved;
	struct spec_usdt u = { 0 };

	if (spec_elf_offset(f, address, true, &u.offset) < 0)
		return spec_refuse(
			p, -EINVAL,
			"the probe of '%s' is at 0x%llx, where %s has no code: its notes "
			"are damaged",
			p->quote, (unsigned long long)address, f->path);
	if (n->semaphore && spec_elf_offset(f, semaphore, false, &u.semaphore) < 0)
		return spec_refuse(p, -EINVAL,
				   "the probe of '%s' counts its users at 0x%llx, where %s has no "
				   "data: its notes are damaged",
				   p->quote, (unsigned long long)semaphore, f->path);
	snprintf(u.args, sizeof(u.args), "%.*s", (int)sizeof(u.args) - 1, n->args);
	*ret = u;
	return 0;
}

/* Shows an untrusted name: only printable characters, and few. */
static size_t append_name(char *buf, size_t size, size_t len, const struct note *n)
{
	char text[100];
	size_t end;

	snprintf(text, sizeof(text), "%s%.40s:%.40s", len ? ", " : "", n->provider, n->name);
	for (char *c = text; *c; c++)
		if (*c < 0x20 || *c > 0x7e)
			*c = '?';
	end = len + strlen(text);
	if (end >= size || strstr(buf, text + (len ? 2 : 0)))
		return len;
	memcpy(buf + len, text, strlen(text) + 1);
	return end;
}

static int refuse_none(struct spec_parser *p, struct spec_elf *f, Elf_Data *notes)
{
	char known[300] = "";
	size_t offset = 0, len = 0;
	struct note n;

	while (notes && next_note(notes, &offset, &n))
		len = append_name(known, sizeof(known), len, &n);
	return spec_refuse(p, -ENOENT, "'%s' is no static probe that %s has: it has %s", p->quote,
			   f->path, len ? known : "none");
}

int spec_elf_usdt(struct spec_parser *p, struct spec_elf *f, const char *provider, const char *name,
		  struct spec_usdt *ret, size_t cap)
{
	Elf_Data *notes = spec_elf_section(f->elf, ".note.stapsdt", NOTES_MAX);
	uint64_t base = base_address(f->elf);
	const char *first = provider;
	size_t offset = 0, n = 0;
	struct note note;

	while (notes && next_note(notes, &offset, &note)) {
		int r;

		if (strcmp(note.name, name) || (provider && strcmp(note.provider, provider)))
			continue;
		if (!first)
			first = note.provider;
		if (strcmp(note.provider, first))
			return spec_refuse(p, -EINVAL,
					   "'%s' is a probe of several providers: write "
					   "usdt:PATH:PROVIDER:NAME",
					   p->quote);
		if (n == cap)
			return spec_refuse(p, -E2BIG,
					   "'%s' is in more places than fit: one name has at most "
					   "%d places, events and globs",
					   p->quote, PP_TERMS_MAX);
		r = take_place(p, f, &note, base, &ret[n]);
		if (r < 0)
			return r;
		n++;
	}
	return n ? (int)n : refuse_none(p, f, notes);
}
