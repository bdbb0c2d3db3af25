// SPDX-License-Identifier: LGPL-2.1-or-later
/* The spool of snapshots: names there and back, and which files go when there are too many. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/events/spool.h"
#include "client/perfpersist.h"
#include "proto/fired.h"
#include "proto/protocol.h"
#include "tests/unit/needs.h"

#define NOBODY 65534
#define DAY (24 * 3600 * 1000000000LL)
#define FILE_BYTES 65536

static uint64_t removed; /* bytes, by spool_remove_one() */
static char dir[64];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/perfpersist-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void path_of(const char *name, char ret[512])
{
	snprintf(ret, 512, "%s/%s", dir, name);
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	ck_assert_int_eq(system(command), 0);
}

/* ── names ──────────────────────────────────────────────────────────────────────────────── */

static void check_round_trip(struct spooled *f, const char *comm)
{
	struct spooled again;

	spool_name(f);
	ck_assert_uint_lt(strlen(f->name), SPOOL_NAME_SIZE - 1);
	ck_assert_ptr_null(strchr(f->name, '/'));
	ck_assert_int_eq(spool_parse(f->name, &again), 0);
	ck_assert_str_eq(again.name, f->name);
	ck_assert_str_eq(again.ns, f->ns);
	ck_assert_str_eq(again.trigger, f->trigger);
	ck_assert_str_eq(again.comm, comm);
	ck_assert_uint_eq(again.number, f->number);
	ck_assert_uint_eq(again.id, f->id);
	ck_assert_uint_eq(again.pid, f->pid);
	ck_assert_uint_eq(again.time, f->time - f->time % 1000000000);
}

