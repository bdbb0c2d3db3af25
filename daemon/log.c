// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The log's destination, decided once, in log_open(). Must not know why something is logged.
 *
 * Without a journal each line is one write(2), so that lines of several processes on one terminal
 * stay whole. With PERFPERSIST_LOG_LEVEL=1 each line begins with <level>, for a service manager or
 * a supervisor that reads the pipe (sd-daemon(3)).
 */
#include "daemon/log.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "proto/clock.h"
#include "proto/journal.h"
#include "proto/printable.h"

#define LINE_SIZE 2048

static struct {
	const char *ident;
	bool journal, debug, level;
} sink = { .ident = "perfpersist" };

/*
 * A user who may write to an event causes a line with each request. The journal takes 10,000 lines
 * of a service in 30 seconds, and then none (RateLimitBurst= of journald.conf(5)): half of them are
 * reserved for lines that are not about events.
 */
static struct {
	uint64_t begun; /* start of the present window, for log_is_due() */
	unsigned lines;
} of_events;

bool log_is_due(uint64_t *told, unsigned seconds)
{
	uint64_t now = pp_clock_ns(CLOCK_MONOTONIC) / 1000000000;

	if (*told && now < *told + seconds)
		return false;
	*told = now;
	return true;
}

/* Whether the present window has room for one more line about an event. */
static bool has_room(void)
{
	if (log_is_due(&of_events.begun, LOG_EVENTS_SECONDS)) {
		unsigned left_out = of_events.lines - MIN(of_events.lines, LOG_EVENTS_MAX);

		of_events.lines = 0;
		if (left_out)
			log_warning("%u lines on events were left out.", left_out);
	}
	if (++of_events.lines == LOG_EVENTS_MAX + 1U)
		log_warning("More than %d lines on events in %d seconds: others are left out.",
			    LOG_EVENTS_MAX, LOG_EVENTS_SECONDS);
	return of_events.lines <= LOG_EVENTS_MAX;
}

static bool is_set(const char *variable)
{
	const char *v = getenv(variable);

	return v && !strcmp(v, "1");
}

void log_open(const char *ident)
{
	sink.ident = ident;
	sink.journal = pp_is_journal(STDERR_FILENO);
	sink.debug = is_set("PERFPERSIST_DEBUG");
	sink.level = is_set("PERFPERSIST_LOG_LEVEL");
}

static void write_stderr(int level, const char *message)
{
	char line[LINE_SIZE + 256], number[8] = "";
	int n;

	if (sink.level)
		snprintf(number, sizeof(number), "<%d>", level & LOG_PRIMASK);
	n = snprintf(line, sizeof(line) - 1, "%s%s: %s", number, sink.ident, message);
	if (n < 0)
		return;
	n = MIN(n, (int)sizeof(line) - 2);
	line[n++] = '\n';
	/* Nothing can be done if the log cannot be written. */
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

/* What a line is about. */
struct about {
	const char *ns, *name; /* the event; NULL: none */
	const char *fields;    /* more of them, a line each; NULL: none */
};

static _printf_(4, 5) void add_field(struct iovec *v, char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, size, fmt, ap);
	va_end(ap);
	*v = (struct iovec){ buf, strlen(buf) };
}

static void write_journal(int level, const struct about *about, const char *message)
{
	char priority[16], ident[64], text[LINE_SIZE + 16], ns[128], name[128];
	struct iovec v[5 + LOG_FIELDS_MAX];
	int n = 0;

	add_field(&v[n++], priority, sizeof(priority), "PRIORITY=%d", level & LOG_PRIMASK);
	add_field(&v[n++], ident, sizeof(ident), "SYSLOG_IDENTIFIER=%s", sink.ident);
	add_field(&v[n++], text, sizeof(text), "MESSAGE=%s", message);
	if (about->ns) {
		add_field(&v[n++], ns, sizeof(ns), "PERFPERSIST_NAMESPACE=%s", about->ns);
		add_field(&v[n++], name, sizeof(name), "PERFPERSIST_EVENT=%s", about->name);
	}
	for (const char *f = about->fields; f && *f && n < (int)ARRAY_SIZE(v);) {
		size_t length = strcspn(f, "\n");

		v[n++] = (struct iovec){ (void *)f, length };
		f += length + (f[length] == '\n');
	}
	sd_journal_sendv(v, n);
}

static _printf_(3, 0) void log_any(int level, const struct about *about, const char *fmt,
				   va_list ap)
{
	char message[LINE_SIZE];
	int saved = errno;

	if (level == LOG_DEBUG && !sink.debug)
		return;
	if (vsnprintf(message, sizeof(message), fmt, ap) >= 0) {
		make_printable(message, '?'); /* a message stays one line */
		if (sink.journal)
			write_journal(level, about, message);
		else
			write_stderr(level, message);
	}
	errno = saved;
}

void log_message(int level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_any(level, &(struct about){}, fmt, ap);
	va_end(ap);
}

void log_event(int level, const char *ns, const char *name, const char *fmt, ...)
{
	va_list ap;

	if (level >= LOG_NOTICE && !has_room())
		return;
	va_start(ap, fmt);
	log_any(level, &(struct about){ ns, name, NULL }, fmt, ap);
	va_end(ap);
}

void log_event_fields(int level, const char *ns, const char *name, const char *fields,
		      const char *fmt, ...)
{
	va_list ap;

	if (level >= LOG_NOTICE && !has_room())
		return;
	va_start(ap, fmt);
	log_any(level, &(struct about){ ns, name, fields }, fmt, ap);
	va_end(ap);
}
