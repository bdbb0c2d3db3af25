// SPDX-License-Identifier: LGPL-2.1-or-later
/* The names of saves and the path of their directory. */
#include "client/local/saved-place.h"

#include <fcntl.h>
#include <string.h>

#include "client/public.h"
#include "proto/places.h"

#define STATE_ROOT "/var/lib"

static int state_place(const char *instance, const char *leaf, char *buf, size_t size)
{
	char run[256];
	int n, r = pp_place(instance, "", run, sizeof(run));

	if (r < 0)
		return client_fail(r,
				   "\"%s\" cannot be the name of an instance: names are "
				   "[a-zA-Z_][a-zA-Z0-9_-]*, at most 63 bytes",
				   instance);
	/* The instance's name follows the last slash of the run directory. */
	n = snprintf(buf, size, STATE_ROOT "%s/%s", strrchr(run, '/'), leaf);
	if (n < 0 || (size_t)n >= size)
		return client_fail(-ENAMETOOLONG, "the path of the saves of \"%s\" is too long",
				   instance);
	return 0;
}

int saved_place(const char *instance, char *buf, size_t size)
{
	return state_place(instance, "saved", buf, size);
}

int checkpoint_place(const char *instance, char *buf, size_t size)
{
	return state_place(instance, "checkpoints", buf, size);
}

void saved_name(time_t t, char buf[static SAVED_NAME_SIZE])
{
	struct tm tm;

	if (!gmtime_r(&t, &tm) || !strftime(buf, SAVED_NAME_SIZE, "%Y-%m-%dT%H-%M-%SZ", &tm) ||
	    !saved_name_is_valid(buf)) /* after the year 9999 */
		snprintf(buf, SAVED_NAME_SIZE, "9999-12-31T23-59-59Z");
}

bool saved_name_is_valid(const char *name)
{
	static const char form[] = "dddd-dd-ddTdd-dd-ddZ";
	size_t i;

	for (i = 0; form[i]; i++) {
		bool is_digit = name[i] >= '0' && name[i] <= '9';

		if (form[i] == 'd' ? !is_digit : name[i] != form[i])
			return false;
	}
	return !name[i];
}

time_t saved_name_time(const char *name)
{
	struct tm tm = { 0 };

	if (!strptime(name, "%Y-%m-%dT%H-%M-%SZ", &tm))
		return 0;
	return timegm(&tm);
}

static int compare_names(const void *a, const void *b)
{
	const struct saved_name *x = a, *y = b;

	return strcmp(x->s, y->s);
}

int saved_names(int dir_fd, struct saved_name **ret, size_t *ret_n)
{
	_cleanup_close_ int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ struct saved_name *names = NULL;
	_cleanup_closedir_ DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	size_t n = 0;
	struct dirent *entry;

	if (!dir)
		return -errno;
	TAKE_FD(fd);
	while ((entry = readdir(dir))) {
		if (!saved_name_is_valid(entry->d_name))
			continue;
		if (!GROW(names, n))
			return -ENOMEM;
		snprintf(names[n++].s, SAVED_NAME_SIZE, "%.*s", SAVED_NAME_SIZE - 1, entry->d_name);
	}
	if (n)
		qsort(names, n, sizeof(*names), compare_names);
	*ret = TAKE_PTR(names);
	*ret_n = n;
	return 0;
}
