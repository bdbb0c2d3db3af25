// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl incident: a snapshot, its reports, its page, and what the machine is, in a directory and an
 * archive of it. Each part is another perfctl's output, so it is what a user would have seen.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "client/perfctl/machine.h"
#include "client/perfctl/output/outdir.h"
#include "client/perfctl/output/output.h"
#include "client/perfctl/perfctl.h"
#include "proto/clock.h"

#define DEFAULT_LAST "1m"
#define SNAPSHOT "snapshot.data"

struct incident {
	const struct call *call;
	const char *output, *last, *since, *until;
	uint64_t began; /* CLOCK_MONOTONIC, ns */
	struct outdir out;
	char *socket, *registry,
		*saved; /* the call's options; --saved is a word with its value. Not relative to the directory
			 * that we are in */
};

static const struct verb_option options[] = {
	{ 'o', "output", "DIR",
	  "make this directory, and DIR.tar.gz of it; default: incident-DATE-TIME",
	  TAKE_TEXT(struct incident, output), .completes = COMPLETE_FILE },
	{ 0, "last", "TIME",
	  "only records of the last 10s, 500ms, 2m or 1h, before --until if that is earlier; default: " DEFAULT_LAST,
	  TAKE_TEXT(struct incident, last) },
	{ 0, "since", "TIME",
	  "only records from then on: 1234.567 as in records, -10s, @1700000000, \"2026-11-21 "
	  "10:00:00\" or 10:00:00",
	  TAKE_TEXT(struct incident, since) },
	{ 0, "until", "TIME", "only records up to then; the same syntax; default: when it began",
	  TAKE_TEXT(struct incident, until) },
	{},
};

/* ── Files ── */

static int cannot(const char *what, const char *path, int error)
{
	complain("cannot %s %s: %s", what, path, strerror(-error));
	return EXIT_FAILED;
}

static int begin(struct incident *o)
{
	int r = outdir_open(o->output, &o->out);

	if (r == -EEXIST)
		complain("%s or %s.tar.gz exists; choose another name with -o", o->output,
			 o->output);
	else if (r < 0)
		cannot("make", o->output, r);
	return r < 0 ? EXIT_FAILED : EXIT_OK;
}

/* ── Other programs ── */

#define ARGUMENTS_MAX 24

struct command {
	const char *argv[ARGUMENTS_MAX];
	size_t n;
	const char *into; /* file inside the directory that gets its stdout; NULL: nothing does */
	bool packs;	  /* runs above it instead, and writes the archive */
	bool quiet;	  /* what it complains of does not matter */
};

static void add(struct command *c, const char *word)
{
	if (word && c->n + 1 < ARGUMENTS_MAX)
		c->argv[c->n++] = word;
}

static void add_option(struct command *c, const char *option, const char *value)
{
	if (!value)
		return;
	add(c, option);
	add(c, value);
}

/* A perfctl that speaks to the same daemon. */
static struct command perfctl(const struct incident *o, const char *verb)
{
	const struct perfpersist_options *connect = &o->call->connect;
	struct command c = {};

	add(&c, "/proc/self/exe");
	add_option(&c, "--instance", connect->instance);
	add_option(&c, "--socket", o->socket);
	add_option(&c, "--registry", o->registry);
	if (o->saved)
		add(&c, o->saved);
	if (connect->direct)
		add(&c, "--direct");
	add(&c, verb);
	return c;
}

static int spawn(const struct incident *o, const struct command *c, char **operands,
		 size_t n_operands, int out, pid_t *ret)
{
	char **argv = calloc(c->n + n_operands + 1, sizeof(*argv));
	posix_spawn_file_actions_t files;
	sigset_t none, pipe;
	posix_spawnattr_t how;
	int r;

	if (!argv)
		return ENOMEM;
	memcpy(argv, c->argv, c->n * sizeof(*argv));
	if (n_operands)
		memcpy(argv + c->n, operands, n_operands * sizeof(*argv));
	sigemptyset(&none);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&how, &none);
	posix_spawnattr_setsigdefault(&how, &pipe);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (out >= 0)
		posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
	else
		posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addfchdir_np(&files, c->packs ? o->out.top : o->out.dir);
	if (c->quiet)
		posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	r = posix_spawnp(ret, argv[0], &files, &how, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	free(argv);
	return r;
}

/* Its exit code; EXIT_FAILED with a complaint if there is none. */
static int run_with(const struct incident *o, const struct command *c, char **operands,
		    size_t n_operands)
{
	int status = 0, r, out = -EBADF;
	pid_t child;

	if (c->into || c->packs)
		out = c->packs ? outdir_archive(&o->out) : outdir_append(&o->out, c->into);
	if (out < 0 && out != -EBADF)
		return cannot("write", c->packs ? o->out.archive : c->into, out);
	r = spawn(o, c, operands, n_operands, out, &child);
	close_fd(out);
	if (r)
		return cannot("run", c->argv[0], -r);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (signals_caught())
		return EXIT_FAILED;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	complain("%s ended with signal %d", c->argv[0], WTERMSIG(status));
	return EXIT_FAILED;
}

