// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfpersist-engine: the process that holds capabilities. Takes orders from the broker over
 * a socket it is started with (LISTEN_FDS), one at a time, and may block while it works.
 * What it makes is the kernel's; it can die at any moment.
 */
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "daemon/engine/budget.h"
#include "daemon/engine/event/event.h"
#include "daemon/engine/event/heir.h"
#include "daemon/engine/registry/cpu-states.h"
#include "daemon/engine/registry/pins.h"
#include "daemon/engine/registry/reaper.h"
#include "daemon/engine/registry/orphans.h"
#include "daemon/engine/server.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

#define LEAVE_MSEC 3000 /* less than whoever ends the engine waits */
#define LIBBPF_TAIL 3000

struct options {
	const char *instance;
	uint32_t broker;     /* uid */
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
	"  --broker-uid UID    whom to obey, and who owns the rings' pins: a uid or a user name\n"
	"  --broker-pid PID    obey no other process of that user's\n"
	"  --max-memory BYTES  of all rings together, whatever the broker orders; half of the\n"
	"                      machine's memory\n"
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

/* Returns 0 to go on, 1 to exit with success, or -EINVAL. */
static int parse_options(int argc, char **argv, struct options *ret)
{
	static const struct option longs[] = {
		{ "instance", required_argument, NULL, 'i' },
		{ "broker-uid", required_argument, NULL, 'u' },
		{ "broker-pid", required_argument, NULL, 'p' },
		{ "max-memory", required_argument, NULL, 'm' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	bool have_uid = false;
	int c;

	while ((c = getopt_long(argc, argv, "h", longs, NULL)) >= 0)
		switch (c) {
		case 'i':
			ret->instance = optarg;
			break;
		case 'u':
			if (parse_user(optarg, &ret->broker) < 0) {
				log_error("--broker-uid: there is no user '%s'; run "
					  "systemd-sysusers, or give a number",
					  optarg);
				return -EINVAL;
			}
			have_uid = true;
			break;
		case 'p':
			if (pp_parse_u32(optarg, &ret->broker_pid) < 0 || !ret->broker_pid ||
			    ret->broker_pid > INT_MAX) {
				log_error("--broker-pid: '%s' is no process's number", optarg);
				return -EINVAL;
			}
			break;
		case 'm':
			if (pp_parse_u64(optarg, &ret->max_memory) < 0 || !ret->max_memory) {
				log_error("--max-memory: '%s' is no number of bytes above 0; write "
					  "one, or leave it out for half of the machine's memory",
					  optarg);
				return -EINVAL;
			}
			break;
		case 'V':
			puts("perfpersist-engine " PP_VERSION);
			return 1;
		case 'h':
			fputs(usage, stdout);
			return 1;
		default:
			return -EINVAL;
		}
	if (optind < argc || !have_uid) {
		log_error(have_uid ? "'%s' is not expected; see --help"
				   : "--broker-uid is missing; see --help%.0s",
			  optind < argc ? argv[optind] : "");
		return -EINVAL;
	}
	return 0;
}

/* An engine that was left behind by a broker that died may still finish an order: wait. */
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
	event_recover_one(path, *(const uid_t *)userdata); /* tells of its failures */
	return 0;
}

/* In this order: names first, since what is under them is read by who follows. */
static int recover(uid_t broker)
{
	int r;

	cpu_states_open(broker); /* tells of its failures; all works without */
	r = pins_recover();
	if (r >= 0)
		r = heir_recover(broker);
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
		log_error("'%s' is not a valid instance name", instance);
		return r;
	}
	r = pins_open(path);
	if (r < 0) {
		log_error("cannot use %s as the registry: %s; %s", path, strerror(-r),
			  r == -ENODEV ? "this kernel has no bpffs, which comes with "
					 "CONFIG_BPF_SYSCALL=y"
				       : "it must be a bpffs, or root must be able to mount one "
					 "there");
		return r;
	}
	r = recover(broker);
	if (r < 0)
		log_error("cannot recover the registry %s: %s", path, strerror(-r));
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
	signal(SIGCHLD, SIG_DFL); /* an ignored one is not told */
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Before 5.11 BPF memory is charged to this limit. */
static void lift_memlock(void)
{
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	setrlimit(RLIMIT_MEMLOCK, &all);
}

/*
 * libbpf's warnings explain failures that are told in the engine's own words elsewhere. A line each;
 * of a verifier's log the end is what matters.
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
 * With no event left, what the reaper does and the kernel frees is done in a moment, and then nothing
 * keeps the registry. What a reader has stays, and is counted at the next start.
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
	int r;

	log_open("perfpersist-engine");
	r = parse_options(argc, argv, &o);
	if (r != 0)
		return r < 0 ? 2 : 0;
	if (sd_listen_fds(1) != 1 ||
	    !sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, NULL, 0)) {
		log_error("one listening SOCK_SEQPACKET socket is expected in LISTEN_FDS; "
			  "perfpersistd, or perfpersist-engine.socket, starts the engine");
		return 2;
	}
	umask(077);
	lift_memlock();
	libbpf_set_print(quiet);
	signals = block_signals();
	lock = take_lock(o.instance);
	if (lock < 0) {
		log_error("cannot lock the instance's run directory: %s", strerror(-lock));
		return 1;
	}
	budget_set(o.max_memory);
	if (open_registry(o.instance, o.broker) < 0)
		return 1;
	r = serve(SD_LISTEN_FDS_START, signals,
		  &(struct accept_rule){ o.broker, (pid_t)o.broker_pid });
	if (r < 0)
		log_error("the engine's loop failed: %s", strerror(-r));
	leave();
	return r < 0;
}
