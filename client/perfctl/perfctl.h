/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shared by all parts of perfctl: verbs, the parsed command line, exit codes and error messages.
 * perfctl uses the project's rings and daemon only through the public library.
 */
#pragma once

#include "client/perfctl/options.h"
#include "client/perfpersist.h"
#include "proto/macro.h"

/* Exit codes; --help and perfctl(1) document them, scripts rely on them. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_NOT_FOUND = 3,
	EXIT_NOT_ALLOWED = 4,
	EXIT_NO_DAEMON = 5,
	EXIT_NAME_TAKEN = 6,
};

struct verb {
	const char *name;
	const char *letter;		/* "-l": perf's letter for the verb; or NULL */
	const char *synopsis;		/* what follows the name */
	const char *summary;		/* one line */
	const char *help;		/* text below the options, and examples */
	int (*run)(struct call *call);	/* returns an exit code */
	struct option_table options[7]; /* ended by an empty one */
	enum completes operands;	/* their kind */
	bool one_operand;		/* at most one */
	bool reads_saves;		/* works with --saved */
	bool runs_command;		/* after "--" */
	/* "trigger add", …: the first word is one of them; ended by NULL. */
	const struct verb *const *parts;
};

extern const struct verb verb_create, verb_list, verb_reopen, verb_delete, verb_show, verb_change,
	verb_pause, verb_resume, verb_save, verb_snapshot, verb_record, verb_stat, verb_top,
	verb_watch, verb_trigger, verb_snapshots, verb_coredump, verb_checkpoint, verb_limits,
	verb_preset, verb_reload, verb_script, verb_report, verb_ping, verb_events, verb_incident,
	verb_adopt, verb_claim, verb_help;

/* A command line: the part that main parses, then the part that the verb parses. */
struct call {
	const struct verb *verb;
	int argc; /* from the verb on */
	char **argv;
	struct perfpersist_options connect;
	bool json;
	char **operands;
	size_t n_operands;
	char **command; /* what follows "--", ended by NULL; NULL if there is no "--" */
	/* set by takers: the first operand begins a command, as with perf */
	bool command_follows;
	int code; /* the exit code when options_read() returns false */
};

/* ── main.c ── */

extern const struct verb *const verbs[]; /* ended by NULL */
const struct verb *find_verb(const char *name);

/* Complains of a word that is no verb. Returns EXIT_USAGE. */
int unknown_verb(const struct call *call, const char *word);

/* The part of a verb that this word names; NULL: none. */
const struct verb *find_part(const struct verb *verb, const char *word);

/* Its name without the verb's. */
const char *part_name(const struct verb *part);

/* Prints an error message on stderr, as one line. */
void complain(const char *fmt, ...) _printf_(1, 2);

/* The same for a bad command line, with a reference to the verb's help. Returns EXIT_USAGE. */
int bad_usage(const struct call *call, const char *fmt, ...) _printf_(2, 3);

/* Connects as the global options say. Returns an exit code; has complained if not EXIT_OK. */
int call_connect(struct call *call, struct perfpersist **ret);

/* Reports the last failure on p. Returns the exit code for it. */
int call_failed(struct perfpersist *p, int error);

/* The same with a message of its own. */
int call_failed_as(int error, const char *fmt, ...) _printf_(2, 3);

/* For a word that is not one of a few: complains with the nearest of them, or with a reference to the
 * help. Returns EXIT_USAGE. */
int unknown_word(const struct call *call, const char *what, const char *word, const char *nearest);

static inline void cleanup_perfpersist(struct perfpersist **p)
{
	perfpersist_free(*p);
}

static inline void cleanup_event(struct perfpersist_event **e)
{
	perfpersist_event_free(*e);
}

/* ── parse.c; outputs are untouched on failure ── */

struct event_name {
	char ns[64], name[64];
};

/* "NAME" or "NAMESPACE/NAME". ns: the namespace of a bare NAME; NULL: `default`. 0 or -EINVAL. */
int parse_event_name(const char *text, const char *ns, struct event_name *ret);

/* Also takes "NAMESPACE/", which means all of it: the name is then empty. */
int parse_events_name(const char *text, struct event_name *ret);
bool name_is_valid(const char *name);

#define PERSISTENT_HINT "write persistent/NAMESPACE/ or persistent/NAMESPACE/NAME/"

/* perf's text for existing events, as the hint has it; *ret is the operand for them, the caller's, or NULL if the
 * text means another event. 0, -EINVAL, -ENOMEM. */
int parse_persistent(const char *text, char **ret);

/* Decimal, nothing else. 0, -EINVAL, -ERANGE. */
int parse_number(const char *text, uint64_t *ret);

/* perf's -m: pages, or a size with B, K, M, G. *ret: bytes, a power of two, at least a page. */
int parse_buffer_size(const char *text, uint64_t *ret);

/* Bytes, exactly: "4096", "10M". 0, -EINVAL (also 0), -ERANGE. */
int parse_size(const char *text, uint64_t *ret);

/* "10s", "500ms", "2m", "1.5h", "10" (seconds); in nanoseconds, above 0. 0, -EINVAL, -ERANGE. */
int parse_duration(const char *text, uint64_t *ret);

/* "1000" or "1000/s"; 0: none. */
int parse_max_rate(const char *text, uint64_t *ret);

/* A time in whole seconds, such as 5s; at most an hour; 0: none. */
int parse_interval(const char *text, uint32_t *ret);

/* ── filter.c: --filter, --pid, --comm and --cgroup as one filter's text ── */

struct filter_options {
	const char *filter, *comm, *cgroup;
	const char *pids; /* 12 or 12,34 */
};
extern const struct verb_option filter_options[]; /* all but --filter */

/* The caller frees *ret, which is empty if no option is given. -EINVAL: pids is no list of process
 * ids; -ENOMEM. */
int filter_compose(const struct filter_options *o, char **ret);

/* ── signals.c ── */

/* From now on SIGINT, SIGTERM and, without nohup(1), SIGHUP end the work in order, instead of at once. */
void signals_catch(void);
bool signals_caught(void);

/* The same for a signal that only ends a wait (SIGUSR2, SIGCHLD). signals_take() says whether it
 * arrived since the last call. */
void signals_catch_also(int number);
bool signals_take(int number);

/* Waits for a signal, at most nsec nanoseconds; a readable fd (or -1) ends the wait, too. */
void signals_wait(uint64_t nsec, int fd);

/* ── inherit.c ── */

/* Executes command, with e's rings as fds from 3 on, as LISTEN_FDS says. Returns only on failure:
 * an exit code, 126 or 127 as of env(1). */
int run_with_rings(struct perfpersist_event *e, const char *ns, const char *name, char **command);

/* The same with the n descriptors of an event that is claimed, of which the first `rings` are rings. Ends the
 * claim when nothing but the execution itself can fail any more. */
int run_with_claimed(struct perfpersist *p, const int *fds, size_t n, size_t rings,
		     const struct perfpersist_info *info, char **command);

/* Whether there is such a command, as far as can be told: an exit code, as above. */
int check_command(char **command);
