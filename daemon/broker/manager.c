// SPDX-License-Identifier: LGPL-2.1-or-later
/* Connects the parts and runs them. Decides nothing about requests or events. */
#include "daemon/broker/manager.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "daemon/broker/auxtrace/auxtrace.h"
#include "daemon/broker/edge/listener.h"
#include "daemon/broker/edge/peer.h"
#include "daemon/broker/handout/copies.h"
#include "daemon/broker/hotplug/generations.h"
#include "daemon/broker/hotplug/hotplug.h"
#include "daemon/broker/hotplug/missing-rings.h"
#include "daemon/broker/lifecycle/lifecycle.h"
#include "daemon/broker/link/timer.h"
#include "daemon/broker/reload.h"
#include "daemon/broker/request/request.h"
#include "daemon/broker/sideband/sideband.h"
#include "daemon/broker/state/quota.h"
#include "daemon/broker/stop.h"
#include "daemon/broker/telling.h"
#include "daemon/broker/triggers/firings.h"
#include "daemon/broker/triggers/overdue.h"
#include "daemon/broker/triggers/triggers.h"
#include "daemon/log.h"
#include "proto/clock.h"
#include "proto/macro.h"
#include "proto/places.h"

struct manager {
	sd_event *loop;
	char instance[PP_NAME_SIZE];
	char registry[256], engine[256], dumper[256], keeper[256];
	struct quota quota;
	struct lifecycle lifecycle;
	struct service service;
	struct peers peers;
	struct watchers watchers;
	struct hotplug hotplug;
	struct generations generations;
	struct missing_rings missing_rings;
	struct triggers triggers;
	struct firings firings;
	struct telling telling;
	struct overdue overdue;
	struct sideband sideband;
	struct auxtrace auxtrace;
	struct stop stop;
	struct listener listener;
	struct reload reload;
	uint64_t watchdog; /* microseconds between two signs of life */
	bool listening, ready, was_ready, stopped;
};

/* ── how things stand ───────────────────────────────────────────────────────────────────── */

static void notify(struct manager *m)
{
	const struct registry *r = &m->lifecycle.registry;
	bool up = orders_is_up(m->lifecycle.orders);
	bool ready = m->reload.settled && !m->ready;

	sd_notifyf(0, "%sSTATUS=%zu event%s in %zu namespace%s%s", ready ? "READY=1\n" : "",
		   r->n_settled, r->n_settled == 1 ? "" : "s", r->n_namespaces,
		   r->n_namespaces == 1 ? "" : "s", up ? "" : "; the engine is away");
	if (!ready)
		return;
	m->ready = true;
	if (m->was_ready)
		return;
	m->was_ready = true;
	log_info("Ready: %zu event%s in %zu namespace%s.", r->n_settled,
		 r->n_settled == 1 ? "" : "s", r->n_namespaces, r->n_namespaces == 1 ? "" : "s");
}

/* The engine makes the ring buffer with the first trigger. */
static void continue_triggers(struct manager *m)
{
	int r;

	if (m->stop.begun)
		return;
	triggers_continue(&m->triggers);
	overdue_continue(&m->overdue);
	r = m->triggers.first ? firings_listen(&m->firings) : 0;
	if (r < 0 && r != -ENOENT)
		log_error("Cannot read what triggers fire: %s; what they freeze is saved when the "
			  "engine is started again.",
			  strerror(-r));
}

/*
 * Clients wait in the socket's queue until the events are known. If the engine does not come at
 * all, they get an error instead.
 */
static void on_changed(void *userdata)
{
	struct manager *m = userdata;

	if (!m->listening && (m->lifecycle.synced || !orders_is_patient(m->lifecycle.orders))) {
		m->listening = true;
		listener_start(&m->listener);
	}
	reload_continue(&m->reload);
	missing_rings_continue(&m->missing_rings);
	continue_triggers(m);
	auxtrace_continue(&m->auxtrace);
	sideband_continue(&m->sideband); /* before stop_continue, which may end the daemon */
	stop_continue(&m->stop);
	if (!m->stop.begun)
		notify(m);
}