/* A task calls itself what it likes, so that its firings could escape the limits. */
START_TEST(names_and_back)
{
	static const struct {
		const char *comm, *shown;
		uint32_t pid;
	} table[] = {
		{ "postgres", "postgres", 4711 },
		{ "kworker/0:1-ev", "kworker_0_1_ev", 7 },
		{ "../../etc", "______etc", 7 },
		{ "a.b-1.2.data", "a_b_1_2_data", 7 },
		{ "-", "_", 7 },
		{ "", "_", 7 },
		{ " \n\t\033[2J", "_____2J", 7 },
		{ "\xc3\xb6\xff", "___", 7 },
		{ "fifteen_letters", "fifteen_letters", UINT32_MAX },
		{ "swapper/3", "swapper_3", 0 },
		{ "hand", "hand", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct spooled f = {
			.ns = "web",
			.trigger = "slow-fsync",
			.number = 3,
			.id = 31,
			.pid = table[i].pid,
			.time = 1700000000999999999,
		};

		memcpy(f.comm, table[i].comm, strlen(table[i].comm));
		check_round_trip(&f, table[i].shown);
	}
}
END_TEST

START_TEST(every_byte_of_a_comm)
{
	struct spooled f = { .ns = "a", .trigger = "b", .number = 1, .id = 1, .pid = 1 }, again;

	for (unsigned byte = 1; byte < 256; byte++) {
		memset(f.comm, (int)byte, sizeof(f.comm) - 1);
		spool_name(&f);
		ck_assert_int_eq(spool_parse(f.name, &again), 0);
	}
	memset(f.comm, 'x', sizeof(f.comm)); /* without its NUL */
	spool_name(&f);
	ck_assert_int_eq(spool_parse(f.name, &again), 0);
	ck_assert_uint_eq(strlen(again.comm), sizeof(f.comm) - 1);
}
END_TEST

START_TEST(longest_names)
{
	struct spooled f = {
		.number = UINT64_MAX,
		.id = UINT64_MAX,
		.pid = UINT32_MAX,
		.comm = "fifteen_letters",
		.time = UINT64_MAX / 2,
	};

	memset(f.ns, 'n', PP_NAME_SIZE - 1);
	memset(f.trigger, 't', PP_NAME_SIZE - 1);
	check_round_trip(&f, "fifteen_letters");
	f.time = 0;
	check_round_trip(&f, "fifteen_letters");
}
END_TEST

static const char *const foreign[] = {
	"",
	".",
	"..",
	"notes.txt",
	"perf.data",
	".2026-01-02T03-04-05Z.web.slow.1.sh-7.31.data-0123456789abcdef", /* being written */
	"2026-01-02T03-04-05Z.web.slow.1.sh-7.31.data.old",
	"2026-01-02T03-04-05Z.web.slow.1.sh-7.31.txt",
	"2026-01-02T03-04-05Z.web.slow.1.sh-7.31.",
	"2026-01-02T03-04-05Z.web.slow.1.sh-7.31",
	"2026-01-02T03-04-05Z.web.slow.1.sh-7.data",
	"2026-01-02T03-04-05Z.web.slow.1.sh.31.data",
	"2026-01-02T03-04-05Z.web.slow.1.-7.31.data",
	"2026-01-02T03-04-05Z.web..1.sh-7.31.data",
	"2026-01-02T03-04-05Z.w b.slow.1.sh-7.31.data",
	"2026-01-02T03-04-05Z.web.$(slow).1.sh-7.31.data",
	"2026-01-02T03-04-05Z.web.-slow.1.sh-7.31.data",
	"2026-01-02T03-04-05Z.web\n.slow.1.sh-7.31.data",
	"2026-01-02T03-04-05Z.web.slow.one.sh-7.31.data",
	"2026-01-02T03-04-05Z.web.slow.-1.sh-7.31.data",
	"2026-01-02T03-04-05Z.web.slow.1.sh-4294967296.31.data",
	"2026-01-02T03-04-05Z.web.slow.1.sh-7.18446744073709551616.data",
	"2026-01-02T03-04-05Z.web.slow.1.sixteen_letters_-7.31.data",
	"2026-13-02T03-04-05Z.web.slow.1.sh-7.31.data",
	"2026-01-02T03-04-05.web.slow.1.sh-7.31.data",
	"yesterday.web.slow.1.sh-7.31.data",
	/* Almost: we write no such numbers and times. */
	"2026-1-2T3-4-5Z.web.slow.1.sh-7.31.data",
	"2026-02-31T03-04-05Z.web.slow.1.sh-7.31.data",
	"2026-01-02T03-04-05Z.web.slow.01.sh-7.31.data",
	"2026-01-02T03-04-05Z.web.slow.1.sh-7.031.data",
	"2026-01-02T03-04-05Z.web.slow.1.s h-7.31.data",
};

START_TEST(names_that_are_not_ours)
{
	struct spooled f;
	char name[400];

	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		ck_assert_msg(spool_parse(foreign[i], &f) == -EINVAL, "%s", foreign[i]);
	snprintf(name, sizeof(name), "2026-01-02T03-04-05Z.%064d.slow.1.sh-7.31.data", 0);
	ck_assert_int_eq(spool_parse(name, &f), -EINVAL);
	snprintf(name, sizeof(name), "2026-01-02T03-04-05Z.web.%064d.1.sh-7.31.data", 0);
	ck_assert_int_eq(spool_parse(name, &f), -EINVAL);
	snprintf(name, sizeof(name), "%0300d", 0);
	ck_assert_int_eq(spool_parse(name, &f), -EINVAL);
}
END_TEST

START_TEST(places)
{
	char place[256];

	ck_assert_int_eq(spool_place("", place, sizeof(place)), 0);
	ck_assert_str_eq(place, "/var/lib/perfpersist/snapshots");
	ck_assert_int_eq(spool_place("demo", place, sizeof(place)), 0);
	ck_assert_str_eq(place, "/var/lib/perfpersist-demo/snapshots");
	ck_assert_int_eq(spool_place("../x", place, sizeof(place)), -EINVAL);
	ck_assert_int_eq(spool_place("", place, 8), -ENAMETOOLONG);
}
END_TEST

/* ── the directory ──────────────────────────────────────────────────────────────────────── */

/* The clock that the spool sees, and by which files are made. */
static int64_t clock_ahead; /* s */

int clock_gettime(clockid_t id, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret);

	if (id == CLOCK_REALTIME)
		ret->tv_sec += clock_ahead;
	return r;
}

