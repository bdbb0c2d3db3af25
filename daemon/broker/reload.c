// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads, compares and puts in force; who asked for it is told. */
#include "daemon/broker/reload.h"

#include <assert.h>
#include <string.h>

#include "daemon/broker/config/boot-file.h"
#include "daemon/broker/config/limits.h"
#include "daemon/log.h"
#include "daemon/text.h"
#include "proto/macro.h"

/* A client that waits for the end of a reading. */
struct asking {
	struct asking *next;
	struct peer_claim claim;
	struct pp_header header;
};

/* ── complaints ─────────────────────────────────────────────────────────────────────────── */

static void complain(void *userdata, const char *sentence)
{
	struct reload *r = userdata;

	if (r->ending)
		return;
	log_warning("%s", sentence);
	if (r->failed++ == 0)
		snprintf(r->message, sizeof(r->message), "%s", sentence);
}

static void complain_lines(struct reload *r, char *lines)
{
	char *line;

	while ((line = strsep(&lines, "\n")))
		if (*line)
			complain(r, line);
}

/* ── reading ────────────────────────────────────────────────────────────────────────────── */

/* What the running process is cannot be changed, and what goes by it must not be, either. */
static void keep_identity(struct config *new, const struct config *old, FILE *complaints)
{
	if (new->uid != old->uid || new->gid != old->gid || new->ns_group != old->ns_group)
		fprintf(complaints,
			"%s: another User= or Group= counts only when perfpersistd is started "
			"anew; "
			"restart it, which costs no event a record.\n",
			new->path);
	new->uid = old->uid;
	new->gid = old->gid;
	new->ns_group = old->ns_group;
	config_resolve_namespaces(new);
}

/* One with faults leaves in force what is. 0; -ENOMEM. */
static int read_base(struct reload *r, FILE *complaints)
{
	_cleanup_(cleanup_config) struct config *new = NULL;
	int err = config_load(r->base->path, r->required, complaints, &new);

	if (err == -ENOMEM)
		return err;
	if (err < 0 || config_resolve(new, complaints) < 0)
		return 0;
	keep_identity(new, r->base, complaints);
	config_free(r->base);
	r->base = TAKE_PTR(new);
	return 0;
}

/* What events.d says goes over what perfpersistd.conf says. */
static int read_dropins(struct reload *r, FILE *complaints)
{
	_cleanup_(cleanup_config) struct config *config = NULL;
	_cleanup_(cleanup_dropins) struct dropins *d = NULL;
	int err = config_copy(r->base, &config);

	if (err >= 0)
		err = dropins_load(&r->places, config, complaints, &d);
	if (err < 0)
		return err;
	config_resolve_namespaces(config);
	r->peers->max_requests = config->max_requests;
	r->service->config = config;
	config_free(r->in_force);
	r->in_force = TAKE_PTR(config);
	dropins_free(r->dropins);
	r->dropins = TAKE_PTR(d);
	err = limits_apply(r->in_force, r->quota);
	if (err < 0)
		return err;
	return configured_namespaces(r->lifecycle, r->in_force, r->dropins->incomplete);
}

/* base: perfpersistd.conf, too. 0; -ENOMEM (told, where it is not the first). */
static int read_files(struct reload *r, bool base)
{
	_cleanup_free_ char *lines = NULL;
	size_t size;
	FILE *complaints = open_memstream(&lines, &size);
	int err;

	if (!complaints)
		return -ENOMEM;
	r->failed = 0;
	r->message[0] = '\0';
	err = base ? read_base(r, complaints) : 0;
	if (err >= 0)
		err = read_dropins(r, complaints);
	if (fclose(complaints) != 0)
		return -ENOMEM;
	complain_lines(r, lines);
	r->due = err >= 0;
	return err;
}

/* ── who asked ──────────────────────────────────────────────────────────────────────────── */

