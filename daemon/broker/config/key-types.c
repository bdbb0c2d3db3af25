// SPDX-License-Identifier: LGPL-2.1-or-later
/* The types of values: numbers, sizes, words, users. See keys.h. */
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/config/config-value.h"
#include "daemon/broker/config/keys-internal.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/protocol.h"

uint64_t key_get(const struct key *k, const void *from)
{
	const void *field = (const char *)from + k->offset;

	if (k->size == sizeof(bool))
		return *(const bool *)field;
	return k->size == sizeof(uint32_t) ? *(const uint32_t *)field : *(const uint64_t *)field;
}

void key_put(const struct key *k, void *into, uint64_t value)
{
	void *field = (char *)into + k->offset;

	if (k->size == sizeof(bool))
		*(bool *)field = value;
	else if (k->size == sizeof(uint32_t))
		*(uint32_t *)field = value;
	else
		*(uint64_t *)field = value;
}

/* ── numbers and sizes ──────────────────────────────────────────────────────────────────── */

static void take_number(struct settings *s, const struct key *k, const char *value, void *into)
{
	uint64_t number;

	if (pp_parse_u64(value, &number) < 0 || number < 1 || number > k->max)
		settings_complain(s, "%s= must be a number from 1 to %" PRIu64 ", and '%s' is not.",
				  k->name, k->max, value);
	else
		key_put(k, into, number);
}

static void print_number(FILE *f, const struct key *k, const void *from)
{
	fprintf(f, "%s=%" PRIu64 "\n", k->name, key_get(k, from));
}

const struct type key_number = { .take = take_number, .print = print_number };

/* As people write sizes: 256M. */
static void format_size(uint64_t size, char buf[32])
{
	static const char *const units[] = { "", "K", "M", "G" };
	size_t unit = 0;

	for (; unit < ARRAY_SIZE(units) - 1 && size && size % 1024 == 0; unit++)
		size /= 1024;
	snprintf(buf, 32, "%" PRIu64 "%s", size, units[unit]);
}

static void take_size(struct settings *s, const struct key *k, const char *value, void *into)
{
	char min[32], max[32];
	uint64_t size;

	if (config_parse_size(value, &size) == 0 && size >= k->min && size <= k->max) {
		key_put(k, into, size);
		return;
	}
	format_size(k->min, min);
	format_size(k->max, max);
	settings_complain(s, "%s= must be a size from %s to %s, and '%s' is not.", k->name, min,
			  max, value);
}

const struct type key_size = { .take = take_size, .print = print_number };

static void take_memory(struct settings *s, const struct key *k, const char *value, void *into)
{
	uint64_t bytes;

	if (config_parse_share(value, config_machine_memory(), &bytes) < 0 || bytes < 1)
		settings_complain(s,
				  "%s= must be a size such as 512M, or a part of this machine's "
				  "memory such as 10%%, and '%s' is neither.",
				  k->name, value);
	else
		key_put(k, into, bytes);
}

const struct type key_memory = { .take = take_memory, .print = print_number };

static void take_rate(struct settings *s, const struct key *k, const char *value, void *into)
{
	size_t n = strlen(value);
	char digits[32];
	uint64_t rate;

	if (n > 2 && strcmp(value + n - 2, "/s") == 0)
		n -= 2;
	snprintf(digits, sizeof(digits), "%.*s", (int)n, value);
	if (n >= sizeof(digits) || pp_parse_u64(digits, &rate) < 0)
		settings_complain(s,
				  "%s= must be records a second, such as 1000/s, or 0 for no "
				  "limit, and '%s' is neither.",
				  k->name, value);
	else
		key_put(k, into, rate);
}

static void print_rate(FILE *f, const struct key *k, const void *from)
{
	fprintf(f, "%s=%" PRIu64 "/s\n", k->name, key_get(k, from));
}

const struct type key_rate = { .take = take_rate, .print = print_rate };

static void take_duration(struct settings *s, const struct key *k, const char *value, void *into)
{
	uint64_t nsec;

	if (config_parse_duration(value, &nsec) < 0 || nsec < k->min)
		settings_complain(s,
				  "%s= must be a time such as 10s or 500ms, of %g ms at least, and "
				  "'%s' is not.",
				  k->name, (double)k->min / 1e6, value);
	else
		key_put(k, into, nsec);
}

/* Only triggers have such, which no file of --boot has. */
const struct type key_duration = { .take = take_duration };

