// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfpersistd.conf: defaults, every key, and a message with file and line for every fault. */
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/config/config-value.h"
#include "daemon/broker/config/config.h"
#include "daemon/broker/config/keys.h"
#include "daemon/broker/config/limits.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

static char path[] = "/tmp/perfpersist-test-config-XXXXXX";
static char *told;

/* Loads this text; `told` has the complaints. */
static int load(const char *text, struct config **ret)
{
	size_t size;
	FILE *f, *complaints;
	int fd, r;

	snprintf(path, sizeof(path), "/tmp/perfpersist-test-config-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	f = fdopen(fd, "w");
	fputs(text, f);
	fclose(f);
	free(told);
	complaints = open_memstream(&told, &size);
	r = config_load(path, true, complaints, ret);
	fclose(complaints);
	unlink(path);
	return r;
}

static struct config *loaded(const char *text)
{
	struct config *c = NULL;

	ck_assert_msg(load(text, &c) == 0, "%s", told);
	ck_assert_str_eq(told, "");
	return c;
}

/* The parser refuses the text, and its message about that line contains `say`. */
static void refused(const char *text, unsigned line, const char *say)
{
	char prefix[128], *p;
	struct config *c = NULL;

	ck_assert_int_eq(load(text, &c), -EINVAL);
	ck_assert_ptr_null(c);
	snprintf(prefix, sizeof(prefix), "%s:%u: ", path, line);
	p = strstr(told, prefix);
	ck_assert_msg(p && strstr(p, say), "'%s' not said of line %u, but:\n%s", say, line, told);
}

START_TEST(defaults)
{
	struct config *c = loaded("# nothing\n\n; at all\n");

	ck_assert_str_eq(c->user, "perfpersist");
	ck_assert_str_eq(c->group, "perfpersist");
	ck_assert_uint_eq(c->max_connections, 1024);
	ck_assert_uint_eq(c->max_connections_per_user, 256);
	ck_assert_uint_eq(c->max_requests, 16);
	ck_assert_uint_eq(c->max_requests_per_user, 256);
	ck_assert_uint_eq(c->max_events, 4096);
	ck_assert_uint_eq(c->max_events_per_namespace, 4096);
	ck_assert_uint_eq(c->max_events_per_user, 1024);
	ck_assert_uint_eq(c->max_programs, 65536);
	ck_assert_uint_eq(c->max_programs_per_user, 1024);
	ck_assert_uint_eq(c->max_on_tracepoint, 48);
	ck_assert_uint_eq(c->max_on_tracepoint_per_user, 8);
	ck_assert_uint_eq(c->max_sample_rate_per_user, 5000);
	ck_assert_uint_eq(c->max_buffer, 256 << 20);
	ck_assert_uint_ge(c->max_memory, 64 << 20);
	ck_assert_uint_ge(c->max_memory + (1 << 20), config_machine_memory() / 10);
	ck_assert_uint_eq(c->max_memory % (1 << 20), 0);
	ck_assert_uint_eq(c->max_memory_per_namespace, c->max_memory);
	ck_assert_uint_eq(c->max_memory_per_user, c->max_memory / 4);
	ck_assert_uint_eq(c->max_copies, c->max_memory / 4);
	ck_assert(!c->share);
	ck_assert_int_eq(c->makers, POLICY_ROOT);
	ck_assert_int_eq(c->probers, POLICY_ROOT);
	ck_assert_int_eq(c->programmers, POLICY_ROOT);
	ck_assert_int_eq(c->stack_users, POLICY_ROOT);
	ck_assert_int_eq(c->tracers, POLICY_ROOT);
	ck_assert_uint_eq(c->n_namespaces, 0);
	config_free(c);
}
END_TEST

START_TEST(every_key)
{
	struct config *c =
		loaded("[daemon]\nUser=61999\nGroup = 61998\nMaxConnections=5\n"
		       "MaxConnectionsPerUser=4\nMaxRequestsPerConnection=3\n"
		       "MaxRequestsPerUser=7\n"
		       "MaxEvents=9\nMaxEventsPerNamespace=8\nMaxEventsPerUser=6\n"
		       "MaxMemory=100M\nMaxMemoryPerNamespace=90M\nMaxMemoryPerUser=80M\n"
		       "MaxCopies=70M\nShare=yes\nSideband=no\nMaxSideband=2M\n"
		       "MaxBuffer=1M ; as an example\nCreateNamespaces=group\n"
		       "Probes=all\nPrograms=group\nUserStacks=all\nAuxTraces=group\n"
		       "[namespace one]\nOwner=1\nGroup=2\nMode=0664\nLive=nobody\n"
		       "MaxMemory=60M\nMaxEvents=5\n"
		       "[namespace two]\nLive=readers\n[namespace three]\nLive=owner\n"
		       "[namespace four]\nLive=group\n[namespace five]\n");

	ck_assert_int_eq(config_resolve(c, stderr), 0);
	config_resolve_namespaces(c);
	ck_assert_uint_eq(c->uid, 61999);
	ck_assert_uint_eq(c->gid, 61998);
	ck_assert_uint_eq(c->ns_group, 61998);
	ck_assert_uint_eq(c->max_connections, 5);
	ck_assert_uint_eq(c->max_connections_per_user, 4);
	ck_assert_uint_eq(c->max_requests, 3);
	ck_assert_uint_eq(c->max_requests_per_user, 7);
	ck_assert_uint_eq(c->max_events, 9);
	ck_assert_uint_eq(c->max_events_per_namespace, 8);
	ck_assert_uint_eq(c->max_events_per_user, 6);
	ck_assert_uint_eq(c->max_memory, 100 << 20);
	ck_assert_uint_eq(c->max_memory_per_namespace, 90 << 20);
	ck_assert_uint_eq(c->max_memory_per_user, 80 << 20);
	ck_assert_uint_eq(c->max_copies, 70 << 20);
	ck_assert(c->share);
	ck_assert(!c->sideband);
	ck_assert_uint_eq(c->max_sideband, 2 << 20);
	ck_assert_uint_eq(c->max_buffer, 1 << 20);
	ck_assert_int_eq(c->makers, POLICY_GROUP);
	ck_assert_int_eq(c->probers, POLICY_ALL);
	ck_assert_int_eq(c->programmers, POLICY_GROUP);
	ck_assert_int_eq(c->stack_users, POLICY_ALL);
	ck_assert_int_eq(c->tracers, POLICY_GROUP);
	ck_assert_uint_eq(c->n_namespaces, 5);
	ck_assert_str_eq(c->namespaces[0].name, "one");
	ck_assert_uint_eq(c->namespaces[0].owner, 1);
	ck_assert_uint_eq(c->namespaces[0].group, 2);
	ck_assert_uint_eq(c->namespaces[0].mode, 0664);
	ck_assert_int_eq(c->namespaces[0].live, NAMESPACE_LIVE_NOBODY);
	ck_assert_uint_eq(c->namespaces[0].max_memory, 60 << 20);
	ck_assert_uint_eq(c->namespaces[0].max_events, 5);
	ck_assert_int_eq(c->namespaces[1].live, NAMESPACE_LIVE_READERS);
	ck_assert_int_eq(c->namespaces[2].live, NAMESPACE_LIVE_OWNER);
	ck_assert_int_eq(c->namespaces[3].live, NAMESPACE_LIVE_GROUP);
	ck_assert_int_eq(c->namespaces[4].live, NAMESPACE_LIVE_GROUP);
	ck_assert_uint_eq(c->namespaces[4].max_memory, UINT64_MAX);
	ck_assert_uint_eq(c->namespaces[4].max_events, UINT64_MAX);
	/* A section without a key counts, and has the defaults. */
	ck_assert_str_eq(c->namespaces[1].name, "two");
	ck_assert_uint_eq(c->namespaces[1].owner, 0);
	ck_assert_uint_eq(c->namespaces[1].group, 61998);
	ck_assert_uint_eq(c->namespaces[1].mode, 0640);
	config_free(c);
}
END_TEST

START_TEST(parts_of_the_machine)
{
	struct config *c = loaded("[daemon]\nMaxMemory=50%\nMaxMemoryPerUser=1%\n");
	uint64_t whole = config_machine_memory();

	ck_assert_uint_eq(c->max_memory, whole / 100 * 50 >> 20 << 20);
	ck_assert_uint_eq(c->max_memory_per_namespace, c->max_memory);
	ck_assert_uint_eq(c->max_memory_per_user, whole / 100 >> 20 << 20);
	ck_assert_uint_eq(c->max_copies, c->max_memory / 4);
	config_free(c);
	/* Even a small machine has 64 MiB for it. */
	c = loaded("[daemon]\nMaxEvents=2\n");
	ck_assert_uint_eq(c->max_events_per_namespace, 2);
	ck_assert_uint_eq(c->max_events_per_user, 1);
	config_free(c);
}
END_TEST

START_TEST(limits_of_the_quota)
{
	struct config *c =
		loaded("[daemon]\nMaxConnections=10\nMaxConnectionsPerUser=9\n"
		       "MaxRequestsPerUser=8\nMaxEvents=70\nMaxEventsPerNamespace=60\n"
		       "MaxEventsPerUser=50\nMaxMemory=40M\nMaxMemoryPerNamespace=30M\n"
		       "MaxMemoryPerUser=20M\nMaxCopies=10M\nMaxPrograms=90\n"
		       "MaxProgramsPerUser=80\nMaxOnTracepoint=7\nMaxOnTracepointPerUser=2\n"
		       "MaxSampleRatePerUser=300\n"
		       "[namespace a]\nMaxEvents=3\n");
	struct quota q;

	quota_init(&q);
	ck_assert_int_eq(limits_apply(c, &q, false), 0);
	ck_assert_uint_eq(q.total.max[QUOTA_CONNECTIONS], 10);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_CONNECTIONS, 5), 9);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_CONNECTIONS, 0), QUOTA_UNLIMITED);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_REQUESTS, 5), 8);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_EVENTS, 5), 50);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_EVENTS, 0), 70);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_MEMORY, 5), 20 << 20);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_MEMORY, 0), 40 << 20);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_COPIES, 0), 10 << 20);
	ck_assert_uint_eq(q.total.max[QUOTA_COPIES], 40 << 20);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_PROGRAMS, 5), 80);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_PROGRAMS, 0), 90);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_SAMPLES, 5), 300);
	ck_assert_uint_eq(quota_max_of_user(&q, QUOTA_SAMPLES, 0), QUOTA_UNLIMITED);
	ck_assert_uint_eq(q.on_tracepoint, 7);
	ck_assert_uint_eq(q.on_tracepoint_of_user, 2);
	ck_assert_uint_eq(quota_max_of_namespace(&q, QUOTA_EVENTS, "a"), 3);
	ck_assert_uint_eq(quota_max_of_namespace(&q, QUOTA_EVENTS, "b"), 60);
	ck_assert_uint_eq(quota_max_of_namespace(&q, QUOTA_MEMORY, "a"), 30 << 20);
	/* Once more, without the namespace: it could not be read, and then it has gone. */
	c->n_namespaces = 0;
	ck_assert_int_eq(limits_apply(c, &q, true), 0);
	ck_assert_uint_eq(quota_max_of_namespace(&q, QUOTA_EVENTS, "a"), 3);
	ck_assert_int_eq(limits_apply(c, &q, false), 0);
	ck_assert_uint_eq(quota_max_of_namespace(&q, QUOTA_EVENTS, "a"), 60);
	ck_assert_uint_eq(q.namespaces.n, 0);
	quota_done(&q);
	config_free(c);
}
END_TEST

