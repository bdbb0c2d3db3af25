// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfpersistd: options, configuration, privileges dropped; the manager does the rest. */
#include <getopt.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "daemon/broker/config/config.h"
#include "daemon/broker/config/dropin-resolve.h"
#include "daemon/broker/config/dropins.h"
#include "daemon/broker/foreground/foreground.h"
#include "daemon/broker/manager.h"
#include "daemon/broker/privileges.h"
#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/places.h"

struct options {
	const char *instance, *config, *engine, *dumper, *keeper;
	bool check_config;
};

static const char help[] =
	"Usage: perfpersistd [OPTION]...\n"
	"Keeps persistent perf events: hands them out by name to whoever has the right.\n"
	"\n"
	"  --instance NAME   one of its own, with -NAME behind each of its places\n"
	"  --config FILE     default: " PP_SYSCONFDIR "/perfpersist[-NAME]/perfpersistd.conf;\n"
	"                    then FILE.d is the only folder of events, beside that of --boot\n"
	"  --engine PROGRAM  default: perfpersist-engine beside perfpersistd, else in\n"
	"                    " PP_LIBEXECDIR "\n"
	"  --dumper PROGRAM  likewise, perfpersist-dumper\n"
	"  --keeper PROGRAM  likewise, perfpersist-keeper\n"
	"  --check-config    say what is wrong with the configuration, and exit\n"
	"  --version, --help\n"
	"\n"
	"Under systemd it gets its socket from perfpersistd.socket. Started by root it stays\n"
	"in the foreground, runs engine, dumper and keeper itself, and gives up root for the User=\n"
	"of its configuration. SIGHUP has the configuration read again; SIGTERM ends it, and the\n"
	"events go on recording, unless KeepEvents=no.\n";

/* 0; 1 (done: exit with success); -EINVAL (reported). */
static int parse_options(int argc, char **argv, struct options *ret)
{
	enum { INSTANCE = 256, CONFIG, ENGINE, DUMPER, KEEPER, CHECK, VERSION, HELP };
	static const struct option table[] = {
		{ "instance", required_argument, NULL, INSTANCE },
		{ "config", required_argument, NULL, CONFIG },
		{ "engine", required_argument, NULL, ENGINE },
		{ "dumper", required_argument, NULL, DUMPER },
		{ "keeper", required_argument, NULL, KEEPER },
		{ "check-config", no_argument, NULL, CHECK },
		{ "version", no_argument, NULL, VERSION },
		{ "help", no_argument, NULL, HELP },
		{ 0 },
	};
	char path[256];
	int c;

	while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0) {
		switch (c) {
		case INSTANCE:
			ret->instance = optarg;
			break;
		case CONFIG:
			ret->config = optarg;
			break;
		case ENGINE:
			ret->engine = optarg;
			break;
		case DUMPER:
			ret->dumper = optarg;
			break;
		case KEEPER:
			ret->keeper = optarg;
			break;
		case CHECK:
			ret->check_config = true;
			break;
		case VERSION:
			puts("perfpersistd " PP_VERSION);
			return 1;
		case HELP:
			fputs(help, stdout);
			return 1;
		default:
			fputs("Try perfpersistd --help.\n", stderr);
			return -EINVAL;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "perfpersistd takes no argument '%s'; try --help.\n", argv[optind]);
		return -EINVAL;
	}
	if (pp_place(ret->instance, "/registry", path, sizeof(path)) < 0) {
		fprintf(stderr,
			"'%s' cannot be an instance's name; take letters, digits, '_' and '-', "
			"beginning with a letter or '_', 63 at most.\n",
			ret->instance);
		return -EINVAL;
	}
	return 0;
}

static int load_config(const struct options *o, struct config **ret)
{
	char path[256];
	int r = config_path(o->instance, path, sizeof(path));

	if (r < 0)
		return r;
	return config_load(o->config ? o->config : path, o->config != NULL, stderr, ret);
}

