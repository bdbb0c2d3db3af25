/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Options as tables. A row describes one option for the parser (options.c), the help (help.c) and
 * completion (completion/). A table fills one struct; a verb has a table for each part of its own
 * struct.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct call;
struct verb;

/* The kinds of option values and operands; completion/candidates.c finds candidates for each. */
enum completes {
	COMPLETE_NOTHING, /* as an operand: not allowed */
	COMPLETE_WORDS,	  /* the row's words */
	COMPLETE_FILE,
	COMPLETE_DIRECTORY,
	COMPLETE_VERB,
	COMPLETE_PART,	    /* of the verb */
	COMPLETE_NAME,	    /* of an event */
	COMPLETE_TRIGGER,   /* likewise, of a trigger */
	COMPLETE_NAMESPACE, /* as an operand: one or none */
	COMPLETE_NAMES,	    /* NAME or NAMESPACE/ */
	COMPLETE_NEW_NAME,
	COMPLETE_ID,
	COMPLETE_EVENT, /* in perf's syntax */
	COMPLETE_CPUS,
	COMPLETE_CGROUP,
	COMPLETE_INSTANCE,
	COMPLETE_SAVE,
	COMPLETE_SNAPSHOT,
	COMPLETE_CRASHED, /* the process id of a snapshot */
	COMPLETE_PIDS,
	COMPLETE_TASK,
	COMPLETE_PRESET, /* and, for some, a unit of systemd */
};

struct verb_option;

/* An option on the command line. */
struct given {
	struct call *call;
	const struct verb_option *option;
	const char *value; /* NULL: none */
	void *to;	   /* the member at the row's `to` */
};

struct verb_option {
	char letter;	      /* 0: none */
	const char *name;     /* of --name; NULL: it has only a letter */
	const char *argument; /* in the help; "[WHEN]": optional; NULL: none */
	const char *help;
	/* 0: go on; > 0: the exit code, the error is printed; < 0: done, exit code 0. */
	int (*take)(const struct given *g);
	size_t to; /* offset into the table's struct */

	/* for the takers below */
	int (*parse)(const char *text, uint64_t *ret);
	uint64_t min, max;   /* max 0: no maximum */
	uint32_t bits;	     /* for TAKE_BITS */
	const char *refusal; /* of invalid values: "not a time such as 10s" */
	const char *if_none; /* the value if none is given */

	enum completes completes;
	const char *words; /* "mono real relative" */
	bool next_word;	   /* an optional value that begins with one of them may stand apart, too */
	enum completes operands; /* of the verb, after this option; 0: unchanged */
};

struct option_table {
	const struct verb_option *rows; /* ended by one without `take` */
	size_t at;			/* offset of its struct in the verb's */
	const char *title;		/* in the help; NULL: none */
};

/* The offset of member m in struct s; m must have that type. */
#define MEMBER(s, m, type) (offsetof(s, m) + 0 * sizeof((type *)NULL == &((s *)NULL)->m))

#define TAKE_FLAG(s, m) .take = take_flag, .to = MEMBER(s, m, bool)
#define TAKE_BITS(s, m, b) .take = take_bits, .to = MEMBER(s, m, uint32_t), .bits = (b)
#define TAKE_TEXT(s, m) .take = take_text, .to = MEMBER(s, m, const char *)
/* A number that `parser` reads. */
#define TAKE_VALUE(s, m, parser, text) \
	.take = take_value, .to = MEMBER(s, m, uint64_t), .parse = (parser), .refusal = (text)
#define TAKE_NUMBER(s, m, text) TAKE_VALUE(s, m, parse_number, text)
/* The index of the value among the row's words, counted from `min`. */
#define TAKE_CHOICE(s, m, text)                                               \
	.take = take_choice, .to = MEMBER(s, m, unsigned), .refusal = (text), \
	.completes = COMPLETE_WORDS

/* Texts that several verbs' rows share. */
#define NOT_A_RATE "not a number of records a second"
#define RATES "100/s 1000/s 10000/s"
#define FREQUENCIES "99 999 4000"
#define NOT_AN_INTERVAL "not a time in whole seconds, of one hour at most"
#define INTERVALS "1s 5s 30s"
#define NOT_A_BUFFER_SIZE "neither a number of pages nor a size such as 512K"
#define BUFFER_SIZES "64K 512K 1M 4M 16M 64M"

/* ── take.c ── */

int take_flag(const struct given *g);
int take_bits(const struct given *g);
int take_text(const struct given *g);
int take_value(const struct given *g);
int take_choice(const struct given *g);
int take_namespace(const struct given *g); /* as text */

/* Reports an invalid value and why; returns EXIT_USAGE. why NULL: the row's refusal. */
int refuse(const struct given *g, const char *why);

/* --id, for verbs that take one event by its id. */
struct event_id {
	bool given;
	uint64_t id;
};
extern const struct verb_option event_id_options[];

/* ── options.c ── */

#define OPTIONS_MAX 48

/* All options after a verb: first the global ones, then the verb's (verb NULL: none). */
struct option_list {
	const struct verb_option *rows[OPTIONS_MAX];
	size_t offsets[OPTIONS_MAX]; /* into struct call or the verb's struct */
	size_t n, n_global;
};

extern const struct verb_option global_options[]; /* for struct call */
void option_list_make(struct option_list *list, const struct verb *verb);

/* For main: takes the global options before the verb. False: exit with call->code. Else *ret is
 * the index of the verb in argv, or argc if there is none. */
bool options_global(struct call *call, int argc, char **argv, int *ret);

/* For verbs: takes all options into the verb's struct, and the operands into call. False: exit with
 * call->code. */
bool options_read(struct call *call, void *into);
void options_done(struct call *call);

/* ── help.c ── */

void print_help(const struct verb *verb, FILE *f); /* NULL: of perfctl itself */
