// SPDX-License-Identifier: LGPL-2.1-or-later
/* Converts the list of offline CPUs, and makes it without a daemon. */
#include "client/request/away.h"

#include <limits.h>
#include <string.h>
#include <time.h>

#include "client/cpus.h"
#include "client/public.h"
#include "client/rings/bpf.h"
#include "proto/clock.h"

/* The registry's "+cpus" is an array of these, one for each CPU. */
#define STATES "+cpus"
struct cpu_state {
	uint64_t generation;
	uint64_t away; /* CLOCK_MONOTONIC; 0: online */
};

void client_away_done(struct client_away *a)
{
	free(a->v);
	*a = (struct client_away){ 0 };
}

int client_away_add(struct client_away *a, uint32_t cpu, uint64_t since)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 16;
		struct perfpersist_cpu_away *v = reallocarray(a->v, cap, sizeof(*v));

		if (!v)
			return client_fail(-ENOMEM, "cannot hold the list of CPUs: out of memory");
		a->v = v;
		a->cap = cap;
	}
	a->v[a->n++] = (struct perfpersist_cpu_away){
		.sz = sizeof(*a->v),
		.cpu = cpu,
		.since = since,
	};
	return 0;
}

/* ── Without a daemon ───────────────────────────────────────────────────────────────────── */

/* CLOCK_REALTIME; 0: unknown. states: the map; negative: this kernel has none. */
static uint64_t away_since(int states, uint32_t cpu)
{
	struct cpu_state s = { 0 };

	if (states < 0 || client_bpf_lookup(states, &cpu, &s) < 0 || !s.away)
		return 0;
	return pp_clock_real(s.away);
}

/* -EBADMSG: something else. */
static int open_states(const char *registry)
{
	_cleanup_close_ int fd = -EBADF;
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/" STATES, registry);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = client_bpf_open_pin(path);
	if (fd < 0)
		return fd;
	return client_bpf_is_array(fd, sizeof(struct cpu_state)) ? TAKE_FD(fd) : -EBADMSG;
}

int client_away_direct(const char *registry, struct client_away *ret)
{
	_cleanup_close_ int states = open_states(registry);
	struct client_cpus present, online;
	int r = client_cpus_read("present", &present);

	if (r >= 0)
		r = client_cpus_read("online", &online);
	if (r < 0)
		return client_fail(r, "cannot find out which CPUs are online: %s", strerror(-r));
	for (uint32_t cpu = 0; cpu < CLIENT_CPUS_MAX; cpu++) {
		uint64_t since;

		if (client_cpus_have(&online, cpu))
			continue;
		/* The map also has CPUs that were removed from the machine while offline. */
		since = away_since(states, cpu);
		if (!since && !client_cpus_have(&present, cpu))
			continue;
		r = client_away_add(ret, cpu, since);
		if (r < 0)
			return r;
	}
	return 0;
}

void client_away_fill(struct perfpersist_info *info)
{
	struct client_cpus cpus, online;

	info->away[0] = 0;
	if (client_cpus_parse(info->cpus, &cpus) < 0 || client_cpus_read("online", &online) < 0)
		return;
	client_cpus_remove(&cpus, &online);
	client_cpus_format(&cpus, info->away, sizeof(info->away));
}
