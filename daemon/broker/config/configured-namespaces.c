// SPDX-License-Identifier: LGPL-2.1-or-later
/* Gives namespaces the rights that are configured. See configured.h. */
#include "daemon/broker/config/configured.h"
#include "daemon/log.h"

static void give_rights(struct lifecycle *l, const char *name)
{
	/* Without an engine: its return makes the broker compare the rights. */
	if (l->synced && lifecycle_rights(l, registry_namespace(&l->registry, name)) < 0)
		log_debug("The files of the namespace %s get their rights when the engine is back.",
			  name);
}

int configured_namespaces(struct lifecycle *l, const struct config *config, bool keep)
{
	struct registry *registry = &l->registry;

	for (size_t i = 0; i < config->n_namespaces; i++) {
		const struct config_namespace *ns = &config->namespaces[i];
		int r;

		if (ns->faulty)
			continue;
		r = registry_configure(registry, ns->name, ns->owner, ns->group, ns->mode,
				       ns->live);
		if (r < 0)
			return r;
		registry_namespace(registry, ns->name)->fire = ns->fire;
		if (r > 0)
			give_rights(l, ns->name);
	}
	for (size_t i = registry->n_namespaces; i > 0 && !keep; i--) {
		struct namespace *ns = registry->namespaces[i - 1];

		if (ns->configured && !config_namespace(config, ns->name))
			registry_unconfigure(registry, ns);
	}
	return 0;
}
