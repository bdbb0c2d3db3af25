// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Reads command lines: the global options, that may stand on both sides of the verb, and each
 * verb's own. Knows no verb's options; those come with the verb.
 */
#include <string.h>

#include "client/perfctl/perfctl.h"

enum {
	OPT_INSTANCE = 256, /* above all letters */
	OPT_SOCKET,
	OPT_REGISTRY,
	OPT_DIRECT,
	OPT_SAVED,
	OPT_JSON,
	OPT_VERSION,
};

#define GLOBAL_SHORTS "h"

static const struct option global_longs[] = {
	{ "instance", required_argument, NULL, OPT_INSTANCE },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "registry", required_argument, NULL, OPT_REGISTRY },
	{ "direct", no_argument, NULL, OPT_DIRECT },
	{ "saved", optional_argument, NULL, OPT_SAVED },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ "help", no_argument, NULL, 'h' },
	{},
};

static int stop(struct call *call, int code)
{
	call->code = code;
	return -1;
}

static int stop_unknown(struct call *call, int opt, char *const *argv)
{
	const char *text = argv[optind - 1];
	char letter[] = { '-', (char)optopt, '\0' };

	/* A letter can be one of several in a word, which optind may not have left yet. */
	if (optopt && optopt < 256)
		text = letter;
	if (opt == ':')
		return stop(call, bad_usage(call, "option %s needs a value", text));
	return stop(call, bad_usage(call, "%s is not an option here", text));
}

/* 0: it was a global option and has been taken; opt itself if not; -1: stop. */
static int take_global(struct call *call, int opt, char *const *argv)
{
	switch (opt) {
	case OPT_INSTANCE:
		call->connect.instance = optarg;
		return 0;
	case OPT_SOCKET:
		call->connect.socket = optarg;
		return 0;
	case OPT_REGISTRY:
		call->connect.registry = optarg;
		return 0;
	case OPT_DIRECT:
		call->connect.direct = true;
		return 0;
	case OPT_SAVED:
		call->connect.saved = optarg ? optarg : "";
		return 0;
	case OPT_JSON:
		call->json = true;
		return 0;
	case OPT_VERSION:
		printf("perfctl %s\n", perfpersist_version());
		return stop(call, EXIT_OK);
	case 'h':
		print_help(call->verb, stdout);
		return stop(call, EXIT_OK);
	case '?':
	case ':':
		return stop_unknown(call, opt, argv);
	default:
		return opt;
	}
}

int options_global(struct call *call, int argc, char **argv)
{
	opterr = 0;
	for (;;) {
		int opt;

		/* perf's letters for verbs end the global options as verbs do. */
		if (optind < argc && (!strcmp(argv[optind], "-l") || !strcmp(argv[optind], "-d")))
			return optind;
		opt = getopt_long(argc, argv, "+:" GLOBAL_SHORTS, global_longs, NULL);
		if (opt == -1)
			return optind;
		if (take_global(call, opt, argv) < 0)
			return -1;
	}
}

int options_start(struct call *call, int argc, char **argv, const char *shorts,
		  const struct option *longs)
{
	size_t n = 0;

	for (const struct option *o = global_longs; o->name; o++)
		call->longs[n++] = *o;
	for (const struct option *o = longs; o && o->name && n < OPTIONS_MAX - 1; o++)
		call->longs[n++] = *o;
	call->longs[n] = (struct option){};
	/* "-": operands come in turn, whatever POSIXLY_CORRECT says; ":": no value is told apart.
	 */
	snprintf(call->shorts, sizeof(call->shorts), "-:%s%s", GLOBAL_SHORTS, shorts);

	call->operands = calloc((size_t)argc + 1, sizeof(*call->operands));
	if (!call->operands)
		return -ENOMEM;
	call->argc = argc;
	call->argv = argv;
	optind = 0; /* glibc: begin anew */
	return 0;
}

/* What stands behind "--": a command where the verb runs one, else more operands. */
static void take_rest(struct call *call)
{
	if (call->verb->runs_command && !strcmp(call->argv[optind - 1], "--"))
		call->command = call->argv + optind;
	else
		while (optind < call->argc)
			call->operands[call->n_operands++] = call->argv[optind++];
}

int options_next(struct call *call)
{
	for (;;) {
		int opt = getopt_long(call->argc, call->argv, call->shorts, call->longs, NULL);

		if (opt == -1) {
			take_rest(call);
			return 0;
		}
		if (opt == 1 && call->command_follows) {
			call->command = call->argv + optind - 1;
			return 0;
		}
		if (opt == 1) {
			call->operands[call->n_operands++] = optarg;
			continue;
		}
		opt = take_global(call, opt, call->argv);
		if (opt)
			return opt;
	}
}

int options_none(struct call *call, int argc, char **argv, size_t max_operands)
{
	int opt;

	if (options_start(call, argc, argv, "", NULL) < 0)
		return stop(call, EXIT_FAILED);
	while ((opt = options_next(call)) > 0)
		;
	if (opt < 0)
		return -1;
	if (call->n_operands <= max_operands)
		return 0;
	return stop(call, bad_usage(call,
				    max_operands ? "%s takes one namespace, or none"
						 : "%s takes no names",
				    call->verb->name));
}

void options_done(struct call *call)
{
	free(call->operands);
	call->operands = NULL;
	call->n_operands = 0;
}
