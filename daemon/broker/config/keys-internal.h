/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What keys and the types of their values are. Shared by keys.c, key-types.c and key-events.c only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/broker/config/settings.h"

#define SECOND 1000000000ULL

struct word {
	const char *text;
	uint64_t value;
};

struct key {
	const char *name;
	const struct type *type;
	size_t offset, size;	  /* of the value's member */
	uint64_t fallback;	  /* the default */
	uint64_t min, max;	  /* for numbers and sizes */
	const struct word *words; /* the possible values; an entry without text ends them */
	uint32_t yes, no;	  /* flags that a yes and a no set */
};

struct type {
	void (*take)(struct settings *s, const struct key *k, const char *value, void *into);
	void (*print)(FILE *f, const struct key *k, const void *from); /* NULL: never written */
	bool is_text;						       /* not a number */
};

/* The value of a key that is a number. */
uint64_t key_get(const struct key *k, const void *from);
void key_put(const struct key *k, void *into, uint64_t value);

extern const struct word key_yes_no[];

/* Numbers, sizes, words, users. */
extern const struct type key_number, key_size, key_memory, key_rate, key_duration, key_mode,
	key_word, key_flag, key_user, key_group, key_user_name, key_group_name;

/* What an event or trigger is, of a struct dropin_draft. */
extern const struct type key_until, key_pair, key_sustained, key_events, key_filter, key_cpus,
	key_cgroup, key_after, key_targets, key_period, key_checkpoint, key_chains;