START_TEST(faults)
{
	refused("[daemon]\nMaxMemory=101%\n", 2, "MaxMemory=");
	refused("[daemon]\nMaxMemory=%\n", 2, "MaxMemory=");
	refused("[daemon]\nMaxMemory=0\n", 2, "MaxMemory=");
	refused("[daemon]\nMaxMemoryPerUser=much\n", 2, "MaxMemoryPerUser=");
	refused("[daemon]\nMaxCopies=-1\n", 2, "MaxCopies=");
	refused("[daemon]\nMaxRequestsPerUser=0\n", 2, "MaxRequestsPerUser=");
	refused("[daemon]\nMaxEventsPerUser=x\n", 2, "MaxEventsPerUser=");
	refused("[daemon]\nShare=maybe\n", 2, "Share=");
	refused("[namespace a]\nLive=everybody\n", 2, "Live=");
	refused("[namespace a]\nMaxMemory=all\n", 2, "MaxMemory=");
	refused("[namespace a]\nMaxEvents=0\n", 2, "MaxEvents=");
	refused("[daemon]\nColour=red\n", 2, "Colour=");
	refused("\n[other]\n", 2, "[other]");
	refused("MaxEvents=1\n", 1, "before any section");
	refused("[daemon]\nMaxEvents=0\n", 2, "MaxEvents=");
	refused("[daemon]\nMaxEvents=-1\n", 2, "MaxEvents=");
	refused("[daemon]\nMaxEvents=12x\n", 2, "MaxEvents=");
	refused("[daemon]\nMaxEvents=\n", 2, "MaxEvents=");
	refused("[daemon]\nMaxBuffer=2G\n", 2, "MaxBuffer=");
	refused("[daemon]\nMaxBuffer=1k\n", 2, "MaxBuffer=");
	refused("[daemon]\nMaxBuffer=99999999999999999999G\n", 2, "MaxBuffer=");
	refused("[daemon]\nSideband=maybe\n", 2, "Sideband= must be yes or no");
	refused("[daemon]\nMaxSideband=1023K\n", 2, "MaxSideband= must be a size from 1M to 16G");
	refused("[daemon]\nMaxSideband=17G\n", 2, "MaxSideband=");
	refused("[daemon]\nCreateNamespaces=some\n", 2, "root, group or all");
	refused("[daemon]\nProbes=yes\n", 2, "Probes= must be root, group or all");
	refused("[daemon]\nUser=0\n", 2, "root");
	refused("[daemon]\nUser=no-such-user-here\n", 2, "no such user");
	refused("[daemon]\nGroup=no-such-group-here\n", 2, "no such group");
	refused("[namespace a b]\n", 1, "'a b'");
	refused("[namespace by-id]\n", 1, "by-id");
	refused("[namespace a]\nMode=99\n", 2, "Mode=");
	refused("[namespace a]\nMode=1777\n", 2, "Mode=");
	refused("[namespace a]\nOwner=no-such-user-here\n", 2, "no such user");
	refused("[namespace a]\nUser=1\n", 2, "User=");
	refused("[namespace a]\n[namespace a]\n", 2, "twice");
	refused("[daemon\n", 1, "no end");
	refused("[daemon]\nMaxEvents\n", 2, "no setting");
}
END_TEST

