// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rights: the one place that decides them, for every class of peer. */
#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "daemon/broker/edge/policy.h"
#include "proto/macro.h"
#include "tests/unit/needs.h"

static gid_t groups[] = { 100, 200, 300 };

static struct credentials who(uid_t uid, gid_t gid, size_t n_groups)
{
	return (struct credentials){
		.uid = uid,
		.gid = gid,
		.groups = groups,
		.n_groups = n_groups,
	};
}

static bool may(struct credentials c, uint32_t mode, enum pp_right right)
{
	struct namespace ns = { .name = "ns", .owner = 1000, .group = 200, .mode = mode };

	return policy_allows(&c, &ns, right);
}

START_TEST(root_may_everything)
{
	ck_assert(may(who(0, 0, 0), 0000, PP_RIGHT_R));
	ck_assert(may(who(0, 0, 0), 0000, PP_RIGHT_W));
}
END_TEST

START_TEST(owner_has_owner_bits_only)
{
	ck_assert(may(who(1000, 1, 0), 0400, PP_RIGHT_R));
	ck_assert(!may(who(1000, 1, 0), 0400, PP_RIGHT_W));
	ck_assert(may(who(1000, 1, 0), 0200, PP_RIGHT_W));
	/* Even if group or others have more, as for a file. */
	ck_assert(!may(who(1000, 200, 3), 0066, PP_RIGHT_R));
}
END_TEST

START_TEST(group_by_gid_or_supplementary)
{
	ck_assert(may(who(5, 200, 0), 0040, PP_RIGHT_R));
	ck_assert(may(who(5, 1, 3), 0040, PP_RIGHT_R));
	ck_assert(!may(who(5, 1, 1), 0040, PP_RIGHT_R));
	ck_assert(!may(who(5, 1, 0), 0040, PP_RIGHT_R));
	ck_assert(!may(who(5, 1, 3), 0040, PP_RIGHT_W));
	ck_assert(!may(who(5, 1, 3), 0606, PP_RIGHT_R));
}
END_TEST

START_TEST(others_have_other_bits)
{
	ck_assert(may(who(5, 1, 0), 0004, PP_RIGHT_R));
	ck_assert(!may(who(5, 1, 0), 0004, PP_RIGHT_W));
	ck_assert(!may(who(5, 1, 0), 0660, PP_RIGHT_R));
	ck_assert(may(who(5, 1, 0), 0000, PP_RIGHT_NONE));
}
END_TEST

START_TEST(who_of_the_configuration)
{
	struct credentials root = who(0, 0, 0), member = who(5, 1, 3), other = who(5, 1, 0);

	ck_assert(policy_may(&root, POLICY_ROOT, 200));
	ck_assert(!policy_may(&member, POLICY_ROOT, 200));
	ck_assert(policy_may(&member, POLICY_GROUP, 200));
	ck_assert(!policy_may(&other, POLICY_GROUP, 200));
	ck_assert(policy_may(&other, POLICY_ALL, 200));
}
END_TEST

static bool may_hold(struct credentials c, enum namespace_live live, bool unprivileged_bpf)
{
	struct namespace ns = {
		.name = "ns",
		.owner = 1000,
		.group = 200,
		.mode = 0644,
		.live = live,
	};

	return policy_may_hold_rings(&c, &ns, unprivileged_bpf);
}

