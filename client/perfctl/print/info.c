// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An event's properties, as text and as JSON. Prints its arguments, asks nobody.
 */
#include <grp.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <pwd.h>
#include <string.h>
#include <time.h>

#include "client/perfctl/print/away.h"
#include "client/perfctl/print/info.h"
#include "proto/clock.h"

static const struct {
	uint64_t bit;
	const char *name;
} sample_bits[] = {
	{ PERF_SAMPLE_IDENTIFIER, "identifier" },
	{ PERF_SAMPLE_IP, "ip" },
	{ PERF_SAMPLE_TID, "tid" },
	{ PERF_SAMPLE_TIME, "time" },
	{ PERF_SAMPLE_ADDR, "addr" },
	{ PERF_SAMPLE_ID, "id" },
	{ PERF_SAMPLE_STREAM_ID, "stream_id" },
	{ PERF_SAMPLE_CPU, "cpu" },
	{ PERF_SAMPLE_PERIOD, "period" },
	{ PERF_SAMPLE_READ, "read" },
	{ PERF_SAMPLE_CALLCHAIN, "callchain" },
	{ PERF_SAMPLE_RAW, "raw" },
	{ PERF_SAMPLE_REGS_USER, "regs_user" },
	{ PERF_SAMPLE_STACK_USER, "stack_user" },
};

static const char *recorder_name(const struct perfpersist_info *info)
{
	switch (info->recorder) {
	case PERFPERSIST_RECORDER_GENERIC:
		return "generic";
	case PERFPERSIST_RECORDER_TP_BTF:
		return "tp_btf";
	case PERFPERSIST_RECORDER_OVERFLOW:
		return "overflow";
	case PERFPERSIST_RECORDER_PROBE:
		return "probe";
	case PERFPERSIST_RECORDER_AUX:
		return "aux";
	}
	return "unknown";
}

const char *info_state(const struct perfpersist_info *info)
{
	switch (info->state) {
	case PERFPERSIST_CREATING:
		return "creating";
	case PERFPERSIST_RUNNING:
		return "running";
	case PERFPERSIST_DELETING:
		return "deleting";
	case PERFPERSIST_PAUSED:
		return "paused";
	case PERFPERSIST_CHANGING:
		return "changing";
	case PERFPERSIST_FROZEN:
		return "frozen";
	}
	return "unknown";
}

const char *info_state_shown(const struct perfpersist_info *info)
{
	bool ended = info->target_flags & PERFPERSIST_TARGET_ENDED;

	return ended && info->state == PERFPERSIST_RUNNING ? "ended" : info_state(info);
}

struct target_text info_target(const struct perfpersist_info *info)
{
	struct target_text t = { "" };

	if (info->target == PERFPERSIST_TARGET_CGROUP)
		snprintf(t.s, sizeof(t.s), "cgroup %s", info->target_cgroup);
	else if (info->target)
		snprintf(t.s, sizeof(t.s), "%s %u",
			 info->target == PERFPERSIST_TARGET_THREAD ? "thread" : "process",
			 info->target_pid);
	return t;
}

struct text format_size(uint64_t bytes)
{
	static const char units[] = "BKMGTPE";
	struct text t;
	size_t i = 0;

	while (bytes && !(bytes % 1024) && units[i + 1]) {
		bytes /= 1024;
		i++;
	}
	if (i)
		snprintf(t.s, sizeof(t.s), "%" PRIu64 "%c", bytes, units[i]);
	else
		snprintf(t.s, sizeof(t.s), "%" PRIu64, bytes);
	return t;
}

/* If the kernel cannot tell, the count is only a lower bound; print no number then. */
struct text format_missed(const struct perfpersist_info *info)
{
	struct text t;

	if (info->missed_unknown)
		snprintf(t.s, sizeof(t.s), "unknown");
	else
		snprintf(t.s, sizeof(t.s), "%" PRIu64 "%s", info->missed,
			 info->missed_at_least ? "+" : "");
	return t;
}

struct text format_age(uint64_t since)
{
	struct text t;
	uint64_t s, ns = pp_clock_ns(CLOCK_REALTIME);

	s = ns > since ? (ns - since) / 1000000000 : 0;
	if (s >= 86400)
		snprintf(t.s, sizeof(t.s), "%" PRIu64 "d %" PRIu64 "h", s / 86400, s / 3600 % 24);
	else if (s >= 3600)
		snprintf(t.s, sizeof(t.s), "%" PRIu64 "h %" PRIu64 "min", s / 3600, s / 60 % 60);
	else if (s >= 60)
		snprintf(t.s, sizeof(t.s), "%" PRIu64 "min %" PRIu64 "s", s / 60, s % 60);
	else
		snprintf(t.s, sizeof(t.s), "%" PRIu64 "s", s);
	return t;
}

