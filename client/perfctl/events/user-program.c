// SPDX-License-Identifier: LGPL-2.1-or-later
/* Loads users' BPF programs. See user-program.h. */
#include "client/perfctl/events/user-program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>
#include <unistd.h>

#include "client/perfctl/output/output.h"
#include "proto/perfpersist.bpf.h"
#include "proto/user-program.h"

#define LOG_LINES 12 /* the verifier's last */
#define LOG_BEGIN "-- BEGIN PROG LOAD LOG --\n"
#define LOG_END "-- END PROG LOAD LOG --"

/* What libbpf says while it loads; its callback has no argument of ours. */
static struct {
	char *text;
	size_t size;
	FILE *f;
} said;

static _printf_(2, 0) int listen(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN && said.f ? vfprintf(said.f, format, args) : 0;
}

static void listen_begin(void)
{
	said.f = open_memstream(&said.text, &said.size);
	libbpf_set_print(listen);
}

/* The text is for free(3). */
static char *listen_end(void)
{
	libbpf_set_print(NULL);
	if (!said.f || fclose(said.f) != 0)
		return NULL;
	said.f = NULL;
	return said.text;
}

void user_program_done(struct user_program *p)
{
	bpf_object__close(p->object);
	*p = (struct user_program){};
}

/* ── the object ─────────────────────────────────────────────────────────────────────────── */

/* "OBJ.o:PROGRAM"; a file may have a colon in its name. *program NULL: none is named. */
static int split(const char *text, char **ret_path, const char **ret_program)
{
	char *path = strdup(text), *colon;

	*ret_path = path;
	*ret_program = NULL;
	if (!path)
		return -ENOMEM;
	colon = access(path, F_OK) < 0 ? strrchr(path, ':') : NULL;
	if (colon) {
		*colon = 0;
		*ret_program = text + (colon - path) + 1;
	}
	return 0;
}

static int cannot_open(const char *path, int error)
{
	if (error == ENOENT || error == EACCES || error == EISDIR)
		complain("cannot open %s: %s", path, strerror(error));
	else
		complain("%s is no BPF object: compile it by `clang -g -O2 -target bpf -idirafter "
			 "/usr/include/$(gcc -print-multiarch) -c`",
			 path);
	return error == ENOENT ? EXIT_NOT_FOUND : error == EACCES ? EXIT_NOT_ALLOWED : EXIT_FAILED;
}

static int open_object(const char *path, struct bpf_object **ret)
{
	_cleanup_free_ char *warnings = NULL;
	struct bpf_object *object;
	int error;

	if (access(path, R_OK) < 0)
		return cannot_open(path, errno);
	listen_begin();
	object = bpf_object__open_file(path, NULL);
	error = errno;
	warnings = listen_end();
	if (!object)
		return cannot_open(path, error);
	*ret = object;
	return EXIT_OK;
}

/* ── one program of it ──────────────────────────────────────────────────────────────────── */

static void list_programs(const struct bpf_object *object, char *buf, size_t size)
{
	struct bpf_program *p;
	size_t n = 0;

	*buf = 0;
	bpf_object__for_each_program(p, object)
	{
		int more = snprintf(buf + n, size - n, "%s%s", n ? ", " : "", bpf_program__name(p));

		if (more < 0 || n + (size_t)more >= size)
			break;
		n += (size_t)more;
	}
}

static size_t count_programs(const struct bpf_object *object)
{
	struct bpf_program *p;
	size_t n = 0;

	bpf_object__for_each_program(p, object) n++;
	return n;
}

/* The only one, or the named one; no other is loaded. NULL: has complained. */
static struct bpf_program *choose(struct bpf_object *object, const char *path, const char *name)
{
	struct bpf_program *p, *chosen = NULL;
	size_t n = count_programs(object);
	char names[512];

	list_programs(object, names, sizeof(names));
	if (n == 0)
		complain("%s has no BPF program", path);
	else if (!name && n > 1)
		complain("%s has several BPF programs; name one as %s:PROGRAM: %s", path, path,
			 names);
	else if (!name)
		chosen = bpf_object__next_program(object, NULL);
	else
		chosen = bpf_object__find_program_by_name(object, name);
	if (n && name && !chosen)
		complain("%s has no BPF program %s; it has %s", path, name, names);
	bpf_object__for_each_program(p, object) bpf_program__set_autoload(p, p == chosen);
	return chosen;
}

/* ── its maps ───────────────────────────────────────────────────────────────────────────── */