static int run_command(const struct incident *o, const struct command *c)
{
	return run_with(o, c, NULL, 0);
}

/* ── The parts ── */

static int snapshot(const struct incident *o)
{
	struct command c = perfctl(o, "snapshot");
	const char *last = o->last, *since = o->since;
	char began[32];
	uint64_t ns;

	/* What we do ourselves is none of it: "since -10s" is before we began, as "the last 10s" is. */
	snprintf(began, sizeof(began), "%" PRIu64 ".%09" PRIu64, o->began / 1000000000,
		 o->began % 1000000000);
	if (!last && !since && !o->until) {
		last = DEFAULT_LAST;
	} else if (!last && !o->until && since && *since == '-' &&
		   parse_duration(since + 1, &ns) == 0) {
		last = since + 1;
		since = NULL;
	}
	add_option(&c, "--last", last);
	add_option(&c, "--since", since);
	add_option(&c, "--until", o->until || o->saved ? o->until : began);
	add_option(&c, "-o", SNAPSHOT);
	add(&c, "--");
	return run_with(o, &c, o->call->operands, o->call->n_operands);
}

static void title(const struct incident *o, const char *file, const char *text)
{
	_cleanup_(cleanup_fclose) FILE *f = outdir_append_stream(&o->out, file);

	if (f)
		fprintf(f, "\n── %s\n\n", text);
}

/* optional: that nothing of it is recorded is no failure. */
static int report(const struct incident *o, const char *option, bool optional)
{
	_cleanup_(cleanup_fclose) FILE *f = NULL;
	struct command c = perfctl(o, "report");
	int r;

	add_option(&c, "-i", SNAPSHOT);
	add(&c, option);
	c.into = "report.txt";
	c.quiet = optional;
	r = run_command(o, &c);
	if (optional && r != EXIT_OK && r != EXIT_NOT_FOUND && !signals_caught())
		complain("cannot write what `perfctl report %s` says", option);
	if (!optional || r != EXIT_NOT_FOUND)
		return r;
	f = outdir_append_stream(&o->out, "report.txt");
	if (f)
		fputs("Not recorded.\n", f);
	return EXIT_OK;
}

static int reports(const struct incident *o)
{
	static const char *const latencies[] = { "--wakeups", "--off-cpu", "--block", "--syscalls",
						 "--irq" };
	int r = report(o, "--findings", false);

	if (r == EXIT_OK) {
		title(o, "report.txt", "report");
		r = report(o, NULL, false);
	}
	for (size_t i = 0; r == EXIT_OK && i < ARRAY_SIZE(latencies); i++) {
		title(o, "report.txt", latencies[i]);
		r = report(o, latencies[i], true);
	}
	return r;
}

static int page(const struct incident *o)
{
	struct command c = perfctl(o, "report");

	add_option(&c, "-i", SNAPSHOT);
	add_option(&c, "--html", "page.html");
	return run_command(o, &c);
}

/* Without a daemon there is nothing to tell of it. */
static int about(const struct incident *o)
{
	static const char *const told[][3] = { { "--version" },
					       { "list" },
					       { "stat", "--interval-count", "1" },
					       { "show", "*/*" },
					       { "limits" } };
	int r = EXIT_OK;

	machine_tell(&o->out, o->call->connect.instance);
	for (size_t i = 0; r == EXIT_OK && i < ARRAY_SIZE(told); i++) {
		struct command c = perfctl(o, told[i][0]);

		title(o, "about.txt", told[i][0]);
		add_option(&c, told[i][1], told[i][2]);
		if (!told[i][2])
			add(&c, told[i][1]);
		c.into = "about.txt";
		c.quiet = true;
		run_command(o, &c);
		r = signals_caught() ? EXIT_FAILED : EXIT_OK;
	}
	return r;
}

static int pack(const struct incident *o)
{
	struct command c = { .packs = true };

	add(&c, "tar");
	add_option(&c, "-czf", "-");
	add(&c, "--");
	add(&c, o->out.name);
	return run_command(o, &c) == EXIT_OK ? EXIT_OK : EXIT_FAILED;
}

/* ── The end ── */

