/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tables that columns point into: repeated texts, and tasks. A task is a thread with one name. */
#pragma once

#include "client/perfctl/pictures/hash.h"
#include "client/perfctl/pictures/html-block.h"

/* Texts, each stored once, one behind the other; by number. */
struct texts {
	struct bytes bytes;
	size_t *ends; /* of each, in bytes; a newline follows */
	size_t n, cap;
	struct hash hash;
};

int texts_number(struct texts *t, const char *text, size_t n, uint32_t *ret); /* -ENOMEM */
const char *texts_at(const struct texts *t, size_t i, size_t *ret_size);
void texts_clear(struct texts *t);
void texts_done(struct texts *t);

struct task {
	uint32_t pid, tid, comm; /* comm: of texts */
	bool guessed;		 /* pid is unknown: a thread that only a switch named */
};

struct tasks {
	struct task *all;
	size_t n, cap;
	struct hash hash; /* of tid and comm */
};

/* pid NULL: unknown; the task keeps its pid, or gets it once it is known. -ENOMEM. */
int tasks_number(struct tasks *t, const uint32_t *pid, uint32_t tid, uint32_t comm, uint32_t *ret);
void tasks_done(struct tasks *t);