/* Nothing is pinned elsewhere than in the event's directory, so that nothing stays behind. */
static int check_maps(struct bpf_object *object, const char *path)
{
	unsigned cpus = (unsigned)libbpf_num_possible_cpus();
	struct bpf_map *map;
	uint64_t all = 0;
	size_t n = 0;

	bpf_object__for_each_map(map, object)
	{
		uint64_t memory = pp_user_map_memory(bpf_map__type(map), bpf_map__key_size(map),
						     bpf_map__value_size(map),
						     bpf_map__max_entries(map), cpus);

		bpf_map__set_pin_path(map, NULL);
		all = memory > UINT64_MAX - all ? UINT64_MAX : all + memory;
		if (++n > PP_USER_MAPS_MAX || all > PP_USER_MEMORY_MAX) {
			complain("%s has too many or too large maps for an event, or one of a type "
				 "that can grow (at %s): %d of them with %llu MiB together are "
				 "allowed",
				 path, bpf_map__name(map), PP_USER_MAPS_MAX,
				 PP_USER_MEMORY_MAX >> 20);
			return EXIT_FAILED;
		}
	}
	if (bpf_object__find_map_by_name(object, PP_NEXT))
		return EXIT_OK;
	complain("%s has no map " PP_NEXT
		 ", so its program cannot go on to a recorder: define it with PP_PROGRAM() of "
		 "perfpersist.bpf.h",
		 path);
	return EXIT_FAILED;
}

/* ── loading ────────────────────────────────────────────────────────────────────────────── */

/* From the start of line `from` of what is before `end`, counted from the end. */
static const char *last_lines(const char *begin, const char *end, unsigned n)
{
	const char *at = end;

	while (at > begin) {
		if (at[-1] == '\n' && at != end && n-- == 1)
			break;
		at--;
	}
	return at;
}

/* The verifier's last lines, or libbpf's. */
static void print_reason(char *text)
{
	char *begin = strstr(text, LOG_BEGIN), *end = strstr(text, LOG_END), *line, *rest = NULL;
	const char *from;

	begin = begin && end ? begin + strlen(LOG_BEGIN) : text;
	if (end) /* the line that has it ends the log */
		while (end > text && end[-1] != '\n')
			end--;
	else
		end = text + strlen(text);
	from = last_lines(begin, end, LOG_LINES);
	*end = 0;
	for (line = strtok_r((char *)from, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		fputs("  ", stderr);
		print_text(stderr, line, strlen(line));
		fputc('\n', stderr);
	}
}

static int cannot_load(const char *path, const struct bpf_program *program, int error, char *text)
{
	bool verifier = text && strstr(text, LOG_END);

	if (verifier)
		complain("the kernel refuses program %s of %s (%s); its verifier's last lines:",
			 bpf_program__name(program), path, strerror(error));
	else if (error == EPERM)
		complain("the kernel lets this user load no BPF program (%s of %s): it takes "
			 "CAP_BPF and CAP_PERFMON",
			 bpf_program__name(program), path);
	else
		complain("cannot load program %s of %s: %s", bpf_program__name(program), path,
			 strerror(error));
	if (text && (verifier || error != EPERM))
		print_reason(text);
	return error == EPERM ? EXIT_NOT_ALLOWED : EXIT_FAILED;
}

static int load(struct user_program *p, const char *path, const struct bpf_program *program)
{
	_cleanup_free_ char *text = NULL;
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);
	int r;

	listen_begin();
	r = bpf_object__load(p->object);
	text = listen_end();
	if (r < 0)
		return cannot_load(path, program, -r, text);
	if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) < 0) {
		complain("cannot ask the kernel about program %s: %s", bpf_program__name(program),
			 strerror(errno));
		return EXIT_FAILED;
	}
	p->id = info.id;
	return EXIT_OK;
}

int user_program_load(const char *text, struct user_program *ret)
{
	_cleanup_(user_program_done) struct user_program p = {};
	_cleanup_free_ char *path = NULL;
	const struct bpf_program *program;
	const char *name;
	int r;

	if (split(text, &path, &name) < 0) {
		complain("cannot load %s: out of memory", text);
		return EXIT_FAILED;
	}
	r = open_object(path, &p.object);
	if (r)
		return r;
	program = choose(p.object, path, name);
	if (!program)
		return EXIT_FAILED;
	r = check_maps(p.object, path);
	if (!r)
		r = load(&p, path, program);
	if (r)
		return r;
	*ret = p;
	p = (struct user_program){};
	return EXIT_OK;
}
