// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the configuration, compares it, puts it in force, and reports the result. */
#include "daemon/broker/reload.h"

#include <assert.h>
#include <string.h>

#include "daemon/broker/config/boot-file.h"
#include "daemon/broker/config/limits.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"

/* A client that waits for the end of a reload. */
struct asking {
	struct asking *next;
	struct peer_claim claim;
	struct pp_header header;
};

/* ── complaints ─────────────────────────────────────────────────────────────────────────── */

static void complain(void *userdata, const char *sentence)
{
	struct reload *reload = userdata;

	if (reload->ending)
		return;
	log_warning("%s", sentence);
	if (reload->failed++ == 0)
		snprintf(reload->message, sizeof(reload->message), "%s", sentence);
}

static void complain_lines(struct reload *reload, char *lines)
{
	char *line;

	while ((line = strsep(&lines, "\n")))
		if (*line)
			complain(reload, line);
}

/* ── reading ────────────────────────────────────────────────────────────────────────────── */

/* The running process cannot change its identity, so nothing that follows from it may change,
 * either. */
static void keep_identity(struct config *new, const struct config *old, FILE *complaints)
{
	if (new->uid != old->uid || new->gid != old->gid || new->ns_group != old->ns_group)
		fprintf(complaints,
			"%s: a change of User= or Group= needs a restart of perfpersistd, which "
			"costs no event a record.\n",
			new->path);
	new->uid = old->uid;
	new->gid = old->gid;
	new->ns_group = old->ns_group;
}

/* A file with faults leaves the old configuration in force. 0; -ENOMEM. */
static int read_base(struct reload *reload, FILE *complaints)
{
	_cleanup_(cleanup_config) struct config *new = NULL;
	int r = config_load(reload->base->path, reload->required, complaints, &new);

	if (r == -ENOMEM)
		return r;
	if (r < 0 || config_resolve(new, complaints) < 0)
		return 0;
	keep_identity(new, reload->base, complaints);
	config_free(reload->base);
	reload->base = TAKE_PTR(new);
	return 0;
}

/* The contents of events.d override perfpersistd.conf. */
static int read_dropins(struct reload *reload, FILE *complaints)
{
	_cleanup_(cleanup_config) struct config *config = NULL;
	_cleanup_(cleanup_dropins) struct dropins *d = NULL;
	int r = config_copy(reload->base, &config);

	if (r >= 0)
		r = dropins_load(&reload->places, config, complaints, &d);
	if (r < 0)
		return r;
	config_resolve_namespaces(config);
	reload->peers->max_requests = config->max_requests;
	reload->service->config = config;
	config_free(reload->in_force);
	reload->in_force = TAKE_PTR(config);
	dropins_free(reload->dropins);
	reload->dropins = TAKE_PTR(d);
	r = limits_apply(reload->in_force, reload->quota, reload->dropins->incomplete);
	if (r < 0)
		return r;
	return configured_namespaces(reload->lifecycle, reload->in_force,
				     reload->dropins->incomplete);
}

/* base: perfpersistd.conf, too. 0; -ENOMEM (reported, except at the start). */
static int read_files(struct reload *reload, bool base)
{
	_cleanup_free_ char *lines = NULL;
	size_t size;
	FILE *complaints = open_memstream(&lines, &size);
	int r;

	if (!complaints)
		return -ENOMEM;
	reload->failed = 0;
	reload->message[0] = '\0';
	r = base ? read_base(reload, complaints) : 0;
	if (r >= 0)
		r = read_dropins(reload, complaints);
	if (fclose(complaints) != 0)
		return -ENOMEM;
	complain_lines(reload, lines);
	reload->due = r >= 0;
	return r;
}

/* ── who asked ──────────────────────────────────────────────────────────────────────────── */

void reload_request(void *userdata, struct peer *peer, const struct pp_header *header)
{
	struct reload *reload = userdata;
	struct asking *a;

	if (!reload->lifecycle->synced) {
		peer_fail(peer, header, EAGAIN,
			  "The engine has not started yet, so it is not known which events there "
			  "are; look at the daemon's log, and try again.");
		return;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		peer_fail(peer, header, ENOMEM,
			  "The daemon has no memory for the request; try again.");
		return;
	}
	a->header = *header;
	a->next = reload->waiting;
	reload->waiting = a;
	peer_claim_begin(peer, &a->claim);
	reload_again(reload);
}

static void tell(struct reload *reload, const struct configured_result *result)
{
	struct pp_msg_reload_reply reply = {
		.created = result->created,
		.changed = result->changed,
		.deleted = result->deleted,
		.failed = reload->failed,
	};

	memcpy(reply.message, reload->message, strlen(reload->message));
	while (reload->asking) {
		struct asking *a = reload->asking;

		reload->asking = a->next;
		if (a->claim.peer)
			peer_reply(a->claim.peer, &a->header, &reply, NULL, 0);
		peer_claim_end(&a->claim);
		free(a);
	}
}

