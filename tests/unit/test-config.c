// SPDX-License-Identifier: LGPL-2.1-or-later
/* perfpersistd.conf: defaults, every key, and a sentence with file and line for every fault. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/broker/config.h"
#include "proto/macro.h"

static char path[] = "/tmp/perfpersist-test-config-XXXXXX";
static char *told;

/* Loads this text; what was complained about is in `told`. */
static int load(const char *text, struct config **ret)
{
	size_t size;
	FILE *f, *complaints;
	int fd, err;

	snprintf(path, sizeof(path), "/tmp/perfpersist-test-config-XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	f = fdopen(fd, "w");
	fputs(text, f);
	fclose(f);
	free(told);
	complaints = open_memstream(&told, &size);
	err = config_load(path, true, complaints, ret);
	fclose(complaints);
	unlink(path);
	return err;
}

static struct config *loaded(const char *text)
{
	struct config *c = NULL;

	ck_assert_msg(load(text, &c) == 0, "%s", told);
	ck_assert_str_eq(told, "");
	return c;
}

/* It is refused, and what is said of line `line` has this in it. */
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
	ck_assert_uint_eq(c->max_events, 4096);
	ck_assert_uint_eq(c->max_buffer, 256 << 20);
	ck_assert_int_eq(c->makers, POLICY_MAKERS_ROOT);
	ck_assert_uint_eq(c->n_namespaces, 0);
	config_free(c);
}
END_TEST

START_TEST(every_key)
{
	struct config *c =
		loaded("[daemon]\nUser=61999\nGroup = 61998\nMaxConnections=5\n"
		       "MaxConnectionsPerUser=4\nMaxRequestsPerConnection=3\n"
		       "MaxEvents=2\nMaxBuffer=1M ; as an example\nCreateNamespaces=group\n"
		       "[namespace one]\nOwner=1\nGroup=2\nMode=0664\n"
		       "[namespace two]\n");

	ck_assert_int_eq(config_resolve(c, stderr), 0);
	ck_assert_uint_eq(c->uid, 61999);
	ck_assert_uint_eq(c->gid, 61998);
	ck_assert_uint_eq(c->ns_group, 61998);
	ck_assert_uint_eq(c->max_connections, 5);
	ck_assert_uint_eq(c->max_connections_per_user, 4);
	ck_assert_uint_eq(c->max_requests, 3);
	ck_assert_uint_eq(c->max_events, 2);
	ck_assert_uint_eq(c->max_buffer, 1 << 20);
	ck_assert_int_eq(c->makers, POLICY_MAKERS_GROUP);
	ck_assert_uint_eq(c->n_namespaces, 2);
	ck_assert_str_eq(c->namespaces[0].name, "one");
	ck_assert_uint_eq(c->namespaces[0].owner, 1);
	ck_assert_uint_eq(c->namespaces[0].group, 2);
	ck_assert_uint_eq(c->namespaces[0].mode, 0664);
	/* A section without a key counts, and has the defaults. */
	ck_assert_str_eq(c->namespaces[1].name, "two");
	ck_assert_uint_eq(c->namespaces[1].owner, 0);
	ck_assert_uint_eq(c->namespaces[1].group, 61998);
	ck_assert_uint_eq(c->namespaces[1].mode, 0640);
	config_free(c);
}
END_TEST

START_TEST(faults)
{
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
	refused("[daemon]\nCreateNamespaces=some\n", 2, "root, group or all");
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
	ck_assert_ptr_null(strstr(told, ":4: ")); /* of a section that is not there */
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

/* The file that is installed says nothing but the defaults. */
START_TEST(installed_file)
{
	_cleanup_fclose_ FILE *f = fopen("conf/perfpersistd.conf", "re");
	char text[8192];
	size_t n;

	if (!f)
		return; /* not run from the tree's root */
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	config_free(loaded(text));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("config");
	TCase *t = tcase_create("file");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, defaults);
	tcase_add_test(t, every_key);
	tcase_add_test(t, faults);
	tcase_add_test(t, all_faults_are_told);
	tcase_add_test(t, missing_files);
	tcase_add_test(t, paths);
	tcase_add_test(t, installed_file);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	free(told);
	return failed != 0;
}
