/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How many bytes may be written: so many a second, on average over ten seconds, of which users other
 * than root get half. Knows neither events nor files.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a write costs at least, however few bytes it has: it makes a disk seek and sync. */
#define BUDGET_WRITE 65536U

struct budget {
	struct budget_part {
		uint64_t rate;	  /* bytes a second */
		uint64_t allowed; /* bytes that may be written now */
	} all, others;
	uint64_t counted; /* CLOCK_MONOTONIC, ns: up to when these have been added up */
};

/* rate: bytes a second. now, here and below: CLOCK_MONOTONIC, ns. */
void budget_init(struct budget *b, uint64_t rate, uint64_t now);
void budget_refill(struct budget *b, uint64_t now);

/* Bytes that root, or all others together, may write now. */
uint64_t budget_allowed(const struct budget *b, bool of_root);

/* The same, for one of n writes that are due: equal parts, but each at least what a write costs. */
uint64_t budget_share(const struct budget *b, bool of_root, uint64_t n);

/* When there is enough for a write; in the past: now. */
uint64_t budget_ready(const struct budget *b, bool of_root);

void budget_spend(struct budget *b, bool of_root, uint64_t bytes);
