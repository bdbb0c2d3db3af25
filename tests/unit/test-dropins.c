// SPDX-License-Identifier: LGPL-2.1-or-later
/* The files of events.d: their meaning, which of them count, and those that --boot writes. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/broker/config/boot-file.h"
#include "daemon/broker/config/dropin-resolve.h"
#include "daemon/broker/config/dropins.h"
#include "daemon/broker/config/settings.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

static char dir[64];
static struct config config;
static struct dropins *found;
static char *told;
static struct pp_msg_create_request request;

static void forget(void)
{
	dropins_free(found);
	found = NULL;
	free(config.namespaces);
	config = (struct config){ .max_buffer = 256 << 20 };
}

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/perfpersist-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	forget();
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
	forget();
	free(told);
	told = NULL;
}

/* ── one text ───────────────────────────────────────────────────────────────────────────── */

static void parse_file(const char *path, const char *text)
{
	size_t size;
	FILE *complaints;

	forget();
	free(told);
	found = calloc(1, sizeof(*found));
	complaints = open_memstream(&told, &size);
	ck_assert_int_eq(dropin_parse(found, &config, path, false, text, strlen(text), complaints),
			 0);
	fclose(complaints);
}

static void parse(const char *text)
{
	parse_file("f", text);
}

static const struct dropin_event *event(const char *ns, const char *name)
{
	const struct dropin_event *e = dropins_event(found, ns, name);

	if (e && e->request)
		dropin_request(e, &request);
	return e;
}

START_TEST(every_key)
{
	const struct dropin_event *e;

	parse("# a comment\n[namespace web]\nOwner=7\nGroup=8\nMode=0664\nLive=nobody\n"
	      "MaxMemory=5M\nMaxEvents=6\n\n"
	      "[event web/all]\nEvent=sched:sched_switch\n  Filter = comm ~ \"a ;b\" ; of these\n"
	      "Event=cpu-clock\nCPUs=0-3,8\nBuffer=64K\nFrequency=99\nMaxRate=1000/"
	      "s\nCallGraph=yes\n"
	      "Checkpoint=5s\nWakeup=yes\nGeneric=yes\nShare=yes\nOptional=yes\nEnabled=no\nCreator=5\n"
	      "[event web/bare]\nEvent=cpu-clock\nPeriod=10\nShare=no\nMaxRate=7\n"
	      "CallGraph=kernel\nMaxStack=16\nCgroup=/a b/c.service\n"
	      "[event web/stacks]\nEvent=cpu-clock\nCallGraph=yes\nCallGraph=dwarf,1001\n");
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(config.n_namespaces, 1);
	ck_assert_uint_eq(config.namespaces[0].owner, 7);
	ck_assert_uint_eq(config.namespaces[0].mode, 0664);
	ck_assert_int_eq(config.namespaces[0].live, NAMESPACE_LIVE_NOBODY);
	ck_assert_uint_eq(config.namespaces[0].max_memory, 5 << 20);
	ck_assert_uint_eq(found->n, 3);
	e = event("web", "all");
	ck_assert(e->optional && !e->enabled && !e->faulty && !e->written);
	ck_assert_uint_eq(e->creator, 5);
	ck_assert_uint_eq(e->line, 10);
	ck_assert_uint_eq(e->event_lines[1], 13);
	ck_assert_uint_eq(e->filter_lines[0], 12);
	ck_assert_str_eq(request.ns, "web");
	ck_assert_str_eq(request.name, "all");
	ck_assert_uint_eq(request.count, 2);
	ck_assert_str_eq(request.selections[0].event, "sched:sched_switch");
	ck_assert_str_eq(request.selections[0].filter, "comm ~ \"a ;b\"");
	ck_assert_str_eq(request.selections[1].event, "cpu-clock");
	ck_assert_str_eq(request.selections[1].filter, "");
	ck_assert_str_eq(request.cpus, "0-3,8");
	ck_assert_uint_eq(request.data_size, 65536);
	ck_assert_uint_eq(request.period, 99);
	ck_assert_uint_eq(request.max_rate, 1000);
	ck_assert_uint_eq(request.flags, PP_EVENT_FREQ | PP_EVENT_CALLCHAIN | PP_EVENT_WAKEUP |
						 PP_EVENT_GENERIC | PP_EVENT_SHARE |
						 pp_checkpoint_flags(5));
	e = event("web", "bare");
	ck_assert(e->enabled && !e->optional);
	ck_assert_uint_eq(request.flags,
			  PP_EVENT_NO_SHARE | PP_EVENT_CALLCHAIN | PP_EVENT_NO_USER_CHAIN);
	ck_assert_uint_eq(request.period, 10);
	ck_assert_uint_eq(request.max_rate, 7);
	ck_assert_uint_eq(request.max_stack, 16);
	ck_assert_uint_eq(request.data_size, 0);
	ck_assert_uint_eq(request.target.kind, PP_TARGET_CGROUP);
	ck_assert_str_eq(request.target.cgroup, "/a b/c.service");
	ck_assert_uint_eq(request.stack_user, 0);
	event("web", "stacks");
	ck_assert_uint_eq(request.flags, PP_EVENT_CALLCHAIN | PP_EVENT_NO_USER_CHAIN);
	ck_assert_uint_eq(request.stack_user, 1008);
}
END_TEST

