// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfctl coredump: finds what a trigger froze when a process was about to dump core, and what
 * systemd-coredump knows of that process.
 */
#include <inttypes.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "client/perfctl/print/info.h"
#include "client/perfctl/snapshots.h"

#define TRIGGER "coredump/crash" /* of conf/presets/coredump.conf */
#define SECOND ((uint64_t)1000000000)

struct coredump {
	struct snapshots place;
	const char *trigger;
	bool path_only;
};

static const struct verb_option options[] = {
	{ 0, "trigger", "NAME", "the trigger that fires on a crash; default: " TRIGGER,
	  TAKE_TEXT(struct coredump, trigger), .completes = COMPLETE_TRIGGER },
	{ 0, "path", NULL, "print only the path of the file",
	  TAKE_FLAG(struct coredump, path_only) },
	{},
};

/* *ret: of the operand; 0: the latest crash, whoever it was. */
static int take_pid(struct call *call, uint32_t *ret)
{
	const char *text = call->n_operands ? call->operands[0] : "latest";
	uint64_t pid = 0;

	if (strcmp(text, "latest") != 0 &&
	    (parse_number(text, &pid) < 0 || pid == 0 || pid > INT32_MAX))
		return bad_usage(call, "%s: neither a process id nor `latest`", text);
	*ret = (uint32_t)pid;
	return EXIT_OK;
}

static int not_found(const struct coredump *c, const struct event_name *by, uint32_t pid)
{
	char whose[64] = "of a crash";

	if (pid)
		snprintf(whose, sizeof(whose), "of a crash of process %" PRIu32, pid);
	complain("the trigger %s/%s has saved no snapshot %s in %s; `perfctl trigger show %s/%s` "
		 "says whether it is there and has fired, and `perfctl coredump --help` how to "
		 "turn it on",
		 by->ns, by->name, whose, c->place.path, by->ns, by->name);
	return EXIT_NOT_FOUND;
}

/* The newest one: process ids come again. One that somebody fired by hand is no crash. */
static int find(const struct coredump *c, const struct event_name *by, uint32_t pid,
		struct spooled *ret)
{
	_cleanup_free_ struct spooled *all = NULL;
	size_t n = 0;
	int r = snapshots_list(&c->place, &all, &n);

	if (r)
		return r;
	for (size_t i = n; i-- > 0;)
		if (all[i].pid && (!pid || all[i].pid == pid) && !strcmp(all[i].ns, by->ns) &&
		    !strcmp(all[i].trigger, by->name)) {
			*ret = all[i];
			return EXIT_OK;
		}
	return not_found(c, by, pid);
}

/* Where systemd-coredump is in use. Its entry comes a little later than the snapshot's time. */
static void show_entry(const struct spooled *f)
{
	char pid[32], since[48];
	char *argv[] = { "coredumpctl", "info", "--no-pager", "-1", pid, since, NULL };
	pid_t child;

	snprintf(pid, sizeof(pid), "COREDUMP_PID=%" PRIu32, f->pid);
	snprintf(since, sizeof(since), "--since=@%" PRIu64, f->time / SECOND);
	fflush(stdout);
	if (posix_spawnp(&child, argv[0], NULL, NULL, argv, environ) != 0)
		return;
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static void show(const struct spooled *f, const char *path)
{
	printf("%s[%" PRIu32 "] crashed %s ago, at %s.\n"
	       "What was recorded until then (%s):\n"
	       "  %s\n"
	       "To look at it:\n"
	       "  perfctl report -i %s\n"
	       "  perfctl script -i %s --pid %" PRIu32 "\n",
	       f->comm, f->pid, format_age(f->time).s, format_time(f->time).s,
	       format_size(f->bytes).s, path, path, path, f->pid);
}

static int run(struct call *call)
{
	struct coredump c = { .trigger = TRIGGER };
	_cleanup_free_ char *path = NULL;
	struct json j = { .f = stdout };
	struct event_name by;
	struct spooled f;
	uint32_t pid = 0;
	int r;

	if (!options_read(call, &c))
		return call->code;
	if (parse_event_name(c.trigger, NULL, &by) < 0)
		return bad_usage(call, "--trigger %s: not a trigger's name", c.trigger);
	r = take_pid(call, &pid) ?: snapshots_place(call, &c.place) ?: find(&c, &by, pid, &f);
	if (r)
		return r;
	path = snapshots_path(&c.place, &f);
	if (c.path_only) {
		puts(path ?: f.name);
	} else if (call->json) {
		snapshots_json(&j, &c.place, &f);
		putchar('\n');
	} else {
		show(&f, path ?: f.name);
		show_entry(&f);
	}
	return EXIT_OK;
}

const struct verb verb_coredump = {
	.name = "coredump",
	.synopsis = "[PID | latest] [OPTIONS]",
	.summary = "find what was recorded until a process crashed",
	.run = run,
	.options = { { .rows = options },
		     { .rows = snapshots_options, .at = offsetof(struct coredump, place) } },
	.operands = COMPLETE_CRASHED,
	.one_operand = true,
	.help = "Finds the snapshot that the trigger saved when that process was about to dump core, and\n"
		"shows systemd-coredump's entry of it, where that is in use. Without PID, it is the latest\n"
		"crash. The trigger is shipped, and off. To turn it on, as root:\n"
		"  perfctl preset enable coredump\n"
		"\n"
		"Examples:\n"
		"  perfctl coredump 4711\n"
		"  perfctl report -i \"$(perfctl coredump --path)\" --html crash.html\n",
};
