// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfpersist-engine: the process that holds capabilities. Takes orders from the broker over
 * a socket it is started with (LISTEN_FDS), one at a time, and may block while it works.
 * The kernel holds what it makes; it can die at any moment.
 */
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include "daemon/engine/budget.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/names.h"
#include "daemon/engine/event/takeover.h"
#include "daemon/engine/heap.h"
#include "daemon/engine/registry/cpu-states.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/server.h"
#include "daemon/log.h"
#include "daemon/start.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

#define PROGRAM "perfpersist-engine"

#define LEAVE_MSEC 3000 /* less than systemd and the launcher wait */
#define LIBBPF_TAIL 3000

struct options {
	const char *instance;
	uint32_t broker; /* uid */
	bool has_broker;
	uint32_t broker_pid; /* 0: any process of that user */
	uint64_t max_memory; /* bytes; 0: the default */
};

static const char usage[] =
	"Usage: perfpersist-engine [--instance NAME] --broker-uid UID [--broker-pid PID]\n"
	"                          [--max-memory BYTES]\n"
	"\n"
	"Makes and deletes persistent events for perfpersistd, over the SOCK_SEQPACKET socket\n"
	"that it is handed in the LISTEN_FDS convention. Not to be started by hand.\n"
	"\n"
	"  --instance NAME     work in /run/perfpersist-NAME\n"
	"  --broker-uid UID    take orders only from this user, a uid or a name; it owns the pins\n"
	"                      of the rings\n"
	"  --broker-pid PID    take orders from no other process of that user\n"
	"  --max-memory BYTES  refuse orders after which all rings together would take more;\n"
	"                      the default is half of the machine's memory\n"
	"  --version, --help\n";

/* A uid, or a name: a unit file cannot know the number. */
static int parse_user(const char *text, uint32_t *ret)
{
	const struct passwd *user;

	if (pp_parse_u32(text, ret) >= 0)
		return 0;
	user = getpwnam(text);
	if (!user)
		return -ENOENT;
	*ret = user->pw_uid;
	return 0;
}

static const struct option options[] = {
	{ "instance", required_argument, NULL, 'i' },
	{ "broker-uid", required_argument, NULL, 'u' },
	{ "broker-pid", required_argument, NULL, 'p' },
	{ "max-memory", required_argument, NULL, 'm' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{},
};

static int take_option(int option, const char *argument, void *context)
{
	struct options *o = context;

	switch (option) {
	case 'i':
		o->instance = argument;
		return 0;
	case 'u':
		o->has_broker = parse_user(argument, &o->broker) >= 0;
		if (!o->has_broker)
			log_error("Invalid --broker-uid '%s': there is no such user; run "
				  "systemd-sysusers, or give a number.",
				  argument);
		return o->has_broker ? 0 : -EINVAL;
	case 'p':
		return start_broker_pid(argument, &o->broker_pid);
	default:
		if (pp_parse_u64(argument, &o->max_memory) >= 0 && o->max_memory)
			return 0;
		log_error("Invalid --max-memory '%s': not a number of bytes above 0; omit it for "
			  "half of the machine's memory.",
			  argument);
		return -EINVAL;
	}
}

static int parse_options(int argc, char **argv, struct options *ret)
{
	static const struct start start = { PROGRAM, usage, options, take_option };
	int r = start_options(&start, argc, argv, ret);

	if (r != 0 || ret->has_broker)
		return r;
	log_error("The option --broker-uid is missing; see --help.");
	return -EINVAL;
}

/* Waits for an earlier engine, which may still finish an order of a broker that died. */
static int take_lock(const char *instance)
{
	_cleanup_close_ int fd = -EBADF;
	char path[128];
	int r;

	r = pp_place(instance, "/engine.lock", path, sizeof(path));
	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int recover_event(const char *path, void *userdata)
{
	return event_recover_one(path, *(const uid_t *)userdata);
}

/* Paths and names come first: the later steps read what is under them. */
static int recover(uid_t broker)
{
	int r = cpu_states_open(broker);

	if (r >= 0)
		r = pins_recover();
	if (r >= 0)
		r = takeover();
	if (r >= 0)
		r = names_recover(broker);
	if (r >= 0)
		r = orphans_recover();
	if (r >= 0)
		r = pins_foreach(recover_event, &broker);
	if (r >= 0)
		r = reaper_kick();
	return r;
}

static int open_registry(const char *instance, uid_t broker)
{
	char path[128];
	int r;

	r = pp_place(instance, "/registry", path, sizeof(path));
	if (r < 0) {
		log_error("Invalid --instance '%s': not an instance's name.", instance);
		return r;
	}
	r = pins_open(path);
	if (r < 0) {
		log_error("Cannot use %s as the registry: %s; %s.", path, strerror(-r),
			  r == -ENODEV ? "this kernel has no bpffs, which comes with "
					 "CONFIG_BPF_SYSCALL=y"
				       : "it must be a bpffs, or root must be able to mount one "
					 "there");
		return r;
	}
	r = recover(broker);
	if (r < 0)
		log_error("Cannot recover the registry %s: %s.", path, strerror(-r));
	return r;
}

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* a signalfd does not get ignored signals */
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/*
 * libbpf's warnings are debug lines: the engine reports the same failures in its own words. Only
 * the end of a verifier's log matters.
 */
static _printf_(2, 0) int quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	_cleanup_free_ char *text = NULL;
	char *line, *next;
	size_t length;

	if (level != LIBBPF_WARN)
		return 0;
	if (vasprintf(&text, fmt, args) < 0) {
		text = NULL;
		return 0;
	}
	length = strlen(text);
	next = length > LIBBPF_TAIL ? text + length - LIBBPF_TAIL : text;
	while ((line = strsep(&next, "\n")))
		if (*line)
			log_debug("%s", line);
	return 0;
}

static int any_event(const char *path _unused_, void *userdata _unused_)
{
	return -ECANCELED;
}

static int any_orphans(const char *path _unused_, uint64_t id _unused_, void *userdata _unused_)
{
	return -ECANCELED;
}

static void ignore(const struct pp_orphans *orphans _unused_, void *userdata _unused_)
{
}

/*
 * With no event left, the reaper and the kernel soon finish, and nothing keeps the registry: waits
 * for that. Rings that a reader still has mapped stay; the next start counts them.
 */
static void leave(void)
{
	reaper_leave();
	if (pins_foreach(any_event, NULL) != 0)
		return;
	orphans_hurry();
	for (int i = 0; i < LEAVE_MSEC / 10 && pins_foreach_orphans(any_orphans, NULL) != 0; i++) {
		usleep(10000);
		reaper_collect();
		orphans_look(ignore, NULL);
	}
}

int main(int argc, char **argv)
{
	_cleanup_close_ int signals = -EBADF, lock = -EBADF;
	struct options o = {};
	int r, listener;

	log_open(PROGRAM);
	r = parse_options(argc, argv, &o);
	if (r != 0)
		return r < 0 ? 2 : 0;
	listener = start_socket(PROGRAM);
	if (listener < 0)
		return 2;
	umask(077);
	libbpf_set_print(quiet);
	signals = block_signals();
	lock = take_lock(o.instance);
	if (lock < 0) {
		log_error("Cannot lock the instance's run directory: %s.", strerror(-lock));
		return 1;
	}
	budget_set(o.max_memory);
	heap_prepare();
	if (open_registry(o.instance, o.broker) < 0)
		return 1;
	r = serve(listener, signals, &(struct accept_rule){ o.broker, (pid_t)o.broker_pid });
	if (r < 0)
		log_error("The engine's loop failed: %s.", strerror(-r));
	leave();
	return r < 0;
}
