// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of rings on a real bpffs: shared, deleted, taken over, and the engine killed meanwhile. */
#include <limits.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "daemon/engine/budget.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/takeover.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/registry/wakeups.h"
#include "daemon/log.h"
#include "needs.h"
#include "old-registry.h"
#include "proto/name-record.h"

static char registry[] = "/tmp/perfpersist-names-XXXXXX";

static void setup(void)
{
	ck_assert_int_eq(pins_open(registry), 0);
}

static void teardown(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(umount2(registry, MNT_DETACH), 0);
}

/* ── what must always be so ─────────────────────────────────────────────────────────────── */

/* What the texts are: the oldest name's, with the rights of its namespace. */
static void check_texts(const struct pp_event *e, const char *dir)
{
	char info[PINS_PATH_SIZE + 8];
	struct pp_event meta;
	struct stat st;

	ck_assert_int_eq(event_read(dir, &meta), 0);
	ck_assert_mem_eq(&meta, e, sizeof(meta));
	snprintf(info, sizeof(info), "%s/info", dir);
	ck_assert_int_eq(stat(info, &st), 0);
	ck_assert_uint_eq(st.st_uid, BROKER);
	ck_assert_uint_eq(st.st_gid, e->spec.group);
	ck_assert_uint_eq(st.st_mode & 07777, 0440);
	ck_assert_int_eq(stat(dir, &st), 0);
	ck_assert_uint_eq(st.st_gid, e->spec.group);
	ck_assert_uint_eq(st.st_mode & 07777, 0751);
}

