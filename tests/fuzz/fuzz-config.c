// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fuzzes configuration files. The first byte chooses: perfpersistd.conf, or two files of events.d,
 * one after the other. Accepted values are within their bounds; rejected ones cause a message.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/config/config.h"
#include "daemon/broker/config/dropin-file.h"
#include "daemon/text.h"
#include "proto/macro.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void require_text(const char *text, size_t size)
{
	require(memchr(text, '\0', size) != NULL);
}

static void check_namespaces(const struct config *c)
{
	for (size_t i = 0; i < c->n_namespaces; i++) {
		const struct config_namespace *ns = &c->namespaces[i];

		require_text(ns->name, sizeof(ns->name));
		require(pp_name_is_valid(ns->name) && ns->mode <= 0777);
		require(config_namespace(c, ns->name) == ns);
	}
}

static void fuzz_config(const char *text, size_t size, FILE *complaints)
{
	struct config *c = NULL;
	int r = config_parse("f", text, size, complaints, &c);

	require(r == 0 ? c != NULL : r == -EINVAL && !c);
	require((r == -EINVAL) == (ftell(complaints) > 0));
	if (r < 0)
		return;
	check_namespaces(c);
	require(c->max_events > 0 && c->max_memory > 0 && c->max_requests > 0);
	config_free(c);
}

static void check_event(const struct dropins *d, const struct dropin_event *e)
{
	static struct pp_msg_create_request q;

	require(pp_name_is_valid(e->ns) && pp_name_is_valid(e->name));
	require(dropins_event(d, e->ns, e->name) == e && e->line > 0);
	require(e->request || e->faulty);
	if (!e->request)
		return;
	dropin_request(e, &q);
	require(strcmp(q.ns, e->ns) == 0 && strcmp(q.name, e->name) == 0);
	require(q.count <= PP_SELECTIONS_MAX);
	require_text(q.cpus, sizeof(q.cpus));
	for (uint32_t i = 0; i < PP_SELECTIONS_MAX; i++) {
		require_text(q.selections[i].event, sizeof(q.selections[i].event));
		require_text(q.selections[i].filter, sizeof(q.selections[i].filter));
		require((q.selections[i].event[0] != '\0') == (i < q.count));
	}
}

static void fuzz_dropins(const char *text, size_t size, FILE *complaints)
{
	const char *half = memchr(text, '\0', size);
	size_t first = half ? (size_t)(half - text) : size;
	struct config config = { 0 };
	struct dropins d = { 0 };

	require(dropin_parse(&d, &config, "f", false, text, first, complaints) == 0);
	require(dropin_parse(&d, &config, "g", true, text + first, size - first, complaints) == 0);
	require((d.faults > 0) == (ftell(complaints) > 0));
	require(!d.incomplete || d.faults > 0);
	check_namespaces(&config);
	for (size_t i = 0; i < d.n; i++)
		check_event(&d, d.events[i]);
	dropins_done(&d);
	free(config.namespaces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *told = NULL, *text = NULL;
	size_t n;
	FILE *complaints;

	if (size == 0)
		return 0;
	complaints = open_memstream(&told, &n);
	text = malloc(size);
	require(complaints && text);
	/* Exactly as large as the input, so that ASan sees an overrun. */
	memcpy(text, data + 1, size - 1);
	if (data[0] % 2)
		fuzz_config(text, size - 1, complaints);
	else
		fuzz_dropins(text, size - 1, complaints);
	fclose(complaints);
	return 0;
}