void info_json(struct json *j, const char *key, const struct perfpersist_info *i)
{
	info_json_begin(j, key, i);
	json_end(j, '}');
}

static void json_target(struct json *j, const struct perfpersist_info *i)
{
	static const char *const kinds[] = { "none", "process", "thread", "cgroup" };

	if (!i->target) {
		json_null(j, "target");
		return;
	}
	json_begin(j, "target", '{');
	json_string(j, "kind", i->target < ARRAY_SIZE(kinds) ? kinds[i->target] : "unknown");
	if (i->target_pid)
		json_unsigned(j, "pid", i->target_pid);
	if (i->target_cgroup[0])
		json_string(j, "cgroup", i->target_cgroup);
	json_bool(j, "inherit", !(i->target_flags & PERFPERSIST_TARGET_NO_INHERIT));
	json_string(j, "on_exit", i->target_flags & PERFPERSIST_TARGET_DELETE ? "delete" : "keep");
	json_bool(j, "ended", i->target_flags & PERFPERSIST_TARGET_ENDED);
	json_end(j, '}');
}

static const char *reads(const struct perfpersist_info *i)
{
	return i->saved ? "saved" : i->flags & PERFPERSIST_COPIES ? "copies" : "live";
}

/* Whether its records have call chains with this half, which a flag leaves out. */
static bool has_half(const struct perfpersist_info *i, uint32_t without)
{
	return (i->flags & (PERFPERSIST_CALLCHAIN | without)) == PERFPERSIST_CALLCHAIN;
}

void info_json_begin(struct json *j, const char *key, const struct perfpersist_info *i)
{
	char mode[8];

	snprintf(mode, sizeof(mode), "%04o", i->mode & 07777);
	json_begin(j, key, '{');
	json_string(j, "namespace", i->ns);
	json_string(j, "name", i->name);
	json_unsigned(j, "id", i->id);
	if (i->shares)
		json_unsigned(j, "shares", i->shares);
	else
		json_null(j, "shares");
	json_string(j, "event", i->event);
	json_unsigned(j, "sources", i->sources);
	json_string(j, "filter", i->filter);
	json_unsigned(j, "max_rate", i->max_rate);
	json_unsigned(j, "buffer", i->buffer);
	json_unsigned(j, "set", i->set);
	json_unsigned(j, "memory", i->memory);
	json_string(j, "cpus", i->cpus);
	json_bool(j, "all_cpus", i->flags & PERFPERSIST_ALL_CPUS);
	json_string(j, "away", i->away);
	json_string(j, "lacking", i->lacking);
	if (i->lacking[0])
		json_string(j, "lacking_reason", lacking_why(i));
	else
		json_null(j, "lacking_reason");
	json_unsigned(j, "records", i->records);
	json_unsigned(j, "bytes", i->bytes);
	json_unsigned(j, "limited", i->limited);
	if (i->missed_unknown)
		json_null(j, "missed");
	else
		json_unsigned(j, "missed", i->missed);
	json_bool(j, "missed_at_least", i->missed_at_least);
	json_string(j, "state", info_state(i));
	json_bool(j, "paused_by_trigger", i->flags & PERFPERSIST_STOPPED);
	json_string(j, "recorder", recorder_name(i));
	json_unsigned(j, "sample_type", i->sample_type);
	json_unsigned(j, "period", i->flags & PERFPERSIST_FREQ ? 0 : i->period);
	json_unsigned(j, "freq", i->flags & PERFPERSIST_FREQ ? i->period : 0);
	json_bool(j, "callchain", i->flags & PERFPERSIST_CALLCHAIN);
	json_bool(j, "callchain_kernel", has_half(i, PERFPERSIST_NO_KERNEL_CHAIN));
	json_bool(j, "callchain_user", has_half(i, PERFPERSIST_NO_USER_CHAIN));
	json_unsigned(j, "max_stack", i->max_stack);
	json_unsigned(j, "stack_user", i->stack_user);
	json_bool(j, "wakeup", i->flags & PERFPERSIST_WAKEUP);
	json_unsigned(j, "checkpoint", PERFPERSIST_CHECKPOINT_OF(i->flags));
	json_bool(j, "program", i->flags & PERFPERSIST_PROGRAM);
	json_bool(j, "adopted", i->flags & PERFPERSIST_ADOPTED);
	json_target(j, i);
	json_bool(j, "configured", i->flags & PERFPERSIST_CONFIGURED);
	json_string(j, "reads", reads(i));
	json_unsigned(j, "owner", i->owner);
	json_unsigned(j, "group", i->group);
	json_unsigned(j, "creator", i->creator);
	json_string(j, "mode", mode);
	json_unsigned(j, "created", i->created);
	if (!i->saved)
		return;
	json_unsigned(j, "saved", i->saved);
	json_unsigned(j, "skipped", i->skipped);
}