static void take_mode(struct settings *s, const struct key *k, const char *value, void *into)
{
	uint32_t mode;

	if (config_parse_mode(value, &mode) < 0)
		settings_complain(s,
				  "%s= must be octal as for a file, 0640 or the like, and '%s' is "
				  "not.",
				  k->name, value);
	else
		key_put(k, into, mode);
}

static void print_mode(FILE *f, const struct key *k, const void *from)
{
	fprintf(f, "%s=%04o\n", k->name, (unsigned)key_get(k, from));
}

const struct type key_mode = { .take = take_mode, .print = print_mode };

/* ── words ──────────────────────────────────────────────────────────────────────────────── */

const struct word key_yes_no[] = { { "yes", true }, { "no", false }, { 0 } };

/* The word, or NULL (reported). */
static const struct word *find_word(struct settings *s, const struct key *k,
				    const struct word *words, const char *value)
{
	char list[128] = "";
	const struct word *w;

	for (w = words; w->text; w++) {
		if (strcmp(w->text, value) == 0)
			return w;
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			 w == words ? "" : (w[1].text ? ", " : " or "), w->text);
	}
	settings_complain(s, "%s= must be %s, and '%s' is %s.", k->name, list, value,
			  w - words == 2 ? "neither" : "none of them");
	return NULL;
}

static void take_word(struct settings *s, const struct key *k, const char *value, void *into)
{
	const struct word *w = find_word(s, k, k->words, value);

	if (w)
		key_put(k, into, w->value);
}

static void print_word(FILE *f, const struct key *k, const void *from)
{
	for (const struct word *w = k->words; w->text; w++)
		if (w->value == key_get(k, from))
			fprintf(f, "%s=%s\n", k->name, w->text);
}

const struct type key_word = { .take = take_word, .print = print_word };

static void take_flag(struct settings *s, const struct key *k, const char *value, void *into)
{
	const struct word *w = find_word(s, k, key_yes_no, value);

	if (w)
		key_put(k, into,
			(key_get(k, into) & ~(k->yes | k->no)) | (w->value ? k->yes : k->no));
}

static void print_flag(FILE *f, const struct key *k, const void *from)
{
	if (key_get(k, from) & (k->yes | k->no))
		fprintf(f, "%s=%s\n", k->name, key_get(k, from) & k->yes ? "yes" : "no");
}

const struct type key_flag = { .take = take_flag, .print = print_flag };

/* ── users and groups ───────────────────────────────────────────────────────────────────── */

static bool find_user(struct settings *s, const struct key *k, const char *value, uid_t *ret)
{
	if (config_find_user(value, ret, NULL) == 0)
		return true;
	settings_complain(s,
			  "%s=%s: there is no such user; name one that is there, or give a "
			  "numeric uid.",
			  k->name, value);
	return false;
}

static bool find_group(struct settings *s, const struct key *k, const char *value, gid_t *ret)
{
	if (config_find_group(value, ret) == 0)
		return true;
	settings_complain(s,
			  "%s=%s: there is no such group; name one that is there, or give a "
			  "numeric gid.",
			  k->name, value);
	return false;
}

static void take_uid(struct settings *s, const struct key *k, const char *value, void *into)
{
	uid_t uid;

	if (find_user(s, k, value, &uid))
		key_put(k, into, uid);
}

static void take_gid(struct settings *s, const struct key *k, const char *value, void *into)
{
	gid_t gid;

	if (find_group(s, k, value, &gid))
		key_put(k, into, gid);
}

const struct type key_user = { .take = take_uid, .print = print_number };
const struct type key_group = { .take = take_gid, .print = print_number };

/* A name that is resolved at the start. */
static void take_name(struct settings *s, const struct key *k, const char *value, void *into)
{
	char **field = (char **)((char *)into + k->offset), *copy = strdup(value);

	if (!copy) {
		s->error = -ENOMEM;
		return;
	}
	free(*field);
	*field = copy;
}

static void take_user_name(struct settings *s, const struct key *k, const char *value, void *into)
{
	uid_t uid;

	if (!find_user(s, k, value, &uid))
		return;
	if (uid == 0)
		settings_complain(s,
				  "%s=%s: the broker must not be root; name an ordinary user of "
				  "its own.",
				  k->name, value);
	else
		take_name(s, k, value, into);
}

static void take_group_name(struct settings *s, const struct key *k, const char *value, void *into)
{
	gid_t gid;

	if (find_group(s, k, value, &gid))
		take_name(s, k, value, into);
}

const struct type key_user_name = { .take = take_user_name, .is_text = true };
const struct type key_group_name = { .take = take_group_name, .is_text = true };
