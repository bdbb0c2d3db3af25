// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes a save: selects the events, saves one after the other, and reports. An event that cannot be
 * read is left out and reported; a write error ends the save. */
#include <stdarg.h>
#include <string.h>

#include "client/daemon/connection.h"
#include "client/local/saved-make.h"
#include "client/local/saved-remove.h"
#include "client/local/saved-sideband.h"
#include "client/public.h"

#define KEEP_DEFAULT 3

struct job {
	struct perfpersist *p;
	struct client_infos infos;
	struct saving saving;
	struct perfpersist_save_result result;
};

static void job_done(struct job *j)
{
	client_infos_done(&j->infos);
	saving_done(&j->saving);
}

/* ── Which events to save ───────────────────────────────────────────────────────────────── */

static bool has(const struct client_infos *infos, const struct perfpersist_info *info)
{
	for (size_t i = 0; i < infos->n; i++)
		if (!strcmp(infos->v[i].name, info->name) && !strcmp(infos->v[i].ns, info->ns))
			return true;
	return false;
}

static int choose(struct job *j, const struct perfpersist_info *infos, size_t n)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < n; i++)
		if (!has(&j->infos, &infos[i]))
			r = client_infos_add(&j->infos, &infos[i]);
	return r;
}

static int choose_all(struct job *j, const char *ns)
{
	_cleanup_free_ struct perfpersist_info *infos = NULL;
	size_t n = 0;
	int r = perfpersist_list(j->p, ns, &infos, &n);

	if (r < 0)
		return client_fail(r, "%s", perfpersist_error(j->p));
	return choose(j, infos, n);
}

static int choose_one(struct job *j, const struct perfpersist_name *name)
{
	struct perfpersist_info info = { .sz = sizeof(info) };
	int r = perfpersist_show(j->p, name->ns, name->name, &info);

	if (r < 0)
		return client_fail(r, "%s", perfpersist_error(j->p));
	return choose(j, &info, 1);
}

static int choose_events(struct job *j, const struct perfpersist_save_options *o)
{
	int r = o->n_names ? 0 : choose_all(j, NULL);

	for (size_t i = 0; r >= 0 && i < o->n_names; i++)
		r = o->names[i].name ? choose_one(j, &o->names[i]) : choose_all(j, o->names[i].ns);
	return r;
}

/* ── Saving ─────────────────────────────────────────────────────────────────────────────── */

static _printf_(2, 3) void complain(struct job *j, const char *fmt, ...)
{
	va_list ap;

	if (j->result.failed++ > 0)
		return;
	va_start(ap, fmt);
	vsnprintf(j->result.message, sizeof(j->result.message), fmt, ap);
	va_end(ap);
}

static int cannot_write(struct job *j, const struct perfpersist_info *info, const char *file,
			int error)
{
	char what[256];

	snprintf(what, sizeof(what), "writing %s/%s%s%s", info->ns, info->name, *file ? "/" : "",
		 file);
	return saving_failed(&j->saving, what, error);
}

static int save_rings(struct job *j, const struct perfpersist_info *info,
		      struct perfpersist_event *e)
{
	struct saved_event_counts counts = { .records = 0 };
	_cleanup_close_ int dir = -EBADF;
	char file[32] = "";
	int r = saving_event_dir(&j->saving, info, &dir);

	if (r >= 0)
		r = saved_write_event(dir, e, info, &counts, file);
	if (r < 0)
		return cannot_write(j, info, file, r);
	if (counts.damaged)
		complain(j,
			 "%zu of the buffers of %s/%s are damaged: what could be read of them is "
			 "saved",
			 counts.damaged, info->ns, info->name);
	j->result.events++;
	j->result.records += counts.records;
	j->result.bytes += counts.bytes;
	return 0;
}