static void make_file(const char *name, int64_t age)
{
	struct timespec times[2] = { 0 };
	char path[512];
	int fd;

	path_of(name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(posix_fallocate(fd, 0, FILE_BYTES), 0);
	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= (time_t)(age / 1000000000);
	times[1] = times[0];
	ck_assert_int_eq(futimens(fd, times), 0);
	ck_assert_int_eq(fsync(fd), 0);
	close(fd);
}

/* The times of firings run against the ids: a clock that was set back. */
static struct spooled firing(const char *trigger, uint64_t id)
{
	struct spooled f = {
		.ns = "web",
		.number = id,
		.id = id,
		.comm = "sh",
		.pid = 7,
		.time = (2000000000 - id) * 1000000000,
	};

	snprintf(f.trigger, sizeof(f.trigger), "%s", trigger);
	spool_name(&f);
	return f;
}

static void make_firing(const char *trigger, uint64_t id, int64_t age)
{
	struct spooled f = firing(trigger, id);

	make_file(f.name, age);
}

/* The ids of the files as digits, in the spool's order. */
static const char *listed(void)
{
	static char ids[64];
	_cleanup_free_ struct spooled *all = NULL;
	size_t n;

	ck_assert_int_eq(spool_list(dir, &all, &n), 0);
	ck_assert_uint_lt(n, sizeof(ids));
	for (size_t i = 0; i < n; i++)
		ids[i] = (char)('0' + all[i].id);
	ids[n] = 0;
	return ids;
}

START_TEST(ids_give_the_order)
{
	_cleanup_free_ struct spooled *all = NULL;
	size_t n = 0;

	ck_assert_str_eq(listed(), "");
	make_firing("a", 2, DAY);
	make_firing("b", 1, 0);
	make_firing("a", 4, 3 * DAY);
	make_firing("a", 3, 2 * DAY);
	ck_assert_str_eq(listed(), "1234");
	ck_assert_int_eq(spool_list(dir, &all, &n), 0);
	ck_assert_str_eq(all[0].trigger, "b");
	ck_assert_uint_ge(all[0].bytes, FILE_BYTES);
	ck_assert_uint_gt(all[0].mtime, all[1].mtime);
	ck_assert_int_eq(spool_remove_one(dir, NULL, 0, &removed), 1);
	ck_assert_uint_eq(removed, all[0].bytes);
	ck_assert_str_eq(listed(), "234");
}
END_TEST

/* More than the first array holds. */
START_TEST(many_files)
{
	_cleanup_free_ struct spooled *all = NULL;
	size_t n = 0;
	char path[512];

	for (uint64_t id = 150; id > 0; id--) {
		struct spooled f = firing("a", id);

		path_of(f.name, path);
		ck_assert_int_eq(mknod(path, S_IFREG | 0600, 0), 0);
	}
	ck_assert_int_eq(spool_list(dir, &all, &n), 0);
	ck_assert_uint_eq(n, 150);
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(all[i].id, i + 1);
}
END_TEST

/* What is not ours is neither listed nor removed, nor does it count. */
START_TEST(strangers_stay)
{
	const struct spool_limits none = { .files = 1, .bytes = 1, .age = 1 };
	struct spooled f;
	char path[512], elsewhere[512];
	struct stat st;

	for (size_t i = 3; i < ARRAY_SIZE(foreign); i++)
		make_file(foreign[i], DAY);
	make_file("elsewhere", DAY);
	path_of("elsewhere", elsewhere);
	f = firing("a", 1);
	path_of(f.name, path);
	ck_assert_int_eq(symlink(elsewhere, path), 0);
	f = firing("a", 2);
	path_of(f.name, path);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	f = firing("a", 3);
	path_of(f.name, path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);

	ck_assert_str_eq(listed(), "");
	f = firing("a", 9);
	ck_assert_int_eq(spool_make_room(dir, &none, &f, 1), 0);
	ck_assert_int_eq(spool_remove_one(dir, NULL, 0, &removed), 0);
	make_firing("a", 4, DAY);
	ck_assert_int_eq(spool_make_room(dir, &none, &f, 1), 1);
	for (uint64_t id = 1; id <= 3; id++) {
		f = firing("a", id);
		path_of(f.name, path);
		ck_assert_int_eq(lstat(path, &st), 0);
	}
	for (size_t i = 3; i < ARRAY_SIZE(foreign); i++) {
		path_of(foreign[i], path);
		ck_assert_int_eq(lstat(path, &st), 0);
	}
	ck_assert_int_eq(lstat(elsewhere, &st), 0);
}
END_TEST

START_TEST(directories_that_cannot_be_read)
{
	const struct spool_limits limits = { .files = 1 };
	struct spooled *all = NULL;
	struct spooled f = firing("a", 9);
	char path[512], missing[512];
	size_t n = 1;

	path_of("missing", missing);
	ck_assert_int_eq(spool_list(missing, &all, &n), 0);
	ck_assert_uint_eq(n, 0);
	ck_assert_ptr_null(all);
	ck_assert_int_eq(spool_make_room(missing, &limits, &f, 1), 0);
	ck_assert_int_eq(spool_remove_one(missing, NULL, 0, &removed), 0);

	make_file("file", 0);
	path_of("file", path);
	ck_assert_int_eq(spool_list(path, &all, &n), -ENOTDIR);
	ck_assert_int_eq(spool_make_room(path, &limits, &f, 1), -ENOTDIR);
	ck_assert_int_eq(spool_remove_one(path, NULL, 0, &removed), -ENOTDIR);
}
END_TEST

START_TEST(directories_that_are_not_allowed)
{
	const struct spool_limits limits = { .files = 1 };
	struct spooled *all = NULL;
	struct spooled f = firing("a", 9);
	size_t n;

	make_firing("a", 1, 0);
	make_firing("a", 2, 0);
	ck_assert_int_eq(chmod(dir, 0711), 0);
	ck_assert_int_eq(seteuid(NOBODY), 0);
	ck_assert_int_eq(spool_list(dir, &all, &n), -EACCES);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	ck_assert_int_eq(seteuid(NOBODY), 0);
	ck_assert_int_eq(spool_make_room(dir, &limits, &f, 1), -EACCES);
	ck_assert_int_eq(spool_remove_one(dir, NULL, 0, &removed), -EACCES);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_str_eq(listed(), "12");
}
END_TEST

/* ── limits ─────────────────────────────────────────────────────────────────────────────── */

/* Files 1 to 6: of a, b, a, b, a, a; as many days old as 7 less their id. */
static const struct {
	const char *what;
	struct spool_limits limits; /* bytes: in files */
	const char *coming;	    /* its trigger; NULL: none */
	unsigned bytes;		    /* of what is coming, in files */
	const char *left;
} limits_table[] = {
	{ "no limits", {}, "a", 1, "123456" },
	{ "no limits, none coming", {}, NULL, 0, "123456" },
	{ "room for one more", { .files = 7 }, "a", 1, "123456" },
	{ "one too many", { .files = 6 }, "a", 1, "23456" },
	{ "as many as there may be", { .files = 6 }, NULL, 0, "123456" },
	{ "half of them", { .files = 3 }, NULL, 0, "456" },
	{ "one", { .files = 1 }, NULL, 0, "6" },
	{ "one, and it comes", { .files = 1 }, "a", 1, "" },
	{ "of its trigger", { .files_of_trigger = 3 }, "a", 1, "2456" },
	{ "of its trigger, one", { .files_of_trigger = 1 }, "a", 1, "24" },
	{ "of the other trigger", { .files_of_trigger = 2 }, "b", 1, "13456" },
	{ "of a new trigger", { .files_of_trigger = 1 }, "c", 1, "123456" },
	{ "of triggers, none coming", { .files_of_trigger = 1 }, NULL, 0, "123456" },
	{ "of its trigger and all", { .files = 5, .files_of_trigger = 4 }, "b", 1, "3456" },
	{ "bytes for all", { .bytes = 7 }, "a", 1, "123456" },
	{ "bytes for all but one", { .bytes = 6 }, "a", 1, "23456" },
	{ "bytes for a large one", { .bytes = 6 }, "a", 4, "56" },
	{ "bytes for none", { .bytes = 1 }, "a", 3, "" },
	{ "bytes, none coming", { .bytes = 2 }, NULL, 0, "56" },
	{ "bytes, and the newest stays", { .bytes = 0 }, NULL, 0, "123456" },
	{ "age", { .age = 3 * DAY + DAY / 2 }, NULL, 0, "456" },
	{ "age of all", { .age = DAY / 2 }, NULL, 0, "6" },
	{ "age of all, one coming", { .age = DAY / 2 }, "a", 1, "" },
	{ "all limits",
	  { .files = 6, .files_of_trigger = 2, .bytes = 5, .age = 5 * DAY + DAY / 2 },
	  "a",
	  1,
	  "246" },
};

static bool has(const struct spooled *f, uint64_t trigger, uint64_t number, uint64_t id)
{
	return spool_has(
		dir, f,
		&(struct perfpersist_tape){ .trigger = trigger, .number = number, .id = id });
}

/* Behind what perf reads; the id in the name does not matter. */
START_TEST(a_file_knows_its_tapes)
{
	struct perfpersist_tape tapes[PP_TARGETS_MAX] = {};
	struct spooled f = firing("t", 1000);
	char path[512];
	int fd;

	make_firing("t", 1000, 0);
	path_of(f.name, path);
	ck_assert(!has(&f, 8, 9, 5));
	for (size_t i = 0; i < PP_TARGETS_MAX; i++)
		tapes[i] = (struct perfpersist_tape){ .trigger = 8, .number = 9, .id = i + 1 };
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(spool_mark(fd, tapes, 3), 0);
	ck_assert(has(&f, 8, 9, 1) && has(&f, 8, 9, 3));
	ck_assert(!has(&f, 8, 9, 4) && !has(&f, 8, 9, 1000));
	/* Another firing of the same event, which is its own tape; and of a trigger that was made anew. */
	ck_assert(!has(&f, 8, 10, 1) && !has(&f, 7, 9, 1));
	ck_assert_int_eq(spool_mark(fd, tapes, PP_TARGETS_MAX), 0);
	ck_assert(has(&f, 8, 9, 1) && has(&f, 8, 9, PP_TARGETS_MAX));
	ck_assert(!has(&f, 8, 9, PP_TARGETS_MAX + 1));
	/* Cut, another's last bytes, gone, or no file. */
	ck_assert_int_eq(ftruncate(fd, lseek(fd, 0, SEEK_END) - 1), 0);
	ck_assert(!has(&f, 8, 9, 1));
	ck_assert_int_eq(ftruncate(fd, 7), 0);
	ck_assert(!has(&f, 8, 9, 1));
	close(fd);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert(!has(&f, 8, 9, 1));
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert(!has(&f, 8, 9, 1));
	ck_assert_int_eq(spool_mark(-1, tapes, 1), -EBADF);
}
END_TEST

START_TEST(limits)
{
	static const char *const triggers[] = { "a", "b", "a", "b", "a", "a" };
	_cleanup_free_ struct spooled *all = NULL;
	struct spool_limits l = limits_table[_i].limits;
	struct spooled coming = firing(limits_table[_i].coming ?: "", 9);
	size_t n, before;
	int r;

	for (uint64_t id = 1; id <= ARRAY_SIZE(triggers); id++)
		make_firing(triggers[id - 1], id, (int64_t)(7 - id) * DAY);
	ck_assert_int_eq(spool_list(dir, &all, &n), 0);
	before = n;
	l.bytes *= all[0].bytes;
	r = spool_make_room(dir, &l, limits_table[_i].coming ? &coming : NULL,
			    limits_table[_i].bytes * all[0].bytes);
	ck_assert_msg(!strcmp(listed(), limits_table[_i].left), "%s: %s", limits_table[_i].what,
		      listed());
	ck_assert_int_eq(r, before - strlen(limits_table[_i].left));
	/* What is within the limits stays so. */
	r = spool_make_room(dir, &l, limits_table[_i].coming ? &coming : NULL,
			    limits_table[_i].bytes * all[0].bytes);
	ck_assert_int_eq(r, 0);
}
END_TEST

/* Who fires often removes his own, once he has as much as others have. */
START_TEST(each_namespace_keeps_its_share)
{
	const struct spool_limits files = { .files = 6 };
	struct spool_limits bytes = {};
	_cleanup_free_ struct spooled *all = NULL;
	struct spooled f = firing("a", 9);
	size_t n;

	for (uint64_t id = 1; id <= 6; id++) {
		struct spooled made = firing("a", id);

		snprintf(made.ns, sizeof(made.ns), id <= 2 ? "ops" : "web");
		spool_name(&made);
		make_file(made.name, 0);
	}
	ck_assert_int_eq(spool_list(dir, &all, &n), 0);
	ck_assert_int_eq(spool_make_room(dir, &files, &f, 1), 1);
	ck_assert_str_eq(listed(), "12456");
	/* What comes is another's, and the most are still his. */
	snprintf(f.ns, sizeof(f.ns), "new");
	bytes.bytes = 5 * all[0].bytes;
	ck_assert_int_eq(spool_make_room(dir, &bytes, &f, all[0].bytes), 1);
	ck_assert_str_eq(listed(), "1256");
	/* As many as the others: the oldest. */
	ck_assert_int_eq(spool_remove_one(dir, NULL, 0, &removed), 1);
	ck_assert_str_eq(listed(), "256");
	/* On a full disk, too, what comes counts. */
	snprintf(f.ns, sizeof(f.ns), "ops");
	ck_assert_int_eq(spool_remove_one(dir, &f, 5 * all[0].bytes, &removed), 1);
	ck_assert_str_eq(listed(), "56");
	/* It may have most, and nothing here. */
	snprintf(f.ns, sizeof(f.ns), "new");
	bytes.bytes = 4 * all[0].bytes;
	ck_assert_int_eq(spool_make_room(dir, &bytes, &f, 3 * all[0].bytes), 1);
	ck_assert_str_eq(listed(), "6");
}
END_TEST

/* The newest stays even if it alone is over every limit. */
START_TEST(the_newest_stays)
{
	const struct spool_limits l = { .files = 1, .bytes = 1, .age = 1 };

	make_firing("a", 1, 3 * DAY);
	make_firing("a", 2, 4 * DAY);
	ck_assert_int_eq(spool_make_room(dir, &l, NULL, 0), 1);
	ck_assert_str_eq(listed(), "2");
	ck_assert_int_eq(spool_make_room(dir, &l, NULL, 0), 0);
	ck_assert_str_eq(listed(), "2");
}
END_TEST

/* Files from the future: the clock was set back. They go by their number, not by their age. */
START_TEST(files_from_the_future)
{
	const struct spool_limits age = { .age = 1 }, files = { .files = 1 };
	struct spooled f = firing("a", 9);

	make_firing("a", 1, -DAY);
	make_firing("a", 2, -DAY);
	ck_assert_int_eq(spool_make_room(dir, &age, &f, 1), 0);
	ck_assert_int_eq(spool_make_room(dir, &files, &f, 1), 2);
}
END_TEST

/* Whatever the clock says: never more than the limits allow, and the newest stays. */
START_TEST(a_clock_that_jumps)
{
	static const int64_t days[] = { 0, 1, 0, -1, 0, 400, -400, 0, 0, 0, 1, -1 };
	const struct spool_limits l = { .files = 4, .files_of_trigger = 3, .age = DAY / 2 };

	for (uint64_t id = 1; id <= 5 * ARRAY_SIZE(days); id++) {
		_cleanup_free_ struct spooled *all = NULL;
		struct spooled coming = firing(id % 4 ? "a" : "b", id);
		size_t n = 0, of_a = 0;

		clock_ahead = 86400 * days[id % ARRAY_SIZE(days)];
		/* Nothing comes, and then one more. */
		ck_assert_int_ge(spool_make_room(dir, &l, NULL, 0), 0);
		ck_assert_int_eq(spool_list(dir, &all, &n), 0);
		ck_assert(id == 1 || (n > 0 && all[n - 1].id == id - 1));
		ck_assert_int_ge(spool_make_room(dir, &l, &coming, 0), 0);
		make_file(coming.name, 0);
		free(TAKE_PTR(all));
		ck_assert_int_eq(spool_list(dir, &all, &n), 0);
		ck_assert_uint_le(n, l.files);
		for (size_t i = 0; i < n; i++)
			of_a += !strcmp(all[i].trigger, "a");
		ck_assert_uint_le(of_a, l.files_of_trigger);
		ck_assert_uint_eq(all[n - 1].id, id);
		/* Those of a clock that was ahead stay as long as there is room. */
		for (size_t i = 0; i + 1 < n; i++)
			ck_assert_uint_lt(all[i].id, all[i + 1].id);
		ck_assert(n > 1 || id == 1 || clock_ahead > 0);
	}
	clock_ahead = 0;
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spool");
	TCase *t = tcase_create("names");

	tcase_add_test(t, names_and_back);
	tcase_add_test(t, every_byte_of_a_comm);
	tcase_add_test(t, longest_names);
	tcase_add_test(t, names_that_are_not_ours);
	tcase_add_test(t, places);
	suite_add_tcase(s, t);
	t = tcase_create("files");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, ids_give_the_order);
	tcase_add_test(t, many_files);
	tcase_add_test(t, strangers_stay);
	tcase_add_test(t, directories_that_cannot_be_read);
	tcase_add_test(t, a_file_knows_its_tapes);
	add_test_unless(no_root(), t, directories_that_are_not_allowed);
	tcase_add_loop_test(t, limits, 0, ARRAY_SIZE(limits_table));
	tcase_add_test(t, each_namespace_keeps_its_share);
	tcase_add_test(t, the_newest_stays);
	tcase_add_test(t, files_from_the_future);
	tcase_add_test(t, a_clock_that_jumps);
	suite_add_tcase(s, t);
	return run_suite(s);
}