/* inih, as it is packaged, has room for 49 bytes of a section's name and 199 of a line. */
/* A link's name gives the instance; in names it is written as names are. */
START_TEST(templates)
{
	static const char *const text = "[event calls/%i]\nEvent=raw_syscalls:sys_enter\n"
					"Filter=cgroup == \"%i\" && comm != \"%%i\"\n";
	static const struct {
		const char *path, *name, *filter;
	} instances[] = {
		{ "/a@b/calls@web-1.service.conf", "web-1_service",
		  "cgroup == \"web-1.service\" && comm != \"%i\"" },
		{ "calls@getty@tty1.service.conf", "getty_tty1_service",
		  "cgroup == \"getty@tty1.service\" && comm != \"%i\"" },
		{ "calls@3.conf", "_3", "cgroup == \"3\" && comm != \"%i\"" },
	};
	char path[300];

	for (size_t i = 0; i < ARRAY_SIZE(instances); i++) {
		parse_file(instances[i].path, text);
		ck_assert_str_eq(told, "");
		ck_assert_ptr_nonnull(event("calls", instances[i].name));
		ck_assert_str_eq(request.selections[0].filter, instances[i].filter);
	}
	/* Neither the template itself, nor any other file, is one. */
	parse_file("/x@y.conf/calls@.conf", text);
	ck_assert_msg(strstr(told, "'%i' cannot be an event's name"), "%s", told);
	parse("[event a/b]\nEvent=cpu-clock\nFilter=comm ~ \"%d%i\"\n");
	ck_assert_str_eq(told, "");
	ck_assert_ptr_nonnull(event("a", "b"));
	ck_assert_str_eq(request.selections[0].filter, "comm ~ \"%d%i\"");

	parse_file("calls@x.conf", "[event a/b]\nEvent=cpu-clock\nFilter=comm ~ \"%d\"\n");
	ck_assert_msg(strstr(told, "calls@x.conf:3: ") &&
			      strstr(told, "something else than i or %"),
		      "%s", told);
	memset(path, 'x', sizeof(path));
	memcpy(path, "calls@", 6);
	memcpy(path + 200, ".conf", sizeof(".conf"));
	parse_file(path, text);
	ck_assert_msg(strstr(told, "cannot be an event's name"), "%s", told);
}
END_TEST

START_TEST(as_long_as_can_be)
{
	char name[PP_NAME_SIZE] = "", filter[PP_FILTER_SIZE] = "", text[SETTINGS_LINE_MAX * 2];

	memset(name, 'n', sizeof(name) - 1);
	memset(filter, 'f', sizeof(filter) - 1);
	for (size_t i = 100; i < sizeof(filter) - 1; i += 101)
		filter[i] = i % 2 ? ' ' : '=';
	snprintf(text, sizeof(text),
		 "\t[event %s/%s] # of those\r\nEvent=e\r\n\tFilter=\t%s \t\r\nBuffer=64K", name,
		 name, filter);
	parse(text);
	ck_assert_str_eq(told, "");
	ck_assert_ptr_nonnull(event(name, name));
	ck_assert_str_eq(request.selections[0].filter, filter);
	ck_assert_uint_eq(request.data_size, 65536);
}
END_TEST