/* The configuration is being read again: systemd waits for READY=1. */
static void on_reload(void *userdata)
{
	struct manager *m = userdata;
	uint64_t usec = 0;

	if (!m->ready)
		return;
	m->ready = false;
	sd_event_now(m->loop, CLOCK_MONOTONIC, &usec);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, usec);
}

static void configure_sideband(struct manager *m)
{
	const struct config *c = m->service.config;

	sideband_configure(&m->sideband, c->sideband, c->max_sideband);
}

static void on_reloaded(void *userdata)
{
	configure_sideband(userdata);
	notify(userdata);
}

static void on_creating(void *userdata)
{
	struct manager *m = userdata;

	sideband_continue(&m->sideband);
}

/* ── what watchers are told ─────────────────────────────────────────────────────────────── */

static void on_name_ended(void *userdata, const struct event *e)
{
	struct manager *m = userdata;

	reload_ended(&m->reload, e);
}

static void on_notice(void *userdata, enum pp_notice_kind kind, const struct event *e)
{
	struct manager *m = userdata;

	if (kind == PP_NOTICE_DELETED)
		telling_last(&m->telling, e);
	watchers_tell_event(&m->watchers, kind, e);
}

static void on_fired(void *userdata, const struct pp_fired *fired)
{
	struct manager *m = userdata;

	if (fired->closed) {
		triggers_note_closed(&m->triggers, fired->closed);
		return;
	}
	triggers_note(&m->triggers, fired->trigger, fired->time);
	telling_fired(&m->telling, fired);
}

static void on_firings_read(void *userdata)
{
	struct manager *m = userdata;

	triggers_continue(&m->triggers);
}

static void on_fired_by_order(void *userdata, const struct event *e, const struct pp_fired *by)
{
	struct manager *m = userdata;

	telling_fired(&m->telling, by);
	triggers_fired(&m->triggers, e->truth.id, by->time);
}

static void on_paused_by(void *userdata, const struct event *e, const struct pp_fired *by)
{
	struct manager *m = userdata;

	telling_log(&m->telling, &e->truth.spec, by);
}

static void on_tape(void *userdata, const struct tape *tape)
{
	struct manager *m = userdata;

	telling_log(&m->telling, &tape->event.truth.spec, &tape->by);
	watchers_tell_event(&m->watchers, PP_NOTICE_TAPE, &tape->event);
}

static void on_cpu(void *userdata, unsigned cpu, bool online)
{
	struct manager *m = userdata;

	watchers_tell_cpu(&m->watchers, online ? PP_NOTICE_CPU_ONLINE : PP_NOTICE_CPU_OFFLINE, cpu);
	if (online)
		return;
	sideband_went(&m->sideband, cpu);
	auxtrace_went(&m->auxtrace, cpu);
}

static void on_came(void *userdata, const struct pp_cpumask *cpus _unused_)
{
	struct manager *m = userdata;

	missing_rings_add(&m->missing_rings);
	sideband_came(&m->sideband);
	auxtrace_retry(&m->auxtrace);
}

static void on_looked(void *userdata)
{
	struct manager *m = userdata;

	missing_rings_retry(&m->missing_rings);
	if (!m->stop.begun) {
		firings_look(&m->firings);
		telling_look(&m->telling);
		triggers_retry(&m->triggers);
	}
	sideband_retry(&m->sideband);
}

static void find_bounced(void *userdata, const struct pp_cpumask *online, struct pp_cpumask *ret)
{
	struct manager *m = userdata;

	generations_look(&m->generations, m->registry, online, ret);
}

static void on_drained(void *userdata _unused_, struct peer *peer)
{
	watchers_drained(peer);
}

static void on_relieved(void *userdata)
{
	struct service *s = userdata;

	if (s->wakeups)
		wakeups_relieved(s->wakeups);
}