static void print_head(const struct incident *o)
{
	int fd = openat(o->out.dir, "report.txt", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(cleanup_fclose) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[1024];

	if (!f)
		close_fd(fd);
	for (int i = 0; f && i < 10 && fgets(line, sizeof(line), f) && *line != '\n'; i++)
		fputs(line, stdout);
}

static void tell(const struct incident *o)
{
	_cleanup_free_ char *archive = NULL;
	struct json j = { .f = stdout };
	struct stat st = {};

	fstatat(o->out.parent, o->out.archive, &st, AT_SYMLINK_NOFOLLOW);
	if (asprintf(&archive, "%s.tar.gz", o->output) < 0)
		archive = NULL;
	if (o->call->json) {
		json_begin(&j, NULL, '{');
		json_string(&j, "directory", o->output);
		json_string(&j, "archive", archive ?: o->out.archive);
		json_unsigned(&j, "bytes", (uint64_t)st.st_size);
		json_end(&j, '}');
		putchar('\n');
		return;
	}
	print_head(o);
	printf("%s: report.txt, page.html, snapshot.data, about.txt\n%s: all of it, to attach to a "
	       "ticket (%" PRIu64 " bytes)\n",
	       o->output, archive ?: o->out.archive, (uint64_t)st.st_size);
}

static int commit(struct incident *o)
{
	int r = outdir_commit(&o->out);

	return r < 0 ? cannot("make", o->output, r) : EXIT_OK;
}

static int make(struct incident *o)
{
	int r = begin(o);

	if (r)
		return r;
	r = snapshot(o) ?: reports(o) ?: page(o) ?: about(o) ?: pack(o) ?: commit(o);
	if (r == EXIT_OK)
		tell(o);
	outdir_done(&o->out);
	if (r != EXIT_OK && signals_caught())
		complain("interrupted; nothing is left of %s", o->output);
	return r;
}

/* A relative path as one that other directories know, too. A word without a slash is none. */
static char *from_here(const char *path)
{
	_cleanup_free_ char *here = NULL;
	char *whole;

	if (!path || *path == '/' || !strchr(path, '/'))
		return path ? strdup(path) : NULL;
	here = getcwd(NULL, 0);
	return here && asprintf(&whole, "%s/%s", here, path) >= 0 ? whole : NULL;
}

/* "--saved=SAVE": its value may be left out, so it is no word of its own. */
static char *saved_from_here(const char *save)
{
	_cleanup_free_ char *whole = NULL;
	char *option = NULL;

	if (!save)
		return NULL;
	/* The directory of a save needs no slash. */
	whole = *save && access(save, F_OK) == 0 ? realpath(save, NULL) : NULL;
	return asprintf(&option, "--saved%s%s", *save ? "=" : "", whole ?: save) < 0 ? NULL
										     : option;
}

static int run(struct call *call)
{
	struct incident o = { .call = call,
			      .began = pp_clock_ns(CLOCK_MONOTONIC),
			      .out = OUTDIR_NONE };
	char name[64], *output = NULL;
	time_t now = time(NULL);
	struct tm tm;
	int r;

	if (!options_read(call, &o))
		return call->code;
	if (!o.output && localtime_r(&now, &tm) &&
	    strftime(name, sizeof(name), "incident-%Y%m%d-%H%M%S", &tm))
		o.output = name;
	output = strdup(o.output ?: "");
	for (size_t n = output ? strlen(output) : 0; n > 1 && output[n - 1] == '/'; n--)
		output[n - 1] = '\0';
	o.output = output;
	o.socket = from_here(call->connect.socket);
	o.registry = from_here(call->connect.registry);
	o.saved = saved_from_here(call->connect.saved);
	signals_catch();
	/* What is left behind must be removed though nobody hears of it. */
	signal(SIGPIPE, SIG_IGN);
	umask(0077); /* recorded data is not for everybody */
	r = make(&o);
	free(o.socket);
	free(o.registry);
	free(o.saved);
	free(output);
	return r;
}

const struct verb verb_incident = {
	.name = "incident",
	.synopsis = "[NAME | NAMESPACE/ | GLOB ...] [-o DIR] [OPTIONS]",
	.summary = "keep everything about what just went wrong, in one archive",
	.run = run,
	.options = { { .rows = options } },
	.operands = COMPLETE_NAMES,
	.reads_saves = true,
	.help = "Takes a snapshot of all events that you may read, or of these, and writes:\n"
		"  report.txt     what stands out (`report --findings`), the report, how long things took\n"
		"  page.html      the page of `report --html`\n"
		"  snapshot.data  the records, for `perfctl report` and perf\n"
		"  about.txt      versions, what is recorded, limits, load, memory\n"
		"  config.txt     perfpersistd.conf and events.d, as far as you may read them\n"
		"It prints what stands out. The archive names processes and files of this machine.\n"
		"\n"
		"Examples:\n"
		"  perfctl incident\n"
		"  perfctl incident --last 10s -o /tmp/slow-login\n"
		"  perfctl incident flight/ --since 10:00:00 --until 10:02:00\n",
};
