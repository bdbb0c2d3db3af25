// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl: the table of verbs, and the exit code of each failure. Each verb has its own file.
 */
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>

#include "client/perfctl/completion/complete.h"
#include "client/perfctl/perfctl.h"
#include "proto/nearest.h"
#include "proto/printable.h"

const struct verb *const verbs[] = {
	&verb_create,  &verb_adopt,	&verb_claim,	&verb_list,	  &verb_events,
	&verb_reopen,  &verb_delete,	&verb_show,	&verb_change,	  &verb_pause,
	&verb_resume,  &verb_stat,	&verb_top,	&verb_watch,	  &verb_limits,
	&verb_save,    &verb_snapshot,	&verb_record,	&verb_script,	  &verb_report,
	&verb_trigger, &verb_snapshots, &verb_coredump, &verb_checkpoint, &verb_preset,
	&verb_reload,  &verb_ping,	&verb_incident, &verb_help,	  NULL,
};

static bool has_complained;

static void complain_list(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
static void complain_list(const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = NULL;

	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	/* The text may hold anybody's words: print one line, without control characters. */
	if (text)
		make_printable(text, ' ');
	fflush(stdout);
	fprintf(stderr, "perfctl: %s\n", text ?: "out of memory");
	has_complained = true;
}

void complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain_list(fmt, ap);
	va_end(ap);
}

int bad_usage(const struct call *call, const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	complain("%s; see `perfctl %s%s--help`", text ?: "out of memory",
		 call->verb ? call->verb->name : "", call->verb ? " " : "");
	return EXIT_USAGE;
}

int unknown_word(const struct call *call, const char *what, const char *word, const char *nearest)
{
	if (!nearest)
		return bad_usage(call, "%s %s", what, word);
	complain("%s %s; did you mean %s?", what, word, nearest);
	return EXIT_USAGE;
}

/* The exit code that stands for a negative errno value. */
static int exit_code(int error)
{
	switch (error) {
	case -EINVAL:
		return EXIT_USAGE;
	case -ENOENT:
		return EXIT_NOT_FOUND;
	case -EACCES:
	case -EPERM:
		return EXIT_NOT_ALLOWED;
	case -ECONNREFUSED:
	case -ECONNRESET:
		return EXIT_NO_DAEMON;
	case -EEXIST:
		return EXIT_NAME_TAKEN;
	}
	return error < 0 ? EXIT_FAILED : EXIT_OK;
}

int call_connect(struct call *call, struct perfpersist **ret)
{
	int r;

	if (call->connect.saved && !call->verb->reads_saves)
		return bad_usage(call, "--saved: a save can only be listed, shown and read");
	call->connect.sz = sizeof(call->connect);
	r = perfpersist_connect(&call->connect, ret);
	return r < 0 ? call_failed(NULL, r) : EXIT_OK;
}

int call_failed(struct perfpersist *p, int error)
{
	return call_failed_as(error, "%s", perfpersist_error(p));
}

int call_failed_as(int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	complain_list(fmt, ap);
	va_end(ap);
	return exit_code(error);
}

const struct verb *find_verb(const char *name)
{
	for (const struct verb *const *v = verbs; *v; v++)
		if (!strcmp((*v)->name, name) || ((*v)->letter && !strcmp((*v)->letter, name)))
			return *v;
	return NULL;
}

const char *part_name(const struct verb *part)
{
	return strchr(part->name, ' ') + 1;
}

const struct verb *find_part(const struct verb *verb, const char *word)
{
	for (const struct verb *const *p = verb->parts; p && *p; p++)
		if (!strcmp(part_name(*p), word))
			return *p;
	return NULL;
}

/* The nearest name of a verb, or of a part of one (parts); NULL: none. */
static const char *nearest_verb(const struct verb *const *all, const char *word, bool parts)
{
	struct pp_nearest s;

	pp_nearest_begin(&s, word, strlen(word));
	for (; *all; all++)
		pp_nearest_consider(&s, parts ? part_name(*all) : (*all)->name);
	return s.best;
}

int unknown_verb(const struct call *call, const char *word)
{
	return unknown_word(call, "unknown verb", word, nearest_verb(verbs, word, false));
}

/* "trigger add": the second word belongs to the verb. */
static int take_part(struct call *call)
{
	const char *word = call->argc > 1 ? call->argv[1] : NULL;
	const struct verb *part = word ? find_part(call->verb, word) : NULL;

	if (part) {
		call->verb = part;
		call->argc--;
		call->argv++;
		return EXIT_OK;
	}
	if (word && *word == '-')
		return EXIT_OK; /* the verb's own options: --help */
	return word ? unknown_word(call, "unknown command", word,
				   nearest_verb(call->verb->parts, word, true))
		    : bad_usage(call, "%s what? %s", call->verb->name, call->verb->synopsis);
}

static int run(int argc, char **argv)
{
	struct call call = {};
	int first, code;

	if (argc > 1 && !strcmp(argv[1], "--complete"))
		return complete(argc - 2, argv + 2);
	if (!options_global(&call, argc, argv, &first))
		return call.code;
	if (first >= argc) {
		print_help(NULL, stderr);
		return EXIT_USAGE;
	}
	call.argc = argc - first;
	call.argv = argv + first;
	call.verb = find_verb(call.argv[0]);
	if (!call.verb)
		return unknown_verb(&call, call.argv[0]);
	code = call.verb->parts ? take_part(&call) : EXIT_OK;
	if (code == EXIT_OK)
		code = call.verb->run(&call);
	options_done(&call);
	return code;
}

int main(int argc, char **argv)
{
	int code;

	/* `perfctl incident` runs /proc/self/exe, and nobody knows a process "exe". */
	prctl(PR_SET_NAME, "perfctl");
	errno = 0;
	code = run(argc, argv);
	/* Other failures have their sentence, perhaps of a command that was run. */
	if (code == EXIT_FAILED && !has_complained && errno == ENOMEM)
		complain("out of memory");
	/* A full disk or a closed pipe must not look like success. */
	errno = 0;
	if (ferror(stdout) || fclose(stdout)) {
		fprintf(stderr, "perfctl: cannot write the output: %s\n",
			errno ? strerror(errno) : "an earlier write failed");
		return code ?: EXIT_FAILED;
	}
	return code;
}