/* ── what ends it ───────────────────────────────────────────────────────────────────────── */

static void on_stopped(void *userdata)
{
	struct manager *m = userdata;

	/* Without being told, the keeper would go on. It answers at once, and we do not wait for
	 * long. */
	m->stopped = true;
	if (!sideband_is_leaving(&m->sideband) && !auxtrace_is_leaving(&m->auxtrace))
		sd_event_exit(m->loop, 0);
}

static void on_keeper_left(void *userdata)
{
	struct manager *m = userdata;

	if (m->stopped && !sideband_is_leaving(&m->sideband) && !auxtrace_is_leaving(&m->auxtrace))
		sd_event_exit(m->loop, 0);
}

/* A second signal ends the daemon without waiting for the deletion of events. */
static int on_signal(sd_event_source *s _unused_, const struct signalfd_siginfo *si, void *userdata)
{
	struct manager *m = userdata;
	const char *signal_name = strsignal((int)si->ssi_signo);

	if (m->service.config->keep_events || m->stop.begun) {
		log_info("Ending on %s; the events go on recording.", signal_name);
		return sd_event_exit(m->loop, 0);
	}
	log_info("Ending on %s, and all events with it (KeepEvents=no).", signal_name);
	sd_notify(0, "STOPPING=1");
	reload_end(&m->reload);
	if (stop_begin(&m->stop, m->loop) < 0) {
		log_error("There is no memory to end all events; they go on recording.");
		return sd_event_exit(m->loop, 0);
	}
	return 0;
}

static int on_launcher(sd_event_source *s, const siginfo_t *si _unused_, void *userdata _unused_)
{
	log_error("The process that runs the engine has ended; the events go on recording. Start "
		  "perfpersistd again.");
	return sd_event_exit(sd_event_source_get_event(s), -ECHILD);
}

static int on_hangup(sd_event_source *s _unused_, const struct signalfd_siginfo *si _unused_,
		     void *userdata)
{
	struct manager *m = userdata;

	reload_again(&m->reload);
	return 0;
}

/* All triggers, as `perfctl trigger fire` does; their limits count. */
static int on_fire(sd_event_source *s _unused_, const struct signalfd_siginfo *si _unused_,
		   void *userdata)
{
	struct manager *m = userdata;
	const struct registry *r = &m->lifecycle.registry;

	for (size_t i = 0; i < r->n_settled; i++) {
		const struct pp_spec *spec = &r->by_id[i]->truth.spec;
		char sentence[PP_SENTENCE_SIZE];
		int err;

		if (!(spec->flags & PP_EVENT_TRIGGER))
			continue;
		err = lifecycle_fire(&m->lifecycle, r->by_id[i], false, NULL);
		if (err >= 0)
			continue;
		lifecycle_explain(&m->lifecycle, err, spec->ns, spec->name, sentence,
				  sizeof(sentence));
		log_warning("Cannot fire %s/%s: %s", spec->ns, spec->name, sentence);
	}
	return 0;
}

static int add_endings(struct manager *m, pid_t launcher)
{
	int r = sd_event_add_signal(m->loop, NULL, SIGTERM, on_signal, m);

	if (r < 0)
		return r;
	r = sd_event_add_signal(m->loop, NULL, SIGINT, on_signal, m);
	if (r < 0)
		return r;
	r = sd_event_add_signal(m->loop, NULL, SIGUSR2, on_fire, m);
	if (r < 0)
		return r;
	r = sd_event_add_signal(m->loop, NULL, SIGHUP, on_hangup, m);
	if (r < 0 || !launcher)
		return r;
	return sd_event_add_child(m->loop, NULL, launcher, WEXITED, on_launcher, m);
}

/* ── the watchdog ───────────────────────────────────────────────────────────────────────── */

static int on_watchdog(sd_event_source *s, uint64_t usec _unused_, void *userdata)
{
	struct manager *m = userdata;

	sd_notify(0, "WATCHDOG=1");
	sd_event_source_set_time_relative(s, m->watchdog);
	return sd_event_source_set_enabled(s, SD_EVENT_ONESHOT);
}