START_TEST(live_rings)
{
	static const struct {
		enum namespace_live live;
		bool owner, member, other;
	} table[] = {
		{ NAMESPACE_LIVE_NOBODY, false, false, false },
		{ NAMESPACE_LIVE_OWNER, true, false, false },
		{ NAMESPACE_LIVE_GROUP, true, true, false },
		{ NAMESPACE_LIVE_READERS, true, true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		enum namespace_live live = table[i].live;

		ck_assert(may_hold(who(1000, 1, 0), live, false) == table[i].owner);
		ck_assert(may_hold(who(5, 1, 3), live, false) == table[i].member);
		ck_assert(may_hold(who(5, 200, 0), live, false) == table[i].member);
		ck_assert(may_hold(who(5, 1, 0), live, false) == table[i].other);
		/* Where anybody may load programs, only root. */
		ck_assert(!may_hold(who(1000, 200, 3), live, true));
		ck_assert(may_hold(who(0, 0, 0), live, true));
		ck_assert(may_hold(who(0, 0, 0), live, false));
	}
}
END_TEST

START_TEST(firing_by_hand)
{
	static const struct {
		enum namespace_fire fire;
		bool owner, member, reader, other;
	} table[] = {
		{ NAMESPACE_FIRE_WRITERS, false, false, false, false },
		{ NAMESPACE_FIRE_GROUP, true, true, false, false },
		{ NAMESPACE_FIRE_READERS, true, true, true, false },
		{ NAMESPACE_FIRE_ALL, true, true, true, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct namespace ns = { .owner = 1000, .group = 200, .mode = 0440 };
		struct credentials c;

		ns.fire = table[i].fire;
		c = who(1000, 1, 0);
		ck_assert(policy_may_fire(&c, &ns) == table[i].owner);
		c = who(5, 200, 0);
		ck_assert(policy_may_fire(&c, &ns) == table[i].member);
		c = who(5, 1, 0);
		ck_assert(policy_may_fire(&c, &ns) == table[i].other);
		ns.mode = 0444;
		ck_assert(policy_may_fire(&c, &ns) == table[i].reader);
		ns.mode = 0222;
		ck_assert(policy_may_fire(&c, &ns));
		c = who(0, 0, 0);
		ck_assert(policy_may_fire(&c, &ns));
	}
}
END_TEST

/* The process that saves tapes has the daemon's user: it reads and releases everything, and writes
 * nothing. */
START_TEST(the_daemons_own_user)
{
	enum { US = 61990 };
	struct namespace ns = { .name = "ns", .owner = 1000, .group = 200, .mode = 0600 };
	struct credentials us = who(US, US, 0), root = who(0, 0, 0), owner = who(1000, 1, 0),
			   member = who(5, 200, 3);

	ck_assert(!may(us, 0600, PP_RIGHT_R));
	ck_assert(!policy_may_release(&us, &ns));
	ck_assert_int_eq(setresuid(US, US, US), 0);
	ck_assert(may(us, 0600, PP_RIGHT_R));
	ck_assert(may(us, 0000, PP_RIGHT_R));
	ck_assert(!may(us, 0600, PP_RIGHT_W));
	ck_assert(policy_may_release(&us, &ns));
	ck_assert(may_hold(us, NAMESPACE_LIVE_NOBODY, true));
	ck_assert(!policy_may(&us, POLICY_ROOT, 200));
	ck_assert(!policy_may_resize(&us, 1000));
	/* Nothing of that is others'. */
	ck_assert(!may(member, 0600, PP_RIGHT_R));
	ck_assert(policy_may_release(&root, &ns));
	ck_assert(policy_may_release(&owner, &ns));
	ck_assert(!policy_may_release(&member, &ns));
	ns.mode = 0640; /* readers do not release */
	ck_assert(!policy_may_release(&member, &ns));
	ns.mode = 0660;
	ck_assert(policy_may_release(&member, &ns));
}
END_TEST

/* Requires the right to read an event; a namespace alone is not enough. */
START_TEST(sideband)
{
	struct namespace shut = { .owner = 7, .group = 7, .mode = 0600, .n_events = 1 };
	struct namespace team = { .owner = 7, .group = 200, .mode = 0640 };
	struct namespace *both[] = { &shut, &team };
	struct credentials root = who(0, 0, 0), member = who(5, 1, 3), other = who(5, 1, 0),
			   owner = who(7, 1, 0);

	ck_assert(policy_may_have_sideband(&root, NULL, 0));
	ck_assert(!policy_may_have_sideband(&owner, NULL, 0));
	ck_assert(policy_may_have_sideband(&owner, both, 2));
	ck_assert(!policy_may_have_sideband(&member, both, 2));
	team.n_events = 1;
	ck_assert(policy_may_have_sideband(&member, both, 2));
	ck_assert(!policy_may_have_sideband(&other, both, 2));
}
END_TEST

START_TEST(credentials_are_the_kernels)
{
	struct credentials c;
	int pair[2], n;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(credentials_read(pair[0], &c), 0);
	ck_assert_uint_eq(c.uid, geteuid());
	ck_assert_uint_eq(c.gid, getegid());
	ck_assert_int_eq(c.pid, getpid());
	n = getgroups(0, NULL);
	ck_assert_uint_eq(c.n_groups, (size_t)n);
	credentials_done(&c);
	close(pair[0]);
	close(pair[1]);
}
END_TEST

/* More groups than the first buffer holds: the kernel answers ERANGE, and how many. */
START_TEST(many_groups)
{
	enum { MANY = 500 };
	gid_t many[MANY];
	struct credentials c;
	int pair[2];

	for (size_t i = 0; i < MANY; i++)
		many[i] = 50000 + (i * 7) % MANY;
	ck_assert_int_eq(setgroups(MANY, many), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(credentials_read(pair[0], &c), 0);
	ck_assert_uint_eq(c.n_groups, MANY);
	for (size_t i = 0; i < MANY; i++)
		ck_assert(credentials_in_group(&c, many[i]));
	ck_assert(!credentials_in_group(&c, 50000 + MANY));
	credentials_done(&c);
	close(pair[0]);
	close(pair[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("policy");
	TCase *t = tcase_create("rights");

	tcase_add_test(t, root_may_everything);
	tcase_add_test(t, owner_has_owner_bits_only);
	tcase_add_test(t, group_by_gid_or_supplementary);
	tcase_add_test(t, others_have_other_bits);
	tcase_add_test(t, who_of_the_configuration);
	tcase_add_test(t, live_rings);
	tcase_add_test(t, firing_by_hand);
	tcase_add_test(t, sideband);
	tcase_add_test(t, credentials_are_the_kernels);
	add_test_unless(no_root(), t, many_groups);
	add_test_unless(no_root(), t, the_daemons_own_user);
	suite_add_tcase(s, t);
	return run_suite(s);
}