static void print_key(FILE *f, const char *key)
{
	fprintf(f, "%-12s ", key);
}

static void print_line(FILE *f, const char *key, const char *value)
{
	print_key(f, key);
	print_text(f, value, strlen(value));
	fputc('\n', f);
}

static void print_rate(FILE *f, const struct perfpersist_info *i)
{
	if (i->flags & PERFPERSIST_FREQ) {
		print_key(f, "frequency");
		fprintf(f, "%" PRIu64 " Hz\n", i->period);
	} else if (i->period) {
		print_key(f, "period");
		fprintf(f, "%" PRIu64 "\n", i->period);
	}
	if (i->flags & PERFPERSIST_CALLCHAIN)
		print_line(f, "call chains",
			   !has_half(i, PERFPERSIST_NO_KERNEL_CHAIN) ? "user"
			   : !has_half(i, PERFPERSIST_NO_USER_CHAIN) ? "kernel"
								     : "user and kernel");
	if (i->stack_user) {
		print_key(f, "user stack");
		fprintf(f, "%u bytes, and registers\n", i->stack_user);
	}
	if (i->max_stack) {
		print_key(f, "max stack");
		fprintf(f, "%u\n", i->max_stack);
	}
	if (i->max_rate) {
		print_key(f, "max rate");
		fprintf(f, "%" PRIu64 "/s per CPU\n", i->max_rate);
	}
	if (i->flags & PERFPERSIST_WAKEUP)
		print_line(f, "wakeup", "yes");
	if (PERFPERSIST_CHECKPOINT_OF(i->flags)) {
		print_key(f, "checkpoint");
		fprintf(f, "every %u s\n", PERFPERSIST_CHECKPOINT_OF(i->flags));
	}
	if (i->flags & PERFPERSIST_PROGRAM)
		print_line(f, "program", "a BPF program decides on each record (--bpf)");
	if (i->flags & PERFPERSIST_ADOPTED)
		print_line(f, "adopted", "its creator opened and configured the perf events");
}

static void print_target(FILE *f, const struct perfpersist_info *i)
{
	bool is_cgroup = i->target == PERFPERSIST_TARGET_CGROUP;
	struct target_text what = info_target(i);

	print_key(f, "target");
	print_text(f, what.s, strlen(what.s));
	if (!is_cgroup && !(i->target_flags & PERFPERSIST_TARGET_NO_INHERIT))
		fputs(", and what it creates", f);
	if (i->target_flags & PERFPERSIST_TARGET_ENDED)
		fputs(is_cgroup ? "; it is removed" : "; it has ended", f);
	if (i->target_flags & PERFPERSIST_TARGET_DELETE)
		fputs("; then the event is deleted", f);
	fputc('\n', f);
}

static void print_sample_type(FILE *f, uint64_t sample_type)
{
	print_key(f, "sample type");
	fprintf(f, "0x%" PRIx64, sample_type);
	for (size_t i = 0; i < ARRAY_SIZE(sample_bits); i++)
		if (sample_type & sample_bits[i].bit)
			fprintf(f, " %s", sample_bits[i].name);
	fputc('\n', f);
}

static void print_rights(FILE *f, const struct perfpersist_info *i)
{
	const struct passwd *pw = getpwuid(i->owner);
	const struct group *gr = getgrgid(i->group);

	print_key(f, "owner");
	fprintf(f, "%u%s%s%s\n", i->owner, pw ? " (" : "", pw ? pw->pw_name : "", pw ? ")" : "");
	print_key(f, "group");
	fprintf(f, "%u%s%s%s\n", i->group, gr ? " (" : "", gr ? gr->gr_name : "", gr ? ")" : "");
	print_key(f, "mode");
	fprintf(f, "%04o\n", i->mode & 07777);
}

