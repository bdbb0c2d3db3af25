// SPDX-License-Identifier: LGPL-2.1-or-later
/* Conditions of triggers. See condition.h. Must not know fields: only the engine does. */
#include "daemon/broker/syntax/condition.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/syntax/spec.h"
#include "daemon/text.h"
#include "proto/macro.h"

static int refuse(int error, char *sentence, size_t size, const char *fmt, ...) _printf_(4, 5);
static int refuse(int error, char *sentence, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, size, fmt, ap);
	va_end(ap);
	return error;
}

/* ── keys ───────────────────────────────────────────────────────────────────────────────── */

static bool is_field(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return n > 0 && n < PP_KEY_FIELD_SIZE;
}

int condition_parse_key(const char *text, struct pp_condition *c, char *sentence, size_t size)
{
	size_t first = strcspn(text, ",");
	const char *second = text[first] ? text + first + 1 : text;
	size_t n = strlen(text[first] ? second : "") ?: first;

	if (!is_field(text, first) || !is_field(second, n))
		return refuse(
			-EINVAL, sentence, size,
			"'%.64s' is no key; give a field that both events have, or one of each "
			"with a comma between: pid,next_pid.",
			text);
	memset(c->key, 0, sizeof(c->key));
	memcpy(c->key[0], text, first);
	memcpy(c->key[1], second, n);
	return 0;
}

void condition_print_key(const struct pp_condition *c, char buf[PP_KEY_SIZE])
{
	memset(buf, 0, PP_KEY_SIZE);
	if (!strcmp(c->key[0], c->key[1]))
		snprintf(buf, PP_KEY_SIZE, "%s", c->key[0]);
	else
		snprintf(buf, PP_KEY_SIZE, "%s,%s", c->key[0], c->key[1]);
}

/* ── rates ──────────────────────────────────────────────────────────────────────────────── */

static const struct {
	const char *name;
	uint32_t seconds;
} units[] = { { "s", 1 }, { "", 1 }, { "m", 60 }, { "min", 60 }, { "h", 3600 } };

/* A number at *text, which goes behind it. */
static bool take_number(const char **text, uint64_t max, uint64_t *ret)
{
	size_t n = strspn(*text, "0123456789");
	char digits[24];

	if (n == 0 || n >= sizeof(digits))
		return false;
	memcpy(digits, *text, n);
	digits[n] = 0;
	*text += n;
	return pp_parse_u64(digits, ret) == 0 && *ret <= max;
}

static bool take_word(const char **text, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*text, word, n) != 0)
		return false;
	*text += n;
	return true;
}

static bool take_seconds(const char **text, uint32_t *ret)
{
	uint64_t n;

	if (!take_number(text, PP_RATE_SECONDS_MAX, &n))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(*text, units[i].name)) {
			n *= units[i].seconds;
			*ret = (uint32_t)n;
			return n > 0 && n <= PP_RATE_SECONDS_MAX;
		}
	return false;
}

int condition_parse_rate(const char *text, struct pp_condition *c, char *sentence, size_t size)
{
	const char *at = text;
	uint32_t seconds;
	uint64_t rate;

	if (take_word(&at, "under "))
		return refuse(
			-EOPNOTSUPP, sentence, size,
			"'%.64s': a trigger fires when its event happens, and so not because it "
			"happens no more; give 'over N/s for TIME', or let --until and --longer-than "
			"wait for it.",
			text);
	if (!take_word(&at, "over ") || !take_number(&at, UINT32_MAX - 1, &rate) ||
	    !take_word(&at, "/s for ") || !take_seconds(&at, &seconds))
		return refuse(
			-EINVAL, sentence, size,
			"'%.64s' is no rate; write 'over 1000/s for 5s', with whole numbers and "
			"at most an hour.",
			text);
	c->rate = rate;
	c->seconds = seconds;
	return 0;
}

void condition_print_rate(const struct pp_condition *c, char buf[PP_RATE_SIZE])
{
	memset(buf, 0, PP_RATE_SIZE);
	if (c->seconds)
		snprintf(buf, PP_RATE_SIZE, "over %" PRIu64 "/s for %us", (uint64_t)c->rate,
			 c->seconds);
}

/* ── all of it ──────────────────────────────────────────────────────────────────────────── */

static int check_parts(const struct pp_condition *c, const struct pp_msg_create_request *request,
		       bool until, char *sentence, size_t size)
{
	if (until && c->seconds)
		return refuse(
			-EINVAL, sentence, size,
			"A trigger has a rate or an event that ends what another begins, and not "
			"both; make two triggers.");
	if (!until && (*c->key[0] || c->longer_than))
		return refuse(
			-EINVAL, sentence, size,
			"A key and a time are for two events; name the one that ends what the "
			"other begins (--until, Until=).");
	if (until && (!*c->key[0] || !c->longer_than))
		return refuse(
			-EINVAL, sentence, size,
			"Of two events the key that they have in common (--key, Key=) and the time "
			"between them (--longer-than, LongerThan=) must be given.");
	if (until && request->count < 2)
		return refuse(
			-EINVAL, sentence, size,
			"What the event '%s' would end is missing; name what begins (--on, On=).",
			request->count ? request->selections[0].event : "");
	if ((until || c->seconds) && request->cpus[0])
		return refuse(
			-EINVAL, sentence, size,
			"A trigger with a rate or with two events watches all CPUs; leave the CPUs "
			"out.");
	return 0;
}

/* The number of terms in a selection, which can be parsed. */
static int count_terms(const struct pp_msg_selection *s, char *sentence, size_t size)
{
	_cleanup_free_ struct pp_source *terms = calloc(PP_TERMS_MAX, sizeof(*terms));

	if (!terms)
		return refuse(-ENOMEM, sentence, size, "The daemon has no memory for this.");
	return pp_spec_parse(s->event, terms, PP_TERMS_MAX, sentence, size);
}

/* The event's text has the selections with commas between. */
static int place_pair(struct pp_condition *c, const struct pp_msg_create_request *request,
		      char *sentence, size_t size)
{
	int n = 0;

	c->n_on = c->until_at = 0;
	for (uint32_t i = 0; n >= 0 && i + 1 < request->count; i++) {
		n = count_terms(&request->selections[i], sentence, size);
		c->n_on += (uint32_t)MAX(n, 0);
		c->until_at += (uint32_t)strlen(request->selections[i].event) + 1;
	}
	return MIN(n, 0);
}

int condition_settle(struct pp_condition *c, const struct pp_msg_create_request *request,
		     bool until, char *sentence, size_t size)
{
	int r = check_parts(c, request, until, sentence, size);

	if (r < 0)
		return r;
	c->kind = until ? PP_CONDITION_PAIR : c->seconds ? PP_CONDITION_RATE : PP_CONDITION_NONE;
	return until ? place_pair(c, request, sentence, size) : 0;
}