static int save_event(struct job *j, const struct perfpersist_info *info)
{
	struct perfpersist_info opened = { .sz = sizeof(opened) };
	struct perfpersist_event *e = NULL;
	int r = perfpersist_open(j->p, info->ns, info->name, &e);

	if (r == -ENOENT) /* deleted meanwhile */
		return 0;
	if (r < 0) {
		complain(j, "%s/%s is not saved: %s", info->ns, info->name,
			 perfpersist_error(j->p));
		return 0;
	}
	r = perfpersist_event_info(e, &opened); /* it may have changed since the list */
	r = r < 0 ? cannot_write(j, info, "info", r) : save_rings(j, &opened, e);
	perfpersist_event_free(e);
	return r;
}

/* Saves the sideband, if any is kept: it names the processes in the records. */
static int save_sideband(struct job *j)
{
	struct perfpersist_sideband_info info = { .sz = sizeof(info) };
	_cleanup_close_ int fd = -EBADF;
	int r = perfpersist_sideband(j->p, 0, 0, &info, &fd);

	if (r == -EOPNOTSUPP || (r >= 0 && fd < 0))
		return 0;
	if (r < 0) {
		complain(j, "the names of processes are not saved: %s", perfpersist_error(j->p));
		return 0;
	}
	r = saved_write_sideband(j->saving.fd, fd, info.size);
	return r < 0 ? saving_failed(&j->saving, "writing +sideband", r) : 0;
}

static int begin(struct job *j, const struct perfpersist_save_options *o)
{
	return o->path ? saving_begin_at(o->path, &j->saving)
		       : saving_begin(j->p->instance, &j->saving);
}

static int save_all(struct job *j, const struct perfpersist_save_options *o)
{
	int r = begin(j, o);

	for (size_t i = 0; r >= 0 && i < j->infos.n; i++)
		r = save_event(j, &j->infos.v[i]);
	if (r < 0)
		return r;
	if (j->result.events == 0)
		return j->result.failed
			       ? client_fail(-EIO, "nothing could be saved: %s", j->result.message)
			       : 0;
	r = save_sideband(j);
	if (r >= 0)
		r = saving_finish(&j->saving);
	if (r < 0)
		return r;
	memcpy(j->result.path, j->saving.path, sizeof(j->result.path));
	if (!o->path && o->keep != PERFPERSIST_KEEP_ALL)
		j->result.removed =
			saved_prune(j->saving.parent_fd, o->keep ?: KEEP_DEFAULT, j->saving.name);
	return 0;
}

static int check(const struct perfpersist *p, const struct perfpersist_save_options *o,
		 const struct perfpersist_save_result *ret)
{
	if (!SZ_IS_VALID(o))
		return client_fail(-EINVAL,
				   "cannot save with a struct perfpersist_save_options of %zu "
				   "bytes: set its sz to its size",
				   o->sz);
	if (ret && !SZ_IS_VALID(ret))
		return client_fail(-EINVAL,
				   "cannot fill in a struct perfpersist_save_result of %zu bytes: "
				   "set its sz to its size",
				   ret->sz);
	if (p->saved)
		return client_fail(-EOPNOTSUPP, "cannot save %s: it is a save already; copy it",
				   p->saved);
	return 0;
}

_public_ int perfpersist_save(struct perfpersist *p, const struct perfpersist_save_options *opts,
			      struct perfpersist_save_result *ret)
{
	static const struct perfpersist_save_options defaults = { .sz = sizeof(defaults) };
	_cleanup_(job_done) struct job j = {
		.p = p,
		.saving = { .parent_fd = -EBADF, .fd = -EBADF },
	};
	int r;

	_Static_assert(sizeof(j.result.path) == sizeof(j.saving.path), "paths of one size");
	if (!opts)
		opts = &defaults;
	r = check(p, opts, ret);
	if (r >= 0)
		r = choose_events(&j, opts);
	if (r >= 0 && j.infos.n)
		r = save_all(&j, opts);
	if (r < 0)
		return connection_fail(p, r);
	if (ret) {
		j.result.sz = ret->sz;
		*ret = j.result;
	}
	return 0;
}