/* A later section changes only the keys that it sets. */
START_TEST(later_sections)
{
	parse("[event a/x]\nEvent=one\nEvent=two\nFilter=f\nBuffer=64K\nPeriod=5\n"
	      "[event a/x]\nFilter=g\n"
	      "[event a/y]\nEvent=one\n[event a/y]\nEvent=three\nEvent=four\nFrequency=9\n"
	      "[event a/y]\nPeriod=3\nEnabled=no\n");
	ck_assert_str_eq(told, "");
	event("a", "x");
	ck_assert_uint_eq(request.count, 2);
	ck_assert_str_eq(request.selections[0].event, "one");
	ck_assert_str_eq(request.selections[0].filter, "g");
	ck_assert_str_eq(request.selections[1].filter, "g");
	ck_assert_uint_eq(request.data_size, 65536);
	ck_assert_uint_eq(request.period, 5);
	ck_assert(!event("a", "y")->enabled);
	ck_assert_uint_eq(request.count, 2);
	ck_assert_str_eq(request.selections[0].event, "three");
	ck_assert_uint_eq(request.period, 3);
	ck_assert_uint_eq(request.flags, 0);
}
END_TEST

/* The parser complains about the line and ignores its section; the sections around it count. */
static void refused(const char *section, unsigned line, const char *say)
{
	char text[8192], prefix[32], *p;

	snprintf(text, sizeof(text), "[event a/before]\nEvent=x\n%s\n[event a/after]\nEvent=y\n",
		 section);
	parse(text);
	snprintf(prefix, sizeof(prefix), "f:%u: ", line);
	p = strstr(told, prefix);
	ck_assert_msg(p && strstr(p, say), "'%s' not said of line %u, but:\n%s", say, line, told);
	ck_assert_uint_ge(found->faults, 1);
	ck_assert_ptr_nonnull(event("a", "before")->request);
	ck_assert_ptr_nonnull(event("a", "after")->request);
}

static void refused_key(const char *line, const char *say)
{
	char section[6000];

	snprintf(section, sizeof(section), "[event a/x]\nEvent=e\n%s", line);
	refused(section, 5, say);
	/* The daemon knows that there is an event of this name that it does not understand. */
	ck_assert(event("a", "x")->faulty);
	ck_assert_ptr_null(event("a", "x")->request);
	ck_assert(!found->incomplete);
}

START_TEST(faults)
{
	char long_line[5000] = "Filter=";

	memset(long_line + 7, 'x', sizeof(long_line) - 8);
	refused_key(long_line, "too long");
	long_line[4000] = '\0';
	refused_key(long_line, "Filter= is too long");
	refused_key("Colour=red", "has no key Colour=");
	refused_key("Event=", "names no event");
	refused_key("CPUs=3-1", "CPUs=");
	refused_key("Buffer=1K", "Buffer=");
	refused_key("Buffer=much", "Buffer=");
	refused_key("Period=0", "Period=");
	refused_key("Period=9223372036854775808", "Period=");
	refused_key("Frequency=x", "Frequency=");
	refused_key("MaxRate=10/m", "MaxRate=");
	refused_key("MaxRate=99999999999999999999999999999999999", "MaxRate=");
	refused_key("Checkpoint=1500ms", "Checkpoint=");
	refused_key("Checkpoint=2h", "Checkpoint=");
	refused_key("Wakeup=maybe", "Wakeup=");
	refused_key("Optional=", "Optional=");
	refused_key("Creator=no-such-user-here", "no such user");
	refused_key("Nothing", "no setting");
	refused_key("=1", "no setting");
	refused("[event a/x]\nFilter=f", 4, "before its Event=");
	refused("[event a/x]\nEvent=e\nTargets=y", 5, "has no key Targets=");
	refused("[trigger a/x]\nEvent=e", 4, "has no key Event=");
	refused("[trigger a/x]\nOn=e\nTargets=a b", 5, "Targets=");
	refused("[trigger a/x]\nOn=e\nTargets=b/c", 5, "Targets=");
	refused("[trigger a/x]\nOn=e\nHoldOff=9ms", 5, "10 ms at least");
	refused("[trigger a/x]\nOn=e\nHoldOff=1.5s", 5, "HoldOff=");
	refused("[trigger a/x]\nOn=e\nMaxPerDay=0", 5, "MaxPerDay=");
	refused("[trigger a/x]\nOn=e\nAction=stop", 5, "snapshot, freeze, pause or notify");
	refused("[trigger a/x]\nOn=e\nAfter=r", 5, "After=");
	refused("[trigger a/x]\nOn=e\nAfter=0r", 5, "After=");
	refused("[trigger a/x]\nOn=e\nAfter=1s,2s", 5, "After=");
	refused("[trigger a/deleted]\nOn=e", 3, "those that are removed");
	ck_assert(found->incomplete);
	refused("[trigger a/before]\nOn=e", 3, "an event in another section");
	/* A section whose target is unclear must not delete its event. */
	refused("[event x]\nEvent=e", 3, "NAMESPACE/NAME");
	ck_assert(found->incomplete);
	refused("[event a.b/x]", 3, "namespace's name");
	ck_assert(found->incomplete);
	refused("[event by-id/x]", 3, "by-id");
	refused("[event a/x y]", 3, "event's name");
	refused("[evnt a/x]\nEvent=e", 3, "no section [evnt");
	ck_assert(found->incomplete);
	refused("[event a/x", 3, "no end");
	ck_assert(found->incomplete);
	refused("[namespace n]\nMode=9", 4, "Mode=");
	ck_assert(found->incomplete);
	/* Known as faulty, so that no wider rights apply in its place. */
	ck_assert_uint_eq(config.n_namespaces, 1);
	ck_assert(config.namespaces[0].faulty);
	parse("Event=x\n");
	ck_assert_ptr_nonnull(strstr(told, "f:1: Event= stands before any section"));
	ck_assert(found->incomplete);
}
END_TEST