static int check_dropins(const struct options *o, struct config *config)
{
	_cleanup_(cleanup_dropins) struct dropins *d = NULL;
	struct dropin_places places;
	int faults, r = dropin_places(o->instance, o->config, &places);

	if (r >= 0)
		r = dropins_load(&places, config, stderr, &d);
	if (r < 0) {
		fprintf(stderr, "Cannot read the configuration: %s.\n", strerror(-r));
		return r;
	}
	faults = dropins_check(d, config->max_buffer, stderr);
	if (faults != 0 || d->faults > 0)
		return -EINVAL;
	printf("%s: the configuration is sound: %zu event%s in events.d.\n", config->path, d->n,
	       d->n == 1 ? "" : "s");
	return 0;
}

/* Takes the control socket that systemd passed. 0: none; 1 with *ret; -errno (logged). */
static int passed_socket(int *ret)
{
	int n = sd_listen_fds(1);

	if (n == 0)
		return 0;
	if (n < 0 || n > 1 || sd_is_socket(SD_LISTEN_FDS_START, AF_UNIX, SOCK_SEQPACKET, 1) <= 0) {
		log_error("Expected one listening AF_UNIX SOCK_SEQPACKET socket, which "
			  "perfpersistd.socket makes; got something else.");
		return -EINVAL;
	}
	*ret = SD_LISTEN_FDS_START;
	return 1;
}

/* The event loop takes signals; writing to a closed connection must not kill us. */
static void prepare_process(void)
{
	struct rlimit limit;
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigaddset(&mask, SIGUSR2);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* Our parent may ignore it, and then the kernel would not report children that end. */
	signal(SIGCHLD, SIG_DFL);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int run_manager(const struct options *o, const struct config *config, struct foreground *f)
{
	_cleanup_(cleanup_manager) struct manager *m = NULL;
	struct manager_options options = {
		.config = config,
		.named = o->config,
		.instance = o->instance ? o->instance : "",
		.control = f->control,
		.launcher = f->launcher,
	};
	int r = privileges_drop(config->uid, config->gid);

	if (r < 0) {
		log_error("Cannot give up root's rights to run as %s: %s.", config->user,
			  strerror(-r));
		return r;
	}
	/* Other processes of our user must not trace us or read our memory, and clients' data must
	 * not get into a core file. (Changing the user resets this to fs.suid_dumpable.) */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	r = manager_new(&options, &m);
	if (r < 0) {
		log_error("Cannot start: %s.", strerror(-r));
		return r;
	}
	f->control = -EBADF;
	return manager_run(m);
}

static int run(const struct options *o)
{
	_cleanup_(cleanup_config) struct config *config = NULL;
	struct foreground f = FOREGROUND_NONE;
	int r = load_config(o, &config);

	if (r < 0)
		return r;
	if (o->check_config)
		return check_dropins(o, config);
	prepare_process();
	r = passed_socket(&f.control);
	if (r < 0)
		return r;
	if (r == 0 && geteuid() != 0) {
		log_error("perfpersistd must be started by root, for its engine's sake, or through "
			  "its systemd units.");
		return -EPERM;
	}
	/* Under systemd the unit sets our user; only the group of namespaces is needed. */
	r = config_resolve(config, stderr);
	if (r < 0)
		return r;
	if (f.control < 0) {
		struct foreground_options options = {
			.instance = o->instance ? o->instance : "",
			.engine = o->engine,
			.dumper = o->dumper,
			.keeper = o->keeper,
			.uid = config->uid,
			.gid = config->gid,
		};

		r = foreground_start(&options, &f);
		if (r < 0)
			return r;
	}
	r = run_manager(o, config, &f);
	foreground_done(&f);
	return r;
}

int main(int argc, char **argv)
{
	struct options options = { 0 };
	int r = parse_options(argc, argv, &options);

	if (r != 0)
		return r < 0 ? 2 : 0;
	log_open("perfpersistd");
	return run(&options) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
