// SPDX-License-Identifier: LGPL-2.1-or-later
/* Owns the socket to the keeper. See keeper.h. */
#include "daemon/broker/link/keeper.h"

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "daemon/broker/link/timer.h"
#include "daemon/log.h"
#include "proto/macro.h"

/* After this time it will not answer any more. Reading the processes of a large machine takes
 * seconds, and longer if a process makes it slow. */
#define PATIENCE_SECONDS 30
#define TASKS_SECONDS 150
#define GREETING_SECONDS 3 /* to start takes less */
/* Behind a request of another connection. */
#define PATIENT_SECONDS (TASKS_SECONDS + PATIENCE_SECONDS)

static int on_io(sd_event_source *s, int fd, uint32_t revents, void *userdata);

/* ── the connection ─────────────────────────────────────────────────────────────────────── */

void keeper_disconnect(struct keeper *k)
{
	link_close(&k->link);
	k->greeted = false;
	k->n_asked = 0;
	timer_stop(k->patience);
}

/* ── its process ────────────────────────────────────────────────────────────────────────── */

/* The kernel closes the connection when the process ends. So while the connection stands, the pid
 * still belongs to the process that sent it. */
static void know_process(struct keeper *k, uint32_t pid)
{
	struct pollfd p = { .events = POLLIN };

	k->process = close_fd(k->process);
	p.fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
	if (p.fd >= 0 && poll(&p, 1, 0) == 0)
		k->process = p.fd;
	else
		close_fd(p.fd);
}

/* A keeper that hangs never lets go of resources that nobody else can have while it lives. */
static bool kill_process(struct keeper *k)
{
	if (k->process < 0 || syscall(SYS_pidfd_send_signal, k->process, SIGKILL, NULL, 0) < 0)
		return false;
	k->process = close_fd(k->process);
	return true;
}

static void lose(struct keeper *k)
{
	keeper_disconnect(k);
	k->ended(k->userdata);
}

int keeper_connect(struct keeper *k)
{
	int r;

	assert(k->link.fd < 0);
	r = link_connect(&k->link, on_io, k);
	if (r < 0)
		return r;
	keeper_request(k, PP_KEEP_HELLO);
	r = keeper_ask(k, NULL, 0);
	if (r < 0)
		keeper_disconnect(k);
	return r;
}

/* ── requests ───────────────────────────────────────────────────────────────────────────── */

struct pp_keep_request *keeper_request(struct keeper *k, enum pp_keep_type type)
{
	k->out = (struct pp_keep_request){ .abi = PP_KEEP_ABI, .type = type };
	return &k->out;
}

static unsigned patience_for(const struct keeper *k, enum pp_keep_type type)
{
	if (k->patient)
		return PATIENT_SECONDS;
	return type == PP_KEEP_TASKS ? TASKS_SECONDS : PATIENCE_SECONDS;
}

int keeper_ask(struct keeper *k, const int *fds, size_t n_fds)
{
	unsigned seconds;
	int r;

	assert(k->n_asked < KEEPER_ASKED_MAX);
	k->out.serial = k->serial + 1;
	r = pp_packet_send(k->link.fd, &k->out, sizeof(k->out), fds, n_fds);
	if (r < 0)
		return r;
	k->serial++;
	k->asked[k->n_asked++] = k->out.type;
	seconds = k->greeted ? patience_for(k, k->out.type) : GREETING_SECONDS;
	timer_start(k->patience, seconds * 1000000ULL);
	return 0;
}

/* ── answers ────────────────────────────────────────────────────────────────────────────── */

/* After an upgrade the keeper may be of an older or newer version; the only request to it is to
 * end. */
static void replace(struct keeper *k)
{
	log_info("The keeper at %s is of another version; a new one replaces it, and exited "
		 "processes will be unnamed.",
		 k->link.address.sun_path);
	keeper_request(k, PP_KEEP_END);
	keeper_ask(k, NULL, 0);
	lose(k);
}

static bool answer_is_sound(const struct keeper *k, const struct pp_keep_answer *a)
{
	return k->n_asked > 0 && a->serial == k->serial - (k->n_asked - 1) && a->error >= 0 &&
	       a->error <= 4095 && a->n_cpus <= PP_KEEP_CPUS;
}

static void take_answer(struct keeper *k, struct pp_fds *fds)
{
	enum pp_keep_type type = k->asked[0];

	k->n_asked--;
	memmove(k->asked, k->asked + 1, k->n_asked * sizeof(*k->asked));
	if (k->n_asked == 0)
		timer_stop(k->patience);
	if (!k->greeted)
		know_process(k, k->in.pid);
	k->greeted = true;
	k->mute = k->stuck = false;
	k->silent_since = 0;
	k->answered(k->userdata, type, &k->in, fds);
}

static int on_io(sd_event_source *s _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
	_cleanup_(pp_fds_close) struct pp_fds fds = { .n = 0 };
	struct keeper *k = userdata;
	ssize_t n = pp_packet_receive(fd, &k->in, sizeof(k->in), 1, &fds, MSG_DONTWAIT);

	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (!k->greeted && (n == -EBADMSG || (n > 0 && n != sizeof(k->in)) ||
			    (n > 0 && k->in.abi != PP_KEEP_ABI))) {
		replace(k);
	} else if (n != sizeof(k->in) || k->in.abi != PP_KEEP_ABI || !answer_is_sound(k, &k->in)) {
		if (n > 0 || n == -EBADMSG)
			log_error("The keeper sent a malformed answer; reconnecting.");
		lose(k);
	} else {
		take_answer(k, &fds);
	}
	return 0;
}

/* A keeper that is busy for somebody else may not answer a greeting at once. */
static bool is_stuck(struct keeper *k, uint64_t now)
{
	if (k->greeted)
		return true;
	if (!k->silent_since)
		k->silent_since = now - GREETING_SECONDS * 1000000ULL;
	return now - k->silent_since >= patience_for(k, PP_KEEP_HELLO) * 1000000ULL;
}

static int on_patience(sd_event_source *s _unused_, uint64_t usec, void *userdata)
{
	struct keeper *k = userdata;
	unsigned waited =
		patience_for(k, k->n_asked > 0 ? k->asked[k->n_asked - 1] : PP_KEEP_HELLO);

	k->mute = !k->greeted;
	if (is_stuck(k, usec)) {
		k->stuck = kill_process(k);
		k->silent_since = 0;
		log_error("The keeper at %s has not answered for %u seconds; %s.",
			  k->link.address.sun_path, waited,
			  k->stuck ? "it is killed, and a new one starts" : "reconnecting");
	}
	lose(k);
	return 0;
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

int keeper_init(struct keeper *k, sd_event *loop, const char *path)
{
	int r = link_init(&k->link, loop, path);

	k->process = -EBADF;
	return r < 0 ? r : timer_add(loop, &k->patience, on_patience, k);
}

void keeper_done(struct keeper *k)
{
	if (!k->link.loop)
		return;
	keeper_disconnect(k);
	k->process = close_fd(k->process);
	k->patience = sd_event_source_disable_unref(k->patience);
	link_done(&k->link);
}