START_TEST(too_many_texts)
{
	char text[2048] = "[event a/x]\n";

	for (unsigned i = 0; i <= PP_SELECTIONS_MAX; i++)
		strcat(text, "Event=e\n");
	parse(text);
	ck_assert_ptr_nonnull(strstr(told, "f:18: Event= is there too often"));
	ck_assert_ptr_null(event("a", "x")->request);
}
END_TEST

/* A faulty section leaves an earlier one in force. */
START_TEST(faulty_override)
{
	parse("[event a/x]\nEvent=e\n[event a/x]\nEvent=f\nBuffer=no\n");
	ck_assert(event("a", "x")->faulty);
	ck_assert_str_eq(request.selections[0].event, "e");
	ck_assert_uint_eq(event("a", "x")->line, 1);
}
END_TEST

/* ── what is asked of the texts ─────────────────────────────────────────────────────────── */

static int check(void)
{
	size_t size;
	FILE *complaints;
	int n;

	free(told);
	complaints = open_memstream(&told, &size);
	n = dropins_check(found, config.max_buffer, complaints);
	fclose(complaints);
	return n;
}

START_TEST(checking)
{
	parse("[event a/good]\nEvent=sched:sched_switch\nFilter=prev_pid != 0\n"
	      "[event a/none]\nBuffer=64K\n"
	      "[event a/off]\nEnabled=no\n"
	      "[event a/text]\nBuffer=64K\nEvent=sched:sched_switch\nEvent=no-such-event\n"
	      "[event a/filter]\nEvent=sched:sched_switch\nFilter=prev_pid !==\n"
	      "[event a/pmu]\nEvent=no_such_pmu/x=1/\n"
	      "[event a/may]\nEvent=no_such_pmu/x=1/\nOptional=yes\n");
	ck_assert_str_eq(told, "");
	ck_assert_int_eq(check(), 4);
	ck_assert_ptr_nonnull(strstr(told, "f:4: a/none has no Event="));
	ck_assert_ptr_nonnull(strstr(told, "f:11: "));
	ck_assert_ptr_nonnull(strstr(told, "f:14: "));
	ck_assert_ptr_nonnull(strstr(told, "f:16: "));
}
END_TEST

/* ── folders ────────────────────────────────────────────────────────────────────────────── */

static struct dropin_places places;

static void make_folders(void)
{
	places = (struct dropin_places){ .n = 3, .written = 1 };
	for (size_t i = 0; i < places.n; i++) {
		snprintf(places.folders[i], sizeof(places.folders[i]), "%s/%zu", dir, i);
		ck_assert_int_eq(mkdir(places.folders[i], 0755), 0);
	}
	places.n = 4; /* one does not exist */
	snprintf(places.folders[3], sizeof(places.folders[3]), "%s/none", dir);
}

