// SPDX-License-Identifier: LGPL-2.1-or-later
/* Parses the text of a value. Must not know keys. */
#include "daemon/broker/config/config-value.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>

#include "daemon/text.h"
#include "proto/macro.h"

int config_parse_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	size_t n = strlen(text);
	const char *unit = n > 0 ? strchr(units, text[n - 1]) : NULL;
	char number[32];
	uint64_t value;
	unsigned shift;
	int r;

	if (n >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, n + 1);
	shift = unit ? 10 * (unit - units + 1) : 0;
	if (unit)
		number[n - 1] = '\0';
	r = pp_parse_u64(number, &value);
	if (r < 0)
		return r;
	if (value > UINT64_MAX >> shift)
		return -ERANGE;
	*ret = value << shift;
	return 0;
}

#define MIB (1ULL << 20)

int config_parse_share(const char *text, uint64_t whole, uint64_t *ret)
{
	size_t n = strlen(text);
	char number[8];
	uint64_t percent;
	int r;

	if (n == 0 || text[n - 1] != '%')
		return config_parse_size(text, ret);
	if (n > sizeof(number))
		return -EINVAL;
	memcpy(number, text, n - 1);
	number[n - 1] = '\0';
	r = pp_parse_u64(number, &percent);
	if (r < 0)
		return r;
	if (percent > 100)
		return -ERANGE;
	*ret = whole / 100 * percent & ~(MIB - 1);
	return 0;
}

uint64_t config_machine_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * size : 0;
}

int config_parse_duration(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t nsec;
	} units[] = {
		{ "", 1000000000 },	{ "us", 1000 },		 { "ms", 1000000 },
		{ "s", 1000000000 },	{ "m", 60000000000 },	 { "min", 60000000000 },
		{ "h", 3600000000000 }, { "d", 86400000000000 },
	};
	size_t n = strspn(text, "0123456789");
	char number[24];
	uint64_t value;
	int r;

	if (n == 0 || n >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, n);
	number[n] = '\0';
	r = pp_parse_u64(number, &value);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(units); i++) {
		if (strcmp(text + n, units[i].name) != 0)
			continue;
		if (value > INT64_MAX / units[i].nsec)
			return -ERANGE;
		*ret = value * units[i].nsec;
		return 0;
	}
	return r < 0 ? r : -EINVAL;
}

int config_parse_mode(const char *text, uint32_t *ret)
{
	uint32_t mode = 0;
	size_t n = strlen(text);

	if (n < 3 || n > 4)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '7')
			return -EINVAL;
		mode = mode * 8 + (text[i] - '0');
	}
	if (mode > 0777)
		return -EINVAL;
	*ret = mode;
	return 0;
}

int config_find_user(const char *text, uid_t *ret, gid_t *ret_gid)
{
	const struct passwd *pw;
	uint32_t uid;

	if (pp_parse_u32(text, &uid) == 0) {
		if (uid == (uid_t)-1)
			return -EINVAL;
		pw = ret_gid ? getpwuid(uid) : NULL; /* may ask other machines */
		*ret = uid;
		if (pw)
			*ret_gid = pw->pw_gid;
		return 0;
	}
	pw = getpwnam(text);
	if (!pw)
		return -ENOENT;
	*ret = pw->pw_uid;
	if (ret_gid)
		*ret_gid = pw->pw_gid;
	return 0;
}

int config_find_group(const char *text, gid_t *ret)
{
	const struct group *gr;
	uint32_t gid;

	if (pp_parse_u32(text, &gid) == 0) {
		if (gid == (gid_t)-1)
			return -EINVAL;
		*ret = gid;
		return 0;
	}
	gr = getgrnam(text);
	if (!gr)
		return -ENOENT;
	*ret = gr->gr_gid;
	return 0;
}
