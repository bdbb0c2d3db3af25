// SPDX-License-Identifier: LGPL-2.1-or-later
#include "client/perfctl/machine.h"

#include <glob.h>
#include <limits.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "client/perfctl/events/presets.h"
#include "client/perfctl/perfctl.h"

/* Files that are not there are left out. */
static void copy_text(const struct outdir *o, const char *path, const char *into)
{
	_cleanup_(cleanup_fclose) FILE *from = fopen(path, "re");
	_cleanup_(cleanup_fclose) FILE *to = from ? outdir_append_stream(o, into) : NULL;
	char line[1024];

	if (!to)
		return;
	fprintf(to, "\n── %s\n\n", path);
	while (fgets(line, sizeof(line), from))
		fputs(line, to);
}

/* What the machine was like. */
static void tell_machine(const struct outdir *o)
{
	static const char *const files[] = { "/etc/os-release",	     "/proc/uptime",
					     "/proc/loadavg",	     "/proc/meminfo",
					     "/proc/pressure/cpu",   "/proc/pressure/io",
					     "/proc/pressure/memory" };
	_cleanup_(cleanup_fclose) FILE *f = outdir_append_stream(o, "about.txt");
	time_t now = time(NULL);
	struct utsname u;
	struct tm tm;
	char when[64];

	if (f && !uname(&u) && localtime_r(&now, &tm) &&
	    strftime(when, sizeof(when), "%F %T %z", &tm))
		fprintf(f, "%s, %s %s %s %s, %ld CPUs; taken at %s\n", u.nodename, u.sysname,
			u.release, u.version, u.machine, sysconf(_SC_NPROCESSORS_CONF), when);
	if (f)
		fflush(f);
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		copy_text(o, files[i], "about.txt");
}

/* What the daemon reads of it, as far as the caller may read that, and no more: secrets of on-snapshot may be beside
 * these. */
static void tell_configuration(const struct outdir *o, const char *instance)
{
	char pattern[PATH_MAX], *end;
	glob_t files;

	/* Room for both. */
	if (presets_links_place(instance, pattern, sizeof(pattern) - 32) < 0)
		return;
	end = strrchr(pattern, '/');
	strcpy(end, "/perfpersistd.conf");
	copy_text(o, pattern, "config.txt");
	strcpy(end, "/events.d/*.conf");
	if (glob(pattern, 0, NULL, &files) != 0)
		return;
	for (size_t i = 0; i < files.gl_pathc; i++)
		copy_text(o, files.gl_pathv[i], "config.txt");
	globfree(&files);
}

void machine_tell(const struct outdir *o, const char *instance)
{
	tell_machine(o);
	tell_configuration(o, instance);
}
