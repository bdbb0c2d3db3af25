// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * perfpersist-engine: the process that holds capabilities. Takes orders from the broker over
 * a socket it is started with (LISTEN_FDS), one at a time, and may block while it works.
 * What it makes is the kernel's; it can die at any moment.
 */
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "daemon/engine/pins.h"
#include "daemon/engine/reaper.h"
#include "daemon/engine/server.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"
#include "proto/places.h"

struct options {
	const char *instance;
	uint32_t broker; /* uid */
};

static const char usage[] =
	"Usage: perfpersist-engine [--instance NAME] --broker-uid UID\n"
	"\n"
	"Makes and deletes persistent events for perfpersistd, over the SOCK_SEQPACKET socket\n"
	"that it is handed in the LISTEN_FDS convention. Not to be started by hand.\n"
	"\n"
	"  --instance NAME   work in /run/perfpersist-NAME\n"
	"  --broker-uid UID  whom to obey, and who owns the rings' pins: a uid or a user name\n"
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

static int open_registry(const char *instance)
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
	r = pins_recover();
	if (r >= 0)
		r = reaper_kick();
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

/* libbpf's warnings explain failures that are told in the engine's own words elsewhere. */
static _printf_(2, 0) int quiet(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char line[1024];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(line, sizeof(line), fmt, args);
	log_debug("%.*s", (int)strcspn(line, "\n"), line);
	return 0;
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
	if (open_registry(o.instance) < 0)
		return 1;
	r = serve(SD_LISTEN_FDS_START, signals, o.broker);
	if (r < 0)
		log_error("the engine's loop failed: %s", strerror(-r));
	return r < 0;
}
