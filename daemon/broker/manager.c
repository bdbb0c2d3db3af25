// SPDX-License-Identifier: LGPL-2.1-or-later
/* Puts the parts together and runs them. Decides nothing about requests or events. */
#include "daemon/broker/manager.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "daemon/broker/lifecycle.h"
#include "daemon/broker/listener.h"
#include "daemon/broker/peer.h"
#include "daemon/broker/quota.h"
#include "daemon/broker/request.h"
#include "daemon/log.h"
#include "proto/macro.h"
#include "proto/places.h"

struct manager {
	sd_event *loop;
	char instance[PP_NAME_SIZE];
	char registry[256], engine[256];
	struct quota quota;
	struct lifecycle lifecycle;
	struct service service;
	struct peers peers;
	struct listener listener;
	bool listening, ready;
};

/* ── how things stand ───────────────────────────────────────────────────────────────────── */

static void notify(struct manager *m)
{
	const struct registry *r = &m->lifecycle.registry;
	bool up = orders_is_up(m->lifecycle.orders);
	bool ready = m->lifecycle.synced && !m->ready;

	sd_notifyf(0, "%sSTATUS=%zu event%s in %zu namespace%s%s", ready ? "READY=1\n" : "",
		   r->n_settled, r->n_settled == 1 ? "" : "s", r->n_namespaces,
		   r->n_namespaces == 1 ? "" : "s", up ? "" : "; the engine is away");
	if (!ready)
		return;
	m->ready = true;
	log_info("Ready: %zu event%s in %zu namespace%s.", r->n_settled,
		 r->n_settled == 1 ? "" : "s", r->n_namespaces, r->n_namespaces == 1 ? "" : "s");
}

/*
 * Clients wait in the socket's queue until it is known which events there are; when the
 * engine does not come at all they had better be told.
 */
static void on_changed(void *userdata)
{
	struct manager *m = userdata;

	if (!m->listening && (m->lifecycle.synced || !orders_is_patient(m->lifecycle.orders))) {
		m->listening = true;
		listener_start(&m->listener);
	}
	notify(m);
}

/* ── what ends it ───────────────────────────────────────────────────────────────────────── */

static int on_signal(sd_event_source *s, const struct signalfd_siginfo *si, void *userdata _unused_)
{
	log_info("Ending on %s; the events go on recording.", strsignal((int)si->ssi_signo));
	return sd_event_exit(sd_event_source_get_event(s), 0);
}

static int on_launcher(sd_event_source *s, const siginfo_t *si _unused_, void *userdata _unused_)
{
	log_error("The process that runs the engine has ended; the events go on recording. Start "
		  "perfpersistd again.");
	return sd_event_exit(sd_event_source_get_event(s), -ECHILD);
}

static int ignore_signal(sd_event_source *s _unused_, const struct signalfd_siginfo *si _unused_,
			 void *userdata _unused_)
{
	return 0;
}

static int add_endings(struct manager *m, pid_t launcher)
{
	int err = sd_event_add_signal(m->loop, NULL, SIGTERM, on_signal, m);

	if (err < 0)
		return err;
	err = sd_event_add_signal(m->loop, NULL, SIGINT, on_signal, m);
	if (err < 0)
		return err;
	err = sd_event_add_signal(m->loop, NULL, SIGHUP, ignore_signal, m);
	if (err < 0 || !launcher)
		return err;
	return sd_event_add_child(m->loop, NULL, launcher, WEXITED, on_launcher, m);
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

static int configure_namespaces(struct manager *m, const struct config *config)
{
	for (size_t i = 0; i < config->n_namespaces; i++) {
		const struct config_namespace *ns = &config->namespaces[i];
		int err = registry_configure(&m->lifecycle.registry, ns->name, ns->owner, ns->group,
					     ns->mode);

		if (err < 0)
			return err;
	}
	return 0;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Half of what the kernel lets this user have in flight, which is as many as it may open. */
static size_t max_in_flight(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	return MIN(limit.rlim_cur, (rlim_t)1 << 20) / 2;
}

static void wire(struct manager *m, const struct config *config)
{
	m->quota.max_connections = config->max_connections;
	m->quota.max_per_user = config->max_connections_per_user;
	m->peers.loop = m->loop;
	m->peers.quota = &m->quota;
	m->peers.max_requests = config->max_requests;
	m->peers.max_in_flight = max_in_flight();
	m->peers.request = request_handle;
	m->peers.userdata = &m->service;
	m->service.config = config;
	m->service.instance = m->instance;
	m->service.registry = m->registry;
	m->service.lifecycle = &m->lifecycle;
	m->service.started = now();
	m->lifecycle.changed = on_changed;
	m->lifecycle.userdata = m;
}

int manager_new(const struct manager_options *options, struct manager **ret)
{
	_cleanup_(cleanup_manager) struct manager *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->listener.fd = -EBADF;
	err = pp_place(options->instance, "/registry", m->registry, sizeof(m->registry));
	if (err < 0)
		return err;
	err = pp_place(options->instance, "/engine", m->engine, sizeof(m->engine));
	if (err < 0)
		return err;
	snprintf(m->instance, sizeof(m->instance), "%s", options->instance);
	err = sd_event_new(&m->loop);
	if (err < 0)
		return err;
	wire(m, options->config);
	err = configure_namespaces(m, options->config);
	if (err < 0)
		return err;
	err = add_endings(m, options->launcher);
	if (err < 0)
		return err;
	err = sd_event_set_watchdog(m->loop, true);
	if (err < 0)
		return err;
	err = lifecycle_init(&m->lifecycle, m->loop, m->engine);
	if (err < 0)
		return err;
	err = listener_init(&m->listener, &m->peers, options->control);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(m);
	return 0;
}

int manager_run(struct manager *m)
{
	int err = orders_start(m->lifecycle.orders);

	if (err >= 0)
		err = sd_event_loop(m->loop);
	sd_notify(0, "STOPPING=1");
	if (err < 0 && err != -ECHILD)
		log_error("The event loop failed: %s.", strerror(-err));
	return err;
}

void manager_free(struct manager *m)
{
	if (!m)
		return;
	/* Peers first: who waits for an order that ends now is not there any more. */
	listener_done(&m->listener);
	peers_done(&m->peers);
	m->ready = m->listening = true;
	lifecycle_done(&m->lifecycle);
	quota_done(&m->quota);
	sd_event_unref(m->loop);
	free(m);
}

void cleanup_manager(struct manager **m)
{
	manager_free(*m);
}