START_TEST(all_faults_are_told)
{
	struct config *c = NULL;

	ck_assert_int_eq(load("[daemon]\nA=1\n[x]\nB=1\n[daemon]\nMaxEvents=no\nC\n", &c), -EINVAL);
	ck_assert_ptr_nonnull(strstr(told, ":2: "));
	ck_assert_ptr_nonnull(strstr(told, ":3: "));
	ck_assert_ptr_null(strstr(told, ":4: ")); /* of a section that does not exist */
	ck_assert_ptr_nonnull(strstr(told, ":6: "));
	ck_assert_ptr_nonnull(strstr(told, ":7: "));
}
END_TEST

START_TEST(missing_files)
{
	struct config *c = NULL;
	FILE *complaints = fopen("/dev/null", "we");

	ck_assert_int_eq(config_load("/nonexistent/x", true, complaints, &c), -ENOENT);
	ck_assert_int_eq(config_load("/nonexistent/x", false, complaints, &c), 0);
	config_free(c);
	fclose(complaints);
}
END_TEST

START_TEST(paths)
{
	char buf[128];

	ck_assert_int_eq(config_path(NULL, buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, PP_SYSCONFDIR "/perfpersist/perfpersistd.conf");
	ck_assert_int_eq(config_path("demo", buf, sizeof(buf)), 0);
	ck_assert_str_eq(buf, PP_SYSCONFDIR "/perfpersist-demo/perfpersistd.conf");
	ck_assert_int_eq(config_path("../x", buf, sizeof(buf)), -EINVAL);
}
END_TEST

#define INSTALLED "conf/perfpersistd.conf"

/* The installed file sets only the defaults. */
START_TEST(installed_file)
{
	_cleanup_fclose_ FILE *f = fopen(INSTALLED, "re");
	char text[16384];
	size_t n;

	ck_assert_ptr_nonnull(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	config_free(loaded(text));
}
END_TEST

/* The keys of [daemon] as they would be written, but for those that depend on the machine. */
static char *printed(const struct config *c)
{
	struct config copy = *c;
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	copy.max_memory = copy.max_memory_per_namespace = 0;
	copy.max_memory_per_user = copy.max_copies = 0;
	keys_print(f, &daemon_keys, &copy);
	fclose(f);
	return text;
}

/* What it shows in comments is what there is without them; users need not be there. */
START_TEST(shown_defaults)
{
	_cleanup_fclose_ FILE *f = fopen(INSTALLED, "re");
	_cleanup_free_ char *shown = NULL, *there = NULL;
	char line[512], text[16384] = "[daemon]\n";
	struct config *c;
	size_t n = 0;

	while (fgets(line, sizeof(line), f) && !strstr(line, "[namespace"))
		if (line[0] == '#' && line[1] >= 'A' && line[1] <= 'Z' &&
		    strncmp(line, "#User", 5) && strncmp(line, "#Group", 6)) {
			strcat(text, line + 1);
			n++;
		}
	ck_assert_uint_gt(n, 20);
	c = loaded(text);
	shown = printed(c);
	config_free(c);
	c = loaded("");
	there = printed(c);
	config_free(c);
	ck_assert_str_eq(shown, there);
}
END_TEST

static const char *no_tree(void)
{
	return access(INSTALLED, F_OK) == 0 ? NULL : "is not run from the tree's root";
}

int main(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("file");
	int r;

	tcase_add_test(t, defaults);
	tcase_add_test(t, every_key);
	tcase_add_test(t, parts_of_the_machine);
	tcase_add_test(t, limits_of_the_quota);
	tcase_add_test(t, faults);
	tcase_add_test(t, all_faults_are_told);
	tcase_add_test(t, missing_files);
	tcase_add_test(t, paths);
	add_test_unless(no_tree(), t, installed_file);
	add_test_unless(no_tree(), t, shown_defaults);
	suite_add_tcase(s, t);
	r = run_suite(s);
	free(told);
	return r;
}