/* Our own timer instead of the loop's (sd_event_set_watchdog()): periodic checks run with it and
 * cost no wakeup. */
static int watch_over_us(struct manager *m)
{
	uint64_t limit;
	int r = sd_watchdog_enabled(0, &limit);

	if (r < 0)
		return r;
	if (r == 0) /* without systemd; what was refused is tried again all the same */
		limit = 60 * 1000000ULL;
	m->watchdog = limit / 2;
	return sd_event_add_time_relative(m->loop, NULL, CLOCK_MONOTONIC, m->watchdog,
					  m->watchdog / 8, on_watchdog, m);
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

static size_t max_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	return MIN(limit.rlim_cur, (rlim_t)1 << 20);
}

static void wire(struct manager *m)
{
	m->peers.loop = m->loop;
	m->peers.quota = &m->quota;
	/* Half of the descriptors that the kernel lets this user have in flight: as many as it may
	 * open. */
	m->peers.max_in_flight = max_descriptors() / 2;
	m->peers.request = request_handle;
	m->peers.drained = on_drained;
	m->peers.relieved = on_relieved;
	m->peers.userdata = &m->service;
	m->service.instance = m->instance;
	m->service.registry = m->registry;
	m->service.lifecycle = &m->lifecycle;
	m->service.started = pp_clock_ns(CLOCK_REALTIME);
	m->lifecycle.charges.quota = &m->quota;
	m->service.watchers = &m->watchers;
	m->service.hotplug = &m->hotplug;
	m->missing_rings.lifecycle = &m->lifecycle;
	m->missing_rings.online = &m->hotplug.online;
	m->triggers.lifecycle = &m->lifecycle;
	m->triggers.loop = m->loop;
	m->triggers.ready = on_tape;
	m->triggers.userdata = m;
	m->telling.loop = m->loop;
	m->telling.registry = m->registry;
	m->telling.lifecycle = &m->lifecycle;
	m->telling.watchers = &m->watchers;
	m->telling.triggers = &m->triggers;
	m->overdue.loop = m->loop;
	m->overdue.lifecycle = &m->lifecycle;
	m->overdue.registry = m->registry;
	m->firings.loop = m->loop;
	m->firings.registry = m->registry;
	m->firings.fired = on_fired;
	m->firings.done = on_firings_read;
	m->firings.userdata = m;
	m->sideband.lifecycle = &m->lifecycle;
	m->sideband.online = &m->hotplug.online;
	m->sideband.registry = m->registry;
	m->sideband.gone = on_keeper_left;
	m->sideband.userdata = m;
	m->service.sideband = &m->sideband;
	m->auxtrace.lifecycle = &m->lifecycle;
	m->auxtrace.online = &m->hotplug.online;
	m->auxtrace.registry = m->registry;
	m->auxtrace.gone = on_keeper_left;
	m->auxtrace.userdata = m;
	m->service.auxtrace = &m->auxtrace;
	m->stop.lifecycle = &m->lifecycle;
	m->stop.ended = on_stopped;
	m->stop.userdata = m;
	m->lifecycle.changed = on_changed;
	m->lifecycle.creating = on_creating;
	m->lifecycle.notice = on_notice;
	m->lifecycle.fired = on_fired_by_order;
	m->lifecycle.paused_by = on_paused_by;
	m->lifecycle.ended = on_name_ended;
	m->lifecycle.userdata = m;
}

static int read_configuration(struct manager *m, const struct manager_options *options)
{
	struct reload_options reload = {
		.config = options->config,
		.instance = options->instance,
		.named = options->named,
	};
	int r;

	m->reload.lifecycle = &m->lifecycle;
	m->reload.quota = &m->quota;
	m->reload.peers = &m->peers;
	m->reload.service = &m->service;
	m->reload.begun = on_reload;
	m->reload.ended = on_reloaded;
	m->reload.userdata = m;
	m->service.boot = reload_boot;
	m->service.forget = reload_forget;
	m->service.reload = reload_request;
	m->service.userdata = &m->reload;
	r = reload_init(&m->reload, &reload);
	if (r >= 0)
		configure_sideband(m);
	return r;
}