static void put(size_t folder, const char *name, const char *text)
{
	char path[PATH_MAX + 64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", places.folders[folder], name);
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void put_link(size_t folder, const char *name, const char *to)
{
	char path[PATH_MAX + 64];

	snprintf(path, sizeof(path), "%s/%s", places.folders[folder], name);
	ck_assert_int_eq(symlink(to, path), 0);
}

static void load(void)
{
	size_t size;
	FILE *complaints;

	forget();
	free(told);
	complaints = open_memstream(&told, &size);
	ck_assert_int_eq(dropins_load(&places, &config, complaints, &found), 0);
	fclose(complaints);
}

START_TEST(precedence)
{
	make_folders();
	put(2, "10-a.conf", "[event a/hidden]\nEvent=e\n");
	put(0, "10-a.conf", "[event a/shown]\nEvent=e\n");
	put(2, "20-b.conf", "[event a/masked]\nEvent=e\n");
	put_link(0, "20-b.conf", "/dev/null");
	put(2, "30-c.conf", "[event a/emptied]\nEvent=e\n");
	put(1, "30-c.conf", "");
	/* Files are ordered by name, whatever the folder: the last one wins. */
	put(2, "90-z.conf", "[event a/shown]\nBuffer=8K\n");
	put(0, "50-m.conf", "[event a/shown]\nBuffer=16K\nPeriod=4\n");
	/* These are not drop-ins. */
	put(0, "README", "x");
	put(0, ".hidden.conf", "x");
	put(0, "10-a.conf~", "x");
	load();
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(found->n, 1);
	ck_assert(!found->incomplete);
	ck_assert_ptr_nonnull(event("a", "shown"));
	ck_assert_uint_eq(request.data_size, 8192);
	ck_assert_uint_eq(request.period, 4);
	ck_assert_ptr_nonnull(strstr(event("a", "shown")->path, "/2/90-z.conf"));
}
END_TEST

/* Files that members wrote for the next boot do not displace the administrator's. */
START_TEST(too_many_files)
{
	char name[32];

	make_folders();
	for (unsigned i = 0; i <= DROPINS_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "00-%u.conf", i);
		put(places.written, name, "#");
	}
	put(2, "90-z.conf", "[event a/shown]\nEvent=e\n");
	load();
	ck_assert_ptr_nonnull(event("a", "shown"));
	ck_assert_ptr_nonnull(strstr(told, "too many files"));
	ck_assert_ptr_nonnull(strstr(told, places.folders[places.written]));
}
END_TEST

START_TEST(files_that_cannot_be_read)
{
	char path[PATH_MAX + 64];
	_cleanup_free_ char *large = malloc((1 << 20) + 2);

	make_folders();
	memset(large, '#', (1 << 20) + 1);
	large[(1 << 20) + 1] = '\0';
	put(0, "a.conf", "[event a/x]\nEvent=e\n");
	put(0, "large.conf", large);
	put_link(0, "nowhere.conf", "/nonexistent/x");
	put_link(0, "folder.conf", "/");
	snprintf(path, sizeof(path), "%s/fifo.conf", places.folders[0]);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	load();
	ck_assert_ptr_nonnull(event("a", "x"));
	ck_assert(found->incomplete);
	ck_assert_uint_eq(found->faults, 4);
	ck_assert_ptr_nonnull(strstr(told, "/large.conf: The file is larger than 1 MiB"));
	ck_assert_ptr_nonnull(strstr(told, "/nowhere.conf: The symlink leads nowhere"));
	ck_assert_ptr_nonnull(strstr(told, "/folder.conf: This is no regular file"));
	ck_assert_ptr_nonnull(strstr(told, "/fifo.conf: This is no regular file"));
}
END_TEST

/* The daemon's own files about namespaces yield, whatever the order of names. */
START_TEST(written_namespaces)
{
	make_folders();
	put(1, "z.conf",
	    "[namespace a]\nOwner=1\nMode=0600\n[namespace b]\nOwner=2\n[event a/x]\nEvent=e\n");
	put(0, "a.conf", "[namespace a]\nOwner=3\n[event a/y]\nEvent=e\n");
	load();
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(config_namespace(&config, "a")->owner, 3);
	ck_assert_uint_eq(config_namespace(&config, "a")->mode, 0640);
	ck_assert_uint_eq(config_namespace(&config, "b")->owner, 2);
	ck_assert(config_namespace(&config, "b")->written);
	ck_assert(event("a", "x")->written && !event("a", "y")->written);
	put(0, "zz.conf", "[namespace b]\nMode=0644\n[event a/x]\nBuffer=8K\n");
	load();
	ck_assert_uint_eq(config_namespace(&config, "b")->owner, 0);
	ck_assert(!config_namespace(&config, "b")->written);
	ck_assert(!event("a", "x")->written);
}
END_TEST

/* A client that creates the administrator's event first, with --boot, changes nothing of it. */
START_TEST(written_events)
{
	static const char *const names[] = { "a.conf", "z.conf" };
	const struct dropin_event *e;

	make_folders();
	put(1, names[_i],
	    "[event a/x]\nEvent=theirs\nFilter=f\nMaxRate=1/s\nCreator=7\n"
	    "[event a/off]\nEvent=theirs\n[event a/bad]\nEvent=theirs\n"
	    "[event a/only]\nEvent=theirs\n");
	put(0, "m.conf",
	    "[event a/x]\nEvent=ours\nBuffer=8K\n[event a/off]\nEnabled=no\n"
	    "[event a/bad]\nEvent=ours\nBuffer=no\n");
	load();
	e = event("a", "x");
	ck_assert(!e->written && !e->faulty);
	ck_assert_uint_eq(e->creator, 0);
	ck_assert_uint_eq(request.count, 1);
	ck_assert_str_eq(request.selections[0].event, "ours");
	ck_assert_str_eq(request.selections[0].filter, "");
	ck_assert_uint_eq(request.data_size, 8192);
	ck_assert_uint_eq(request.max_rate, 0);
	ck_assert(!event("a", "off")->enabled);
	ck_assert(event("a", "bad")->faulty && !event("a", "bad")->request);
	ck_assert(event("a", "only")->written && event("a", "only")->request);
}
END_TEST

START_TEST(places_of_an_instance)
{
	struct dropin_places p;

	ck_assert_int_eq(dropin_places("", NULL, &p), 0);
	ck_assert_uint_eq(p.n, 4);
	ck_assert_str_eq(p.folders[0], PP_SYSCONFDIR "/perfpersist/events.d");
	ck_assert_str_eq(p.folders[1], "/run/perfpersist/events.d");
	ck_assert_str_eq(p.folders[p.written], "/var/lib/perfpersist/events.d");
	ck_assert_str_eq(p.folders[2], PP_VENDORDIR "/perfpersist/events.d");
	ck_assert_uint_eq(p.written, 3); /* it hides no other file */
	ck_assert_int_eq(dropin_places("demo", NULL, &p), 0);
	ck_assert_str_eq(p.folders[2], PP_VENDORDIR "/perfpersist-demo/events.d");
	ck_assert_int_eq(dropin_places("demo", "/tmp/x.conf", &p), 0);
	ck_assert_uint_eq(p.n, 2);
	ck_assert_str_eq(p.folders[0], "/tmp/x.conf.d");
	ck_assert_str_eq(p.folders[p.written], "/var/lib/perfpersist-demo/events.d");
	ck_assert_int_eq(dropin_places("../x", NULL, &p), -EINVAL);
}
END_TEST

/* ── what --boot writes ─────────────────────────────────────────────────────────────────── */

static struct pp_msg_create_request wanted;
static char sentence[512];

static int write_down(uint32_t creator, const struct namespace *ns)
{
	struct boot_file f = {
		.folder = places.folders[1],
		.request = &wanted,
		.creator = creator,
		.ns = ns,
	};

	return boot_file_write(&f, sentence, sizeof(sentence));
}

static void want(const char *event_text, const char *filter)
{
	wanted = (struct pp_msg_create_request){ .ns = "a", .name = "x", .count = 1 };
	snprintf(wanted.selections[0].event, sizeof(wanted.selections[0].event), "%s", event_text);
	snprintf(wanted.selections[0].filter, sizeof(wanted.selections[0].filter), "%s", filter);
}

START_TEST(written_and_read_back)
{
	struct namespace ns = {
		.name = "a",
		.owner = 5,
		.group = 6,
		.mode = 0660,
		.live = NAMESPACE_LIVE_READERS,
	};

	make_folders();
	want("cpu/event=0x3c,umask=0/u", "comm == \"x ; y # [z]\" && ip > 0");
	wanted.count = 2;
	strcpy(wanted.selections[1].event, "sched:*");
	strcpy(wanted.cpus, "1,3");
	wanted.data_size = 12345;
	wanted.period = 99;
	wanted.max_rate = 10;
	wanted.max_stack = 32;
	wanted.stack_user = 16384;
	wanted.target.kind = PP_TARGET_CGROUP;
	strcpy(wanted.target.cgroup, "/a/b");
	wanted.flags = PP_EVENT_BOOT | PP_EVENT_FREQ | PP_EVENT_CALLCHAIN | PP_EVENT_NO_USER_CHAIN |
		       PP_EVENT_WAKEUP | PP_EVENT_NO_SHARE;
	ck_assert_int_eq(write_down(5, &ns), 0);
	load();
	ck_assert_str_eq(told, "");
	ck_assert_uint_eq(event("a", "x")->creator, 5);
	wanted.flags &= ~PP_EVENT_BOOT;
	ck_assert_mem_eq(&request, &wanted, sizeof(wanted));
	ck_assert_uint_eq(config.namespaces[0].owner, 5);
	ck_assert_uint_eq(config.namespaces[0].group, 6);
	ck_assert_uint_eq(config.namespaces[0].mode, 0660);
	ck_assert_int_eq(config.namespaces[0].live, NAMESPACE_LIVE_READERS);
	/* Once more, in its place; then removed. */
	want("cpu-clock", "");
	ck_assert_int_eq(write_down(0, NULL), 0);
	load();
	ck_assert_uint_eq(event("a", "x")->creator, 0);
	ck_assert_uint_eq(config.n_namespaces, 0);
	ck_assert_int_eq(
		boot_file_remove(places.folders[1], "a", "x", true, sentence, sizeof(sentence)), 0);
	load();
	ck_assert_uint_eq(found->n, 0);
	ck_assert_int_eq(
		boot_file_remove(places.folders[1], "a", "x", true, sentence, sizeof(sentence)), 0);
	/* The folder is empty otherwise, without temporary files. */
	ck_assert_int_eq(rmdir(places.folders[1]), 0);
	ck_assert_int_eq(
		boot_file_remove(places.folders[1], "a", "x", true, sentence, sizeof(sentence)), 0);
	ck_assert_int_eq(write_down(0, NULL), 0); /* this creates the folder */
}
END_TEST

/* An event's texts cannot inject sections, keys or comments. */
START_TEST(texts_that_would_say_more)
{
	static const char *const texts[] = {
		"x\n[event b/y]\nEvent=z",
		"x\nOptional=yes",
		"x\nEnabled=no",
		" x",
		"x ",
		"x\r",
		"x ;y",
		"x\nFilter=f",
		"x\n#",
	};

	make_folders();
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		want(texts[i], "");
		ck_assert_msg(write_down(0, NULL) == -EINVAL, "%s", texts[i]);
		want("cpu-clock", texts[i]);
		ck_assert_msg(write_down(0, NULL) == -EINVAL, "%s", texts[i]);
		ck_assert_ptr_nonnull(strstr(sentence, "a/x cannot be created with --boot"));
	}
	load();
	ck_assert_uint_eq(found->n, 0);
}
END_TEST

