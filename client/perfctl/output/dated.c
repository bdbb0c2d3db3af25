// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/output/dated.h"

#include <string.h>
#include <time.h>

#include "proto/macro.h"

/* No file has the name. perf's names have hundredths of a second; files of the same hundredth need more digits. */
static char *dated_name(const char *path)
{
	struct timespec now;
	char text[32];
	struct tm tm;

	for (;;) {
		char *name;

		clock_gettime(CLOCK_REALTIME, &now);
		localtime_r(&now.tv_sec, &tm);
		strftime(text, sizeof(text), "%Y%m%d%H%M%S", &tm);
		if (asprintf(&name, "%s.%s%02ld", path, text, now.tv_nsec / 10000000) < 0)
			return NULL;
		if (access(name, F_OK) < 0)
			return name;
		free(name);
		usleep(10000);
	}
}

int dated_commit(struct outfile *f, const char *path, char **ret)
{
	int r;

	do {
		_cleanup_free_ char *name = dated_name(path);
		char *copy = name ? strdup(name) : NULL;

		if (!copy)
			return -ENOMEM;
		outfile_rename(f, copy);
		r = outfile_commit_new(f);
		if (r == 0)
			*ret = TAKE_PTR(name);
	} while (r == -EEXIST); /* another perfctl has taken that name */
	return r;
}

int dated_add(struct dated *d, char *path, uint64_t max)
{
	char **more = reallocarray(d->paths, d->n + 1, sizeof(*more));

	if (!more) {
		free(path);
		return -ENOMEM;
	}
	d->paths = more;
	d->paths[d->n++] = path;
	while (max && d->n > max) {
		unlink(d->paths[0]);
		free(d->paths[0]);
		memmove(d->paths, d->paths + 1, --d->n * sizeof(*d->paths));
	}
	return 0;
}

void dated_done(struct dated *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->paths[i]);
	free(d->paths);
	*d = (struct dated){};
}