/* ── one reading after the other ────────────────────────────────────────────────────────── */

static void on_done(void *userdata, const struct configured_result *result)
{
	struct reload *reload = userdata;

	dropins_free(reload->dropins);
	reload->dropins = NULL;
	reload->unfinished = result->unfinished;
	if (reload->read_again || reload->failed || result->created || result->changed ||
	    result->deleted)
		log_info("Read the configuration: events created %u, changed %u, deleted %u; "
			 "failed %u.",
			 result->created, result->changed, result->deleted, reload->failed);
	tell(reload, result);
	reload->settled = !reload->again;
	if (reload->settled)
		reload->ended(reload->userdata);
}

static void begin(struct reload *reload)
{
	struct configured_result none = { 0 };
	char sentence[128];
	int r;

	reload->again = reload->unfinished = reload->settled = false;
	reload->read_again = true;
	reload->asking = TAKE_PTR(reload->waiting);
	reload->begun(reload->userdata);
	r = read_files(reload, true);
	if (r >= 0)
		return;
	snprintf(sentence, sizeof(sentence),
		 "The daemon cannot read its configuration again: %s; try again.", strerror(-r));
	complain(reload, sentence);
	on_done(reload, &none);
}

/* Does the steps that are due, until one has to wait. */
void reload_continue(struct reload *reload)
{
	bool back;

	if (reload->ending)
		return;
	configured_continue(&reload->configured);
	if (reload->configured.pass || !reload->lifecycle->synced)
		return;
	back = reload->unfinished && orders_is_up(reload->lifecycle->orders) &&
	       reload->lifecycle->generation != reload->generation;
	if (!reload->due && (reload->again || back))
		begin(reload);
	if (reload->due) {
		int r;

		reload->due = false;
		/* What fails before the enumeration is complete is tried again after it. */
		reload->generation =
			orders_is_up(reload->lifecycle->orders) ? reload->lifecycle->generation : 0;
		r = configured_begin(&reload->configured, reload->in_force, reload->dropins);
		if (r < 0) {
			struct configured_result none = { 0 };

			complain(reload,
				 "The daemon cannot find out which CPUs there are, and leaves all "
				 "events as they are.");
			on_done(reload, &none);
		}
	}
	/* Asked for before there was a pass, which had nothing to do. */
	if (reload->again && !reload->due && !reload->configured.pass)
		reload_continue(reload);
}

void reload_again(struct reload *reload)
{
	reload->again = true;
	reload_continue(reload);
}

/* ── what is to be there after a reboot ─────────────────────────────────────────────────── */

int reload_boot(void *userdata, const struct event *e, const struct pp_msg_create_request *request,
		char *sentence, size_t size)
{
	struct reload *reload = userdata;
	const struct config_namespace *ns = config_namespace(reload->in_force, e->ns->name);
	struct boot_file f = {
		.folder = reload->places.folders[reload->places.written],
		.request = request,
		.creator = e->truth.spec.creator,
		/* A namespace made on demand would be root's after the boot. */
		.ns = ns && !ns->written ? NULL : e->ns,
	};

	return boot_file_write(&f, sentence, size);
}

int reload_forget(void *userdata, const struct event *e, char *sentence, size_t size)
{
	struct reload *reload = userdata;

	return boot_file_remove(reload->places.folders[reload->places.written], e->truth.spec.ns,
				e->truth.spec.name, true, sentence, size);
}

void reload_ended(struct reload *reload, const struct event *e)
{
	char sentence[PP_SENTENCE_SIZE];

	if (boot_file_remove(reload->places.folders[reload->places.written], e->truth.spec.ns,
			     e->truth.spec.name, false, sentence, sizeof(sentence)) < 0)
		log_event(LOG_WARNING, e->truth.spec.ns, e->truth.spec.name, "%s", sentence);
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

int reload_init(struct reload *reload, const struct reload_options *options)
{
	int r = dropin_places(options->instance, options->named, &reload->places);

	if (r < 0)
		return r;
	reload->required = options->named != NULL;
	reload->configured.lifecycle = reload->lifecycle;
	reload->configured.complain = complain;
	reload->configured.done = on_done;
	reload->configured.userdata = reload;
	r = config_copy(options->config, &reload->base);
	return r < 0 ? r : read_files(reload, false);
}

void reload_end(struct reload *reload)
{
	reload->ending = true;
}

static void forget_asking(struct asking **list)
{
	while (*list) {
		struct asking *a = *list;

		*list = a->next;
		peer_claim_end(&a->claim);
		free(a);
	}
}

void reload_done(struct reload *reload)
{
	configured_stop(&reload->configured);
	forget_asking(&reload->asking);
	forget_asking(&reload->waiting);
	dropins_free(reload->dropins);
	config_free(reload->in_force);
	config_free(reload->base);
	*reload = (struct reload){ 0 };
}