static int make_edge(struct manager *m)
{
	int r = copies_new(m->loop, &m->quota, m->dumper, &m->service.copies);

	if (r < 0)
		return r;
	r = wakeups_new(m->loop, m->registry, max_descriptors() / 4, &m->service.wakeups);
	if (r < 0)
		return r;
	r = sideband_init(&m->sideband, m->loop, m->keeper);
	if (r >= 0)
		r = auxtrace_init(&m->auxtrace, m->loop, m->keeper);
	if (r < 0)
		return r;
	m->hotplug.changed = on_cpu;
	m->hotplug.came = on_came;
	m->hotplug.looked = on_looked;
	m->hotplug.bounced = find_bounced;
	m->hotplug.userdata = m;
	return hotplug_init(&m->hotplug, m->loop);
}

int manager_new(const struct manager_options *options, struct manager **ret)
{
	_cleanup_(cleanup_manager) struct manager *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->listener.fd = -EBADF;
	m->firings.fd = -EBADF;
	m->service.totals = -EBADF;
	r = pp_place(options->instance, "/registry", m->registry, sizeof(m->registry));
	if (r < 0)
		return r;
	r = pp_place(options->instance, "/engine", m->engine, sizeof(m->engine));
	if (r < 0)
		return r;
	r = pp_place(options->instance, "/dumper", m->dumper, sizeof(m->dumper));
	if (r < 0)
		return r;
	r = pp_place(options->instance, "/keeper", m->keeper, sizeof(m->keeper));
	if (r < 0)
		return r;
	snprintf(m->instance, sizeof(m->instance), "%s", options->instance);
	r = sd_event_new(&m->loop);
	if (r < 0)
		return r;
	quota_init(&m->quota);
	wire(m);
	r = peers_init(&m->peers);
	if (r < 0)
		return r;
	r = read_configuration(m, options);
	if (r < 0)
		return r;
	r = add_endings(m, options->launcher);
	if (r < 0)
		return r;
	r = watch_over_us(m);
	if (r < 0)
		return r;
	r = lifecycle_init(&m->lifecycle, m->loop, m->engine);
	if (r < 0)
		return r;
	r = make_edge(m);
	if (r < 0)
		return r;
	r = listener_init(&m->listener, &m->peers, options->control);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(m);
	return 0;
}

int manager_run(struct manager *m)
{
	int r = orders_start(m->lifecycle.orders);

	if (r >= 0)
		r = sd_event_loop(m->loop);
	sd_notify(0, "STOPPING=1");
	telling_look(&m->telling);
	if (r < 0 && r != -ECHILD)
		log_error("The event loop failed: %s.", strerror(-r));
	return r;
}

void manager_free(struct manager *m)
{
	if (!m)
		return;
	/* Peers first: orders that end after this have no client to answer. */
	listener_done(&m->listener);
	peers_done(&m->peers);
	auxtrace_done(&m->auxtrace);
	sideband_done(&m->sideband);
	copies_free(m->service.copies);
	wakeups_free(m->service.wakeups);
	hotplug_done(&m->hotplug);
	stop_done(&m->stop);
	m->ready = m->listening = true;
	reload_end(&m->reload);
	lifecycle_done(&m->lifecycle);
	close_fd(m->service.totals);
	/* Orders that end go on with these. */
	telling_done(&m->telling);
	firings_done(&m->firings);
	triggers_done(&m->triggers);
	overdue_done(&m->overdue);
	reload_done(&m->reload);
	quota_done(&m->quota);
	sd_event_unref(m->loop);
	free(m);
}

void cleanup_manager(struct manager **m)
{
	manager_free(*m);
}
