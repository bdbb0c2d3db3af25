// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl: the table of verbs, the help, and the way from a failure to an exit code. What the
 * verbs do is in their files.
 */
#include <stdarg.h>
#include <string.h>

#include "client/perfctl/perfctl.h"
#include "proto/printable.h"

static const struct verb *const verbs[] = {
	&verb_create, &verb_list,   &verb_reopen, &verb_delete,	  &verb_show,
	&verb_change, &verb_pause,  &verb_resume, &verb_stat,	  &verb_top,
	&verb_watch,  &verb_limits, &verb_save,	  &verb_snapshot, &verb_record,
	&verb_script, &verb_report, &verb_reload, &verb_ping,
};

void complain(const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	/* One line and nothing a terminal would obey, whoever the words came from. */
	if (text)
		make_printable(text, ' ');
	fflush(stdout);
	fprintf(stderr, "perfctl: %s\n", text ?: "out of memory");
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
		return bad_usage(call, "--saved: saves can be listed, shown and read, and no more");
	call->connect.sz = sizeof(call->connect);
	r = perfpersist_connect(&call->connect, ret);
	return r < 0 ? call_failed(NULL, r) : EXIT_OK;
}

int call_failed(struct perfpersist *p, int error)
{
	complain("%s", perfpersist_error(p));
	return exit_code(error);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (!strcmp(verbs[i]->name, name) ||
		    (verbs[i]->letter && !strcmp(verbs[i]->letter, name)))
			return verbs[i];
	return NULL;
}

static void print_overview(FILE *f)
{
	fputs("perfctl - persistent perf events: always recording, readable at any time\n"
	      "\n"
	      "Usage: perfctl [OPTIONS] VERB ...\n"
	      "\n"
	      "Verbs:\n",
	      f);
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s%s%s", verbs[i]->name, verbs[i]->letter ? ", " : "",
			 verbs[i]->letter ?: "");
		fprintf(f, "  %-12s %s\n", name, verbs[i]->summary);
	}
	fputs("  help VERB    its options and examples; so does `perfctl VERB --help`\n"
	      "\n"
	      "Options, before or after the verb:\n"
	      "  --instance NAME  talk to the daemon of this instance\n"
	      "  --socket PATH    talk to the daemon at this socket\n"
	      "  --registry PATH  the registry that --direct reads\n"
	      "  --direct         no daemon: list, show and reopen from the registry, as root\n"
	      "  --saved[=SAVE]   what `perfctl save` or a shutdown saved: list, show, stat,\n"
	      "                   snapshot and reopen from the newest save, or from one by\n"
	      "                   its name or path\n"
	      "  --json           write JSON\n"
	      "  -h, --help       this text\n"
	      "  --version        the version\n"
	      "\n"
	      "An event's NAME is NAMESPACE/NAME, or NAME alone in the namespace `default`.\n"
	      "\n"
	      "Examples:\n"
	      "  perfctl create switches -e sched:sched_switch -m 4M\n"
	      "  perfctl list\n"
	      "  perfctl reopen switches -n 20\n"
	      "  perfctl reopen switches -f\n"
	      "  perfctl delete switches\n"
	      "\n"
	      "Exit codes: 0 done, 1 failed, 2 bad usage, 3 not found, 4 not allowed,\n"
	      "5 daemon not running, 6 name already taken.\n",
	      f);
}

void print_help(const struct verb *verb, FILE *f)
{
	if (!verb) {
		print_overview(f);
		return;
	}
	fprintf(f, "perfctl %s - %s\n\nUsage: perfctl %s%s%s\n", verb->name, verb->summary,
		verb->name, *verb->synopsis ? " " : "", verb->synopsis);
	if (verb->letter)
		fprintf(f, "       perfctl %s %s\n", verb->letter, verb->synopsis);
	fprintf(f, "\n%s\nGlobal options and exit codes: `perfctl --help`.\n", verb->help);
}

static int help(struct call *call, int argc, char **argv)
{
	const struct verb *verb = NULL;

	if (argc > 2)
		return bad_usage(call, "help takes one verb");
	if (argc == 2 && strcmp(argv[1], "--help") && strcmp(argv[1], "-h")) {
		verb = find_verb(argv[1]);
		if (!verb)
			return bad_usage(call, "there is no verb %s", argv[1]);
	}
	print_help(verb, stdout);
	return EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct call call = {};
	int first, code;

	first = options_global(&call, argc, argv);
	if (first < 0)
		return call.code;
	if (first >= argc) {
		print_help(NULL, stderr);
		return EXIT_USAGE;
	}
	argc -= first;
	argv += first;
	if (!strcmp(argv[0], "help"))
		return help(&call, argc, argv);
	call.verb = find_verb(argv[0]);
	if (!call.verb)
		return bad_usage(&call, "there is no verb %s", argv[0]);
	code = call.verb->run(&call, argc, argv);
	options_done(&call);
	return code;
}

int main(int argc, char **argv)
{
	int code = run(argc, argv);

	/* What could not be written must not look like success: a full disk, a closed pipe. */
	errno = 0;
	if (ferror(stdout) || fclose(stdout)) {
		fprintf(stderr, "perfctl: cannot write the output: %s\n",
			errno ? strerror(errno) : "some of it was refused");
		return code ?: EXIT_FAILED;
	}
	return code;
}