START_TEST(no_place_to_write)
{
	make_folders();
	want("cpu-clock", "");
	snprintf(places.folders[1], sizeof(places.folders[1]), "/proc/nothing/events.d");
	ck_assert_int_eq(write_down(0, NULL), -ENOENT);
	ck_assert_ptr_nonnull(strstr(sentence, "/proc/nothing/events.d/a.x.conf: No such file"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("dropins");
	TCase *t = tcase_create("files");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, every_key);
	tcase_add_test(t, templates);
	tcase_add_test(t, as_long_as_can_be);
	tcase_add_test(t, later_sections);
	tcase_add_test(t, faults);
	tcase_add_test(t, too_many_texts);
	tcase_add_test(t, faulty_override);
	tcase_add_test(t, checking);
	tcase_add_test(t, precedence);
	tcase_add_test(t, too_many_files);
	tcase_add_test(t, files_that_cannot_be_read);
	tcase_add_test(t, written_namespaces);
	tcase_add_loop_test(t, written_events, 0, 2);
	tcase_add_test(t, places_of_an_instance);
	tcase_add_test(t, written_and_read_back);
	tcase_add_test(t, texts_that_would_say_more);
	tcase_add_test(t, no_place_to_write);
	suite_add_tcase(s, t);
	return run_suite(s);
}