static void check_name(const struct pp_event *e)
{
	char path[PINS_PATH_SIZE], dir[PINS_PATH_SIZE], target[PINS_PATH_SIZE] = "",
							is[PINS_PATH_SIZE];
	struct pp_event again;
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", e->spec.ns, e->spec.name);
	ck_assert_int_gt(readlink(path, target, sizeof(target) - 1), 0);
	pins_event(e->origin, dir);
	ck_assert_str_eq(target + strlen("../"), dir);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert(S_ISDIR(st.st_mode));
	ck_assert_uint_eq(e->memory, e->shares ? 0 : EVENT_BYTES);
	ck_assert_int_eq(names_find(e->id, is), 0);
	ck_assert_str_eq(is, dir);
	ck_assert_int_eq(names_read(e->id, &again), 0);
	ck_assert_mem_eq(&again, e, sizeof(again));
	ck_assert_int_eq(stat(e->spec.ns, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0751);
	if (!e->shares)
		check_texts(e, dir);
}

static int is_somebodys(const char *path, void *userdata _unused_)
{
	ck_assert_msg(by_path(path) != NULL, "%s is nobody's", path);
	return 0;
}

static int is_named(const char *dir, const char *leaf, void *userdata)
{
	struct stat st;
	char path[PINS_PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", dir, leaf);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert(S_ISDIR(st.st_mode));
	++*(size_t *)userdata;
	return 0;
}

/* Every link and directory belongs to an event, and every event has its own. */
static void check_registry(void)
{
	size_t n = 0, events = 0;
	struct stat st;

	enumerate();
	for (size_t i = 0; i < n_found; i++) {
		check_name(&found[i]);
		events += found[i].shares == 0;
	}
	ck_assert_int_eq(pins_foreach_link(is_somebodys, NULL), 0);
	ck_assert_int_eq(pins_foreach_old(is_somebodys, NULL), 0);
	ck_assert_int_eq(pins_foreach_leaf("by-id", is_named, &n), 0);
	ck_assert_uint_eq(n, events);
	ck_assert_int_eq(stat("by-id", &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0711);
}

static unsigned n_released;

static void on_released(const struct pp_orphans *r, void *userdata _unused_)
{
	n_released += r->bytes == 0;
}

/* Rings without a holder are freed, when the kernel is done with them. */
static void wait_released(uint64_t bytes)
{
	reaper_kick();
	reaper_wait(INT_MAX);
	while (orphans_bytes() > bytes) {
		orphans_hurry();
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0); /* a grace period */
		poll(NULL, 0, orphans_timeout());
		orphans_look(on_released, NULL);
	}
	ck_assert_uint_eq(orphans_bytes(), bytes);
}

static int is_swept(const char *dir _unused_, const char *leaf, void *userdata _unused_)
{
	ck_assert_msg(strchr(leaf, '.') || !strcmp(leaf, "by-id") || !strcmp(leaf, "+last-id"),
		      "%s is left", leaf);
	return 0;
}

static void delete_names(void)
{
	struct pp_orphans orphans;
	char path[PINS_PATH_SIZE];

	for (enumerate(); n_found; enumerate()) {
		snprintf(path, sizeof(path), "%s/%s", found[0].spec.ns, found[0].spec.name);
		delete_path(path, &orphans);
		check_registry();
	}
}

static void delete_all(void)
{
	delete_names();
	wait_released(0);
	ck_assert_int_eq(orphans_timeout(), -1);
	ck_assert_int_eq(pins_foreach_leaf(".", is_swept, NULL), 0);
}

/* ── four names, two sets of rings ──────────────────────────────────────────────────────── */

static uint64_t id_a, id_b, id_c;

static void make_world(void)
{
	id_a = make_event("web", "a", 100).id;
	make_event("web", "z", 100);
	id_b = make_alias(id_a, "db", "b", 200).id;
	id_c = make_alias(id_b, "web", "c", 100).id;
	check_registry();
}

static bool world_is_whole(void)
{
	return n_found == 4 && by_path("web/a") && by_path("web/z") && by_path("db/b") &&
	       by_path("web/c");
}

START_TEST(sharing)
{
	const struct pp_event *b;

	make_world();
	ck_assert(world_is_whole());
	b = by_path("db/b");
	ck_assert_uint_eq(b->shares, id_a);
	ck_assert_uint_eq(b->origin, id_a);
	ck_assert_uint_eq(b->spec.creator, 200);
	ck_assert_uint_eq(b->spec.group, 200);
	ck_assert_uint_eq(b->spec.flags, PP_EVENT_ALL_CPUS | PP_EVENT_CONFIGURED);
	ck_assert_str_eq(b->spec.event, "sched:sched_switch");
	ck_assert_uint_eq(by_path("web/c")->shares, id_a);
	delete_all();
}
END_TEST

START_TEST(inheriting)
{
	const struct pp_event *b, *c;
	struct pp_orphans orphans;
	struct pp_event e;

	make_world();
	delete_path("web/a", &orphans);
	ck_assert_uint_eq(orphans.id, 0);
	check_registry();
	ck_assert_int_eq(names_read(id_a, &e), -ENOENT);
	b = by_path("db/b");
	c = by_path("web/c");
	ck_assert_uint_eq(b->id, id_b);
	ck_assert_uint_eq(b->shares, 0);
	ck_assert_uint_eq(b->origin, id_a);
	ck_assert_uint_eq(b->spec.creator, 200);
	ck_assert_uint_eq(c->shares, id_b);
	ck_assert_uint_eq(c->origin, id_a);
	/* And once more: the rings keep their id. */
	delete_path("db/b", &orphans);
	check_registry();
	ck_assert_uint_eq(by_path("web/c")->origin, id_a);
	delete_path("web/c", &orphans);
	ck_assert_uint_ne(orphans.id, 0);
	ck_assert_uint_eq(orphans.bytes, EVENT_BYTES);
	ck_assert_uint_eq(orphans.creator, 100);
	delete_all();
}
END_TEST

START_TEST(names_that_are_taken)
{
	struct failure f = {}, g = {};
	struct pp_event e;
	struct pp_spec spec;

	make_world();
	make_spec(&spec, "web", "z", 100);
	ck_assert_int_eq(names_alias(id_a, &spec, &e, &f), -EEXIST);
	ck_assert(*f.sentence);
	make_spec(&spec, "other", "x", 100);
	ck_assert_int_eq(names_alias(id_c + 1000, &spec, &e, &g), -ENOENT);
	check_registry();
	ck_assert(world_is_whole());
	delete_all();
}
END_TEST

/* ── what is held ───────────────────────────────────────────────────────────────────────── */

START_TEST(a_mapped_ring_stays_charged)
{
	_cleanup_free_ struct meta_map *maps = NULL;
	struct pp_orphans orphans;
	struct pp_event e;
	void *ring;
	int fd;

	make_world();
	maps = read_event_maps("web/z", &e);
	fd = meta_map_open(&maps[1]);
	ring = mmap(NULL, RING_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(ring, MAP_FAILED);
	close(fd);
	delete_path("web/z", &orphans);
	ck_assert_uint_eq(orphans.bytes, EVENT_BYTES);
	wait_released(RING_BYTES);
	ck_assert_uint_eq(n_released, 0);
	/* Another engine finds the same. */
	if (fork() == 0) {
		orphans_recover();
		_exit(orphans_bytes() != RING_BYTES);
	}
	int status;

	ck_assert_int_gt(wait(&status), 0);
	ck_assert_int_eq(status, 0);
	munmap(ring, RING_BYTES);
	wait_released(0);
	ck_assert_uint_eq(n_released, 1);
	delete_all();
}
END_TEST

START_TEST(wakeups)
{
	_cleanup_close_ int first = wakeups_fd(BROKER), second = wakeups_fd(BROKER);
	struct bpf_map_info a = {}, b = {};
	uint32_t size = sizeof(a);
	struct stat st;

	ck_assert_int_ge(first, 0);
	ck_assert_int_ge(second, 0);
	ck_assert_int_eq(bpf_obj_get_info_by_fd(first, &a, &size), 0);
	ck_assert_int_eq(bpf_obj_get_info_by_fd(second, &b, &size), 0);
	ck_assert_uint_eq(a.id, b.id);
	ck_assert_int_eq(stat("+wakeups", &st), 0);
	ck_assert_uint_eq(st.st_uid, BROKER);
	ck_assert_uint_eq(st.st_gid, 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0660);
}
END_TEST

START_TEST(ceiling)
{
	struct failure f = {}, g = {};
	struct pp_spec spec;

	make_world();
	make_spec(&spec, "web", "new", 100);
	spec.flags = 0;
	pp_cpumask_set(&spec.cpus, 1);
	spec.data_size = 1 << 20;
	budget_set(3 << 20);
	ck_assert_int_eq(budget_check(&spec, &f), 0);
	budget_set((1 << 20) + EVENT_BYTES);
	ck_assert_int_eq(budget_check(&spec, &g), -ENOMEM);
	ck_assert(*g.sentence);
	delete_all();
}
END_TEST

/* ── looked at meanwhile ────────────────────────────────────────────────────────────────── */

/* Goes on until it is killed, or finds that one of these names is not there. */
static pid_t start_looker(void)
{
	static const char *const names[] = { "web/c/meta", "db/b/cpu0" };
	pid_t pid = fork();
	struct stat st;

	if (pid == 0)
		for (;;)
			for (size_t i = 0; i < ARRAY_SIZE(names); i++)
				if (stat(names[i], &st) < 0)
					_exit(errno);
	ck_assert_int_gt(pid, 0);
	return pid;
}

static void replace(bool same_rings);

/* While other names, the oldest among them, and other events come and go, and the event changes. */
START_TEST(names_are_there_at_any_time)
{
	struct pp_orphans orphans;
	pid_t looker;
	int status;

	id_a = make_event("web", "a", 100).id;
	make_alias(id_a, "web", "older", 300);
	make_alias(id_a, "web", "old", 200);
	id_b = make_alias(id_a, "db", "b", 200).id;
	id_c = make_alias(id_b, "web", "c", 100).id;
	looker = start_looker();
	for (unsigned i = 0; i < 200; i++) {
		make_alias(id_b, "new", "n", 300);
		make_event("web", "z", 100);
		delete_path("new/n", &orphans);
		delete_path("web/z", &orphans);
		replace(i % 2);
	}
	delete_path("web/a", &orphans);
	delete_path("web/older", &orphans);
	delete_path("web/old", &orphans);
	kill(looker, SIGKILL);
	ck_assert_int_eq(waitpid(looker, &status, 0), looker);
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	check_registry();
	ck_assert_uint_eq(by_path("db/b")->origin, id_a);
	delete_all();
}
END_TEST

/* ── killed at each step ────────────────────────────────────────────────────────────────── */

static void delete_first(void)
{
	struct pp_orphans orphans;

	delete_path("web/a", &orphans);
}

static bool first_is_deleted(void)
{
	const struct pp_event *b = by_path("db/b"), *c = by_path("web/c");

	return n_found == 3 && b && c && !b->shares && b->origin == id_a && c->shares == id_b;
}

static void delete_alias(void)
{
	struct pp_orphans orphans;

	delete_path("db/b", &orphans);
}

static bool alias_is_deleted(void)
{
	return n_found == 3 && !by_path("db/b");
}

static void delete_only(void)
{
	struct pp_orphans orphans;

	delete_path("web/z", &orphans);
}

static bool only_is_deleted(void)
{
	return n_found == 3 && !by_path("web/z");
}

static void add_alias(void)
{
	make_alias(id_c, "new", "n", 300);
}

static bool alias_is_added(void)
{
	const struct pp_event *n = by_path("new/n");

	return n_found == 5 && n && n->shares == id_a && n->spec.creator == 300;
}

static void add_event(void)
{
	make_event("new", "e", 300);
}

static bool event_is_added(void)
{
	const struct pp_event *e = by_path("new/e");

	return n_found == 5 && e && e->id == e->origin && e->spec.creator == 300;
}

/* Returns the id of the old directory. */
static uint64_t exchange(bool same_rings, char path[PINS_PATH_SIZE])
{
	_cleanup_free_ struct meta_map *maps = NULL;
	struct pins_draft d;
	struct pp_event e;
	uint64_t id;

	maps = read_event_maps("web/c", &e);
	pins_event(e.origin, path);
	e.set++;
	ck_assert_int_eq(pins_begin(&e.spec, &d), 0);
	add_maps(&d, maps, same_rings);
	add_files(&d, &e, maps);
	ck_assert_int_eq(pins_next_id(&id), 0);
	ck_assert_int_eq(pins_replace(&d, path, id), 0);
	return id;
}

static void replace(bool same_rings)
{
	struct pp_orphans orphans;
	char path[PINS_PATH_SIZE];
	uint64_t id = exchange(same_rings, path);

	orphans_add(id, path, &orphans);
	ck_assert_uint_eq(orphans.bytes, same_rings ? 0 : EVENT_BYTES);
}

static void resize(void)
{
	replace(false);
}

static void refilter(void)
{
	replace(true);
}

static bool is_replaced(void)
{
	return world_is_whole() && by_path("web/a")->set == 2 && by_path("web/c")->set == 2;
}

static void change_rights(void)
{
	struct failure f = {};
	struct pp_spec spec;

	make_spec(&spec, "web", "", 555);
	ck_assert_msg(names_rights(&spec, BROKER, &f) == 0, "%s", f.sentence);
}

static bool rights_are_changed(void)
{
	return world_is_whole() && by_path("web/a")->spec.group == 555 &&
	       by_path("web/z")->spec.group == 555 && by_path("web/c")->spec.group == 555 &&
	       by_path("db/b")->spec.group == 200;
}

static const struct {
	const char *name;
	void (*run)(void);
	bool (*is_done)(void);
} operations[] = {
	{ "delete the first name", delete_first, first_is_deleted },
	{ "delete an alias", delete_alias, alias_is_deleted },
	{ "delete the only name", delete_only, only_is_deleted },
	{ "add an alias", add_alias, alias_is_added },
	{ "make an event", add_event, event_is_added },
	{ "resize", resize, is_replaced },
	{ "change the filter", refilter, is_replaced },
	{ "change rights", change_rights, rights_are_changed },
};

/* Returns whether it completed; otherwise it died before its step `at`. */
static bool run_until(void (*run)(void), unsigned at)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		steps_left = at;
		run();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLED);
	return WEXITSTATUS(status) == 0;
}

static void start_again(void)
{
	ck_assert_int_eq(pins_recover(), 0);
	ck_assert_int_eq(takeover(), 0);
	ck_assert_int_eq(names_recover(BROKER), 0);
	ck_assert_int_eq(orphans_recover(), 0);
	check_registry();
}

/* The operation is complete or has not happened; and then it can be done. */
START_TEST(killed)
{
	bool through = false;

	for (unsigned at = 1; !through; at++) {
		make_world();
		through = run_until(operations[_i].run, at);
		start_again();
		ck_assert_msg(operations[_i].is_done() || (world_is_whole() && !through),
			      "%s, killed at step %u, is half-done", operations[_i].name, at);
		if (!operations[_i].is_done()) {
			operations[_i].run();
			check_registry();
			ck_assert(operations[_i].is_done());
		}
		delete_names();
	}
	delete_all();
}
END_TEST

/* Once a record has other rights, its files permit no more, wherever the engine died. */
START_TEST(rights_only_shrink)
{
	bool through = false;

	for (unsigned at = 1; !through; at++) {
		make_world();
		through = run_until(change_rights, at);
		enumerate();
		for (size_t i = 0; i < n_found; i++) {
			_cleanup_free_ struct name *names = NULL;
			char path[PINS_PATH_SIZE], info[PINS_PATH_SIZE + 8];
			struct stat st;
			size_t n;

			pins_event(found[i].origin, path);
			snprintf(info, sizeof(info), "%s/info", path);
			ck_assert_int_eq(name_list(path, &names, &n), 0);
			ck_assert_int_eq(stat(info, &st), 0);
			ck_assert_msg(st.st_gid == names[0].spec.group || !(st.st_mode & 040),
				      "killed at step %u: group %u may read", at, st.st_gid);
		}
		start_again();
		delete_names();
	}
	delete_all();
}
END_TEST

/* ── a failure of the engine ────────────────────────────────────────────────────────────── */

static int recover(void)
{
	int r = pins_recover();

	if (r >= 0)
		r = takeover();
	if (r >= 0)
		r = names_recover(BROKER);
	return r < 0 ? r : orphans_recover();
}

/* A read that fails ends the start, or costs nothing: no name is lost. */
START_TEST(a_read_fails)
{
	bool through = false;

	for (unsigned at = 1; !through; at += stride(2)) {
		make_world();
		read_fails = at;
		if (recover() >= 0) {
			through = read_fails > 0;
			read_fails = 0;
			enumerate();
			ck_assert_msg(world_is_whole(), "read %u fails: %zu names are left", at,
				      n_found);
			for (size_t i = 0; i < n_found; i++) {
				char path[PINS_PATH_SIZE], target[PINS_PATH_SIZE];

				snprintf(path, sizeof(path), "%s/%s", found[i].spec.ns,
					 found[i].spec.name);
				ck_assert_int_gt(readlink(path, target, sizeof(target)), 0);
			}
		}
		start_again();
		ck_assert(world_is_whole());
		delete_all();
	}
}
END_TEST

/* Another name is there, or it is refused. */
START_TEST(an_alias_fails)
{
	bool through = false;

	for (unsigned at = 1; !through; at += stride(2)) {
		struct pp_event made, read;
		struct pp_orphans orphans;
		struct failure f = {};
		struct pp_spec spec;
		int r;

		make_world();
		make_spec(&spec, "new", "n", 300);
		read_fails = at;
		r = names_alias(id_a, &spec, &made, &f);
		through = read_fails > 0;
		read_fails = 0;
		check_registry();
		ck_assert_msg((r >= 0) == !!by_path("new/n"), "read %u fails: %d", at, r);
		if (r >= 0 && through) {
			ck_assert_int_eq(names_read(made.id, &read), 0);
			ck_assert_mem_eq(&made, &read, sizeof(made));
			delete_path("new/n", &orphans);
		}
		delete_all();
	}
}
END_TEST

/* An event that cannot be read keeps its rights, and the others of the namespace lose theirs:
 * whichever of the two is read first. */
START_TEST(rights_fail)
{
	unsigned only_first = 0, only_second = 0;
	bool through = false;

	for (unsigned at = 1; !through; at += stride(2)) {
		struct failure f = {};
		struct pp_spec spec;
		bool first, second;
		int r;

		make_world();
		make_spec(&spec, "web", "", 555);
		read_fails = at;
		r = names_rights(&spec, BROKER, &f);
		through = read_fails > 0;
		read_fails = 0;
		enumerate();
		first = by_path("web/a")->spec.group == 555 && by_path("web/c")->spec.group == 555;
		second = by_path("web/z")->spec.group == 555;
		only_first += first && !second;
		only_second += second && !first;
		ck_assert_msg(r < 0 || (first && second), "read %u fails, and nobody is told", at);
		ck_assert_int_eq(names_rights(&spec, BROKER, &f), 0);
		delete_all();
	}
	ck_assert_uint_gt(only_first, 0);
	ck_assert_uint_gt(only_second, 0);
}
END_TEST

/* If it is not known which rings are in use, none is marked or charged as deleted. The engine died
 * after it had exchanged the directories. */
START_TEST(rings_in_use)
{
	_cleanup_close_ int ring = -EBADF;
	const struct pp_ring_header *header;
	_cleanup_free_ struct meta_map *maps = NULL;
	char path[PINS_PATH_SIZE];
	bool through = false;
	struct pp_event e;
	uint32_t state;

	make_world();
	exchange(true, path);
	maps = read_event_maps("web/c", &e);
	ring = meta_map_open(&maps[0]);
	header = mmap(NULL, RING_BYTES, PROT_READ, MAP_SHARED, ring, 0);
	ck_assert_ptr_ne(header, MAP_FAILED);
	ring = close_fd(ring);
	state = header->live.state;
	for (unsigned at = 1; !through; at++) {
		read_fails = at;
		orphans_recover();
		through = read_fails > 0;
		read_fails = 0;
		ck_assert_msg(header->live.state == state && orphans_bytes() == 0,
			      "read %u fails: a ring in use is deleted", at);
	}
	munmap((void *)header, RING_BYTES);
	delete_all();
}
END_TEST

/* ── a name of a newer version ──────────────────────────────────────────────────────────── */

static void change_version(uint64_t origin, uint64_t id, int by)
{
	_cleanup_close_ int fd = -EBADF;
	char path[PINS_PATH_SIZE], leaf[PP_NAME_SIZE];
	struct pp_name_record record;
	uint32_t zero = 0;

	pins_event(origin, path);
	snprintf(leaf, sizeof(leaf), PP_NAME_RECORD_LEAF "%llu", (unsigned long long)id);
	fd = pins_get(path, leaf);
	ck_assert_int_eq(bpf_map_lookup_elem(fd, &zero, &record), 0);
	record.version += by;
	ck_assert_int_eq(bpf_map_update_elem(fd, &zero, &record, BPF_ANY), 0);
}

/* It keeps its link, and its rings. */
START_TEST(a_newer_name)
{
	struct pp_orphans orphans;
	struct failure f = {};
	struct pp_event was;

	make_world();
	change_version(id_a, id_b, 1);
	ck_assert_int_eq(recover(), 0);
	delete_path("web/a", &orphans);
	ck_assert_uint_eq(orphans.id, 0);
	ck_assert_int_eq(names_delete(id_c, NULL, BROKER, &was, &orphans, &f), -EBUSY);
	ck_assert(*f.sentence);
	change_version(id_a, id_b, -1);
	ck_assert_int_eq(recover(), 0);
	check_registry();
	ck_assert(by_path("db/b") && by_path("web/c"));
	delete_all();
}
END_TEST

/* ── a registry of a version before ─────────────────────────────────────────────────────── */

static void take_over(void)
{
	ck_assert_int_eq(takeover(), 0);
	ck_assert_int_eq(names_recover(BROKER), 0);
}

/* No event loses a name or its id, wherever the old engine died, and the new one while it takes over;
 * and nothing of the old form is left. */
START_TEST(taken_over)
{
	enum old_state state = _i;
	bool inherited = state >= OLD_INHERITED && state <= OLD_FORGOTTEN, through = false;

	for (unsigned at = 1; !through; at += stride(2)) {
		const struct pp_event *b, *c;

		make_old_world(state, &id_a, &id_b, &id_c);
		through = run_until(take_over, at);
		setup();
		start_again();
		b = by_path("db/b");
		c = by_path("web/c");
		ck_assert_msg(n_found == (inherited ? 3 : 4) && b && c && by_path("web/z") &&
				      !by_path("web/a") == inherited,
			      "killed at step %u, %zu names are left", at, n_found);
		ck_assert_uint_eq(b->id, id_b);
		ck_assert_uint_eq(b->shares, inherited ? 0 : id_a);
		ck_assert_uint_eq(b->spec.creator, 200);
		ck_assert(b->spec.flags & PP_EVENT_CONFIGURED);
		ck_assert_uint_eq(c->id, id_c);
		ck_assert_uint_eq(c->shares, inherited ? id_b : id_a);
		ck_assert_uint_eq(c->origin, id_a);
		ck_assert(inherited || by_path("web/a")->id == id_a);
		delete_names();
	}
	delete_all();
}
END_TEST

/* By a name of the old form the event is there at any time, also while it becomes one of ours. */
START_TEST(names_are_there_while_taken_over)
{
	pid_t looker;
	int status;

	make_old_world(OLD_WHOLE, &id_a, &id_b, &id_c);
	setup();
	looker = start_looker();
	take_over();
	kill(looker, SIGKILL);
	ck_assert_int_eq(waitpid(looker, &status, 0), looker);
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	check_registry();
	delete_all();
}
END_TEST

/* ── a reaper at the engine's end ───────────────────────────────────────────────────────── */

static unsigned forks;

static void count_fork(void)
{
	forks++;
}

static void stop_first(void)
{
	if (forks == 1)
		raise(SIGSTOP);
}

/* Another reaper deletes what is left while one is at work: it begins when the first ends, though
 * nothing waits for it. */
START_TEST(deleted_last)
{
	siginfo_t first;
	struct stat st;

	ck_assert_int_eq(pthread_atfork(count_fork, NULL, stop_first), 0);
	ck_assert_int_eq(reaper_kick(), 0);
	ck_assert_int_eq(waitid(P_ALL, 0, &first, WSTOPPED), 0);
	ck_assert_int_eq(mkdir("+del-7", 0700), 0);
	ck_assert_int_eq(reaper_kick(), 0);
	ck_assert_uint_eq(forks, 1);
	reaper_leave();
	ck_assert_uint_eq(forks, 2);
	/* The first has nothing to do with it. */
	kill(first.si_pid, SIGKILL);
	reaper_wait(INT_MAX);
	ck_assert_int_eq(stat("+del-7", &st), -1);
	reaper_leave();
	ck_assert_uint_eq(forks, 2);
}
END_TEST

/* These override libc's. */
static bool fork_fails, opendir_fails;

pid_t fork(void)
{
	pid_t (*real)(void) = dlsym(RTLD_NEXT, "fork");

	if (!fork_fails)
		return real();
	errno = EAGAIN;
	return -1;
}

DIR *opendir(const char *path)
{
	DIR *(*real)(const char *) = dlsym(RTLD_NEXT, "opendir");

	if (!opendir_fails)
		return real(path);
	errno = ENOMEM;
	return NULL;
}

static void reap(void)
{
	struct stat st;

	while (stat("+del-7", &st) == 0) {
		reaper_collect();
		poll(NULL, 0, 10);
	}
	reaper_wait(INT_MAX);
}

/* A reaper that cannot start, or cannot begin, is tried again. */
START_TEST(tried_again)
{
	ck_assert_int_eq(mkdir("+del-7", 0700), 0);
	fork_fails = true;
	ck_assert_int_eq(reaper_kick(), -EAGAIN);
	fork_fails = false;
	reap();
	ck_assert_int_eq(mkdir("+del-7", 0700), 0);
	opendir_fails = true;
	ck_assert_int_eq(reaper_kick(), 0);
	opendir_fails = false;
	reap();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("names");
	TCase *t = tcase_create("names");
	int r;

	log_open("test-names");
	umask(077);
	need(no_bpffs());
	need(no_dir(registry));
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, sharing);
	tcase_add_test(t, inheriting);
	tcase_add_test(t, names_that_are_taken);
	tcase_add_test(t, a_mapped_ring_stays_charged);
	tcase_add_test(t, wakeups);
	tcase_add_test(t, ceiling);
	tcase_add_test(t, deleted_last);
	tcase_add_test(t, tried_again);
	tcase_add_test(t, a_read_fails);
	tcase_add_test(t, rights_only_shrink);
	tcase_add_test(t, an_alias_fails);
	tcase_add_test(t, rights_fail);
	tcase_add_test(t, rings_in_use);
	tcase_add_test(t, a_newer_name);
	tcase_add_loop_test(t, killed, 0, ARRAY_SIZE(operations));
	tcase_add_loop_test(t, taken_over, 0, OLD_STATES);
	tcase_add_test(t, names_are_there_at_any_time);
	tcase_add_test(t, names_are_there_while_taken_over);
	suite_add_tcase(s, t);
	r = run_suite(s);
	rmdir(registry);
	return r;
}