void reload_request(void *userdata, struct peer *peer, const struct pp_header *header)
{
	struct reload *r = userdata;
	struct asking *a;

	if (!r->lifecycle->synced) {
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
	a->next = r->waiting;
	r->waiting = a;
	peer_claim_begin(peer, &a->claim);
	reload_again(r);
}

static void tell(struct reload *r, const struct configured_result *result)
{
	struct pp_msg_reload_reply reply = {
		.created = result->created,
		.changed = result->changed,
		.deleted = result->deleted,
		.failed = r->failed,
	};

	memcpy(reply.message, r->message, strlen(r->message));
	while (r->asking) {
		struct asking *a = r->asking;

		r->asking = a->next;
		if (a->claim.peer)
			peer_reply(a->claim.peer, &a->header, &reply, NULL, 0);
		peer_claim_end(&a->claim);
		free(a);
	}
}

/* ── one reading after the other ────────────────────────────────────────────────────────── */

static void on_done(void *userdata, const struct configured_result *result)
{
	struct reload *r = userdata;

	dropins_free(r->dropins);
	r->dropins = NULL;
	r->unfinished = result->unfinished;
	if (r->read_again || r->failed || result->created || result->changed || result->deleted)
		log_info("Read the configuration: events created %u, changed %u, deleted %u; "
			 "failed %u.",
			 result->created, result->changed, result->deleted, r->failed);
	tell(r, result);
	r->settled = !r->again;
	if (r->settled)
		r->ended(r->userdata);
}

static void begin(struct reload *r)
{
	struct configured_result none = { 0 };
	char sentence[128];
	int err;

	r->again = r->unfinished = r->settled = false;
	r->read_again = true;
	r->asking = TAKE_PTR(r->waiting);
	r->begun(r->userdata);
	err = read_files(r, true);
	if (err >= 0)
		return;
	snprintf(sentence, sizeof(sentence),
		 "The daemon cannot read its configuration again: %s; try again.", strerror(-err));
	complain(r, sentence);
	on_done(r, &none);
}

/* What is due, until something has to be waited for. */
void reload_continue(struct reload *r)
{
	bool back;

	if (r->ending)
		return;
	configured_continue(&r->configured);
	if (r->configured.pass || !r->lifecycle->synced)
		return;
	back = r->unfinished && r->lifecycle->generation != r->generation;
	if (!r->due && (r->again || back))
		begin(r);
	if (r->due) {
		int err;

		r->due = false;
		r->generation = r->lifecycle->generation;
		err = configured_begin(&r->configured, r->in_force, r->dropins);
		if (err < 0) {
			struct configured_result none = { 0 };

			complain(r,
				 "The daemon cannot find out which CPUs there are, and leaves all "
				 "events as they are.");
			on_done(r, &none);
		}
	}
}

void reload_again(struct reload *r)
{
	r->again = true;
	reload_continue(r);
}

/* ── what is to be there after a reboot ─────────────────────────────────────────────────── */

int reload_boot(void *userdata, const struct event *e, const struct pp_msg_create_request *request,
		char *sentence, size_t size)
{
	struct reload *r = userdata;
	const struct config_namespace *ns = config_namespace(r->in_force, e->ns->name);
	struct boot_file f = {
		.folder = r->places.folders[r->places.written],
		.request = request,
		.creator = e->truth.spec.creator,
		/* One that is made on demand would be root's after the boot. */
		.ns = ns && !ns->written ? NULL : e->ns,
	};

	return boot_file_write(&f, sentence, size);
}

int reload_forget(void *userdata, const struct event *e, char *sentence, size_t size)
{
	struct reload *r = userdata;

	return boot_file_remove(r->places.folders[r->places.written], e->truth.spec.ns,
				e->truth.spec.name, sentence, size);
}

/* ── life ───────────────────────────────────────────────────────────────────────────────── */

int reload_init(struct reload *r, const struct reload_options *options)
{
	int err = dropin_places(options->instance, options->named, &r->places);

	if (err < 0)
		return err;
	r->required = options->named != NULL;
	r->configured.lifecycle = r->lifecycle;
	r->configured.complain = complain;
	r->configured.done = on_done;
	r->configured.userdata = r;
	err = config_copy(options->config, &r->base);
	return err < 0 ? err : read_files(r, false);
}

void reload_end(struct reload *r)
{
	r->ending = true;
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

void reload_done(struct reload *r)
{
	configured_stop(&r->configured);
	forget_asking(&r->asking);
	forget_asking(&r->waiting);
	dropins_free(r->dropins);
	config_free(r->in_force);
	config_free(r->base);
	*r = (struct reload){ 0 };
}