struct text format_time(uint64_t time)
{
	time_t t = (time_t)(time / 1000000000);
	struct text text;
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(text.s, sizeof(text.s), "%F %T %z", &tm))
		snprintf(text.s, sizeof(text.s), "%lld", (long long)t);
	return text;
}

static void print_when(FILE *f, const char *key, uint64_t time)
{
	print_key(f, key);
	fprintf(f, "%s, %s ago\n", format_time(time).s, format_age(time).s);
}

/* If unprivileged users may use BPF, every holder of a ring could write it: the daemon then hands
 * out none. */
static bool unprivileged_bpf(void)
{
	FILE *f = fopen("/proc/sys/kernel/unprivileged_bpf_disabled", "re");
	bool is_0 = f && fgetc(f) == '0';

	if (f)
		fclose(f);
	return is_0;
}

static const char *read_as(const struct perfpersist_info *i)
{
	if (i->saved)
		return "files of a save";
	if (!(i->flags & PERFPERSIST_COPIES))
		return "live buffers";
	return unprivileged_bpf()
		       ? "copies that the daemon makes (kernel.unprivileged_bpf_disabled is 0)"
		       : "copies that the daemon makes";
}

void info_print(FILE *f, const struct perfpersist_info *i)
{
	print_key(f, "name");
	fprintf(f, "%s/%s\n", i->ns, i->name);
	print_key(f, "id");
	fprintf(f, "%" PRIu64 "\n", i->id);
	if (i->shares) {
		print_key(f, "shares");
		fprintf(f, "the buffers of id %" PRIu64 "\n", i->shares);
	}
	print_line(f, "event", i->event);
	if (i->sources > 1) {
		print_key(f, "sources");
		fprintf(f, "%u events\n", i->sources);
	}
	if (i->filter[0])
		print_line(f, "filter", i->filter);
	if (i->target)
		print_target(f, i);
	print_line(f, "state",
		   i->flags & PERFPERSIST_STOPPED ? "paused, by a trigger" : info_state_shown(i));
	print_line(f, "recorder", recorder_name(i));
	print_rate(f, i);
	print_sample_type(f, i->sample_type);
	print_key(f, "buffer");
	fprintf(f, "%s per CPU, %s in all\n", format_size(i->buffer).s, format_size(i->memory).s);
	print_line(f, "read as", read_as(i));
	print_key(f, "cpus");
	fprintf(f, "%s%s\n", i->cpus,
		i->flags & PERFPERSIST_ALL_CPUS ? " (all, and those that come)" : "");
	print_key(f, "records");
	fprintf(f, "%" PRIu64 "\n", i->records);
	print_key(f, "bytes");
	fprintf(f, "%" PRIu64 "\n", i->bytes);
	print_line(f, "missed", format_missed(i).s);
	if (i->max_rate || i->limited) {
		print_key(f, "limited");
		fprintf(f, "%" PRIu64 "\n", i->limited);
	}
	print_rights(f, i);
	if (i->flags & PERFPERSIST_CONFIGURED)
		print_line(f, "made by", "the configuration");
	print_when(f, "created", i->created);
	if (i->saved)
		print_when(f, "saved", i->saved);
	if (i->skipped) {
		print_key(f, "skipped");
		fprintf(f, "%" PRIu64 " bytes, for the limit of checkpoints\n", i->skipped);
	}
}

const char *sideband_reason(const struct perfpersist_sideband_info *info)
{
	static const char *const reasons[] = {
		[PERFPERSIST_SIDEBAND_FIRST] = "since the first event began",
		[PERFPERSIST_SIDEBAND_NOTHING] = "nothing records",
		[PERFPERSIST_SIDEBAND_OFF] = "perfpersistd.conf has Sideband=no",
		[PERFPERSIST_SIDEBAND_SOON] = "it is about to start",
		[PERFPERSIST_SIDEBAND_REFUSED] = "it cannot be recorded; see the daemon's log",
		[PERFPERSIST_SIDEBAND_AWAY] = "no keeper can be started; see the daemon's log",
		[PERFPERSIST_SIDEBAND_GONE] = "the previous keeper has ended",
		[PERFPERSIST_SIDEBAND_STUCK] = "the previous keeper did not answer and was killed",
	};

	if (!info->keeping && info->why == PERFPERSIST_SIDEBAND_STUCK)
		return "the keeper does not answer; see the daemon's log";
	if (info->keeping && info->complete > info->began)
		return "older sideband was dropped to make room";
	return info->why < ARRAY_SIZE(reasons) ? reasons[info->why] : "for another reason";
}
