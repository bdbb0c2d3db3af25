/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Log lines: to the journal with structured fields if stderr is connected to it (JOURNAL_STREAM),
 * otherwise to stderr, with a <level> if asked (PERFPERSIST_LOG_LEVEL=1). A function either logs or
 * returns an error, never both.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <syslog.h>

#include "proto/macro.h"

/* ident: the program's name. Debug lines are dropped unless PERFPERSIST_DEBUG=1. */
void log_open(const char *ident);

/* level: LOG_ERR, LOG_WARNING, LOG_NOTICE, LOG_INFO, LOG_DEBUG. Keeps errno. */
void log_message(int level, const char *fmt, ...) _printf_(2, 3);

/* Likewise about an event: PERFPERSIST_NAMESPACE= and PERFPERSIST_EVENT= in the journal. At most so
 * many of LOG_NOTICE and below pass in one window, then one line says that others are left out. */
#define LOG_EVENTS_MAX 5000
#define LOG_EVENTS_SECONDS 30
void log_event(int level, const char *ns, const char *name, const char *fmt, ...) _printf_(4, 5);

/* Likewise, with LOG_FIELDS_MAX more fields at most: each is a line of `fields`, FIELD=value. */
#define LOG_FIELDS_MAX 10
void log_event_fields(int level, const char *ns, const char *name, const char *fields,
		      const char *fmt, ...) _printf_(5, 6);

/* Whether to log something again that a stranger can provoke: at most once in so many seconds.
 * *told: the caller's, 0 at first; seconds of CLOCK_MONOTONIC. */
bool log_is_due(uint64_t *told, unsigned seconds);

#define log_error(...) log_message(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_message(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_message(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_message(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_message(LOG_DEBUG, __VA_ARGS__)
