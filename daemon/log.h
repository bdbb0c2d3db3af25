/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One line per thing worth telling: to the journal with structured fields when stderr is
 * connected to it (JOURNAL_STREAM), else to stderr with a <level> only if asked
 * (PERFPERSIST_LOG_LEVEL=1). A function either logs or returns an error, never both.
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

/* The same about an event: PERFPERSIST_NAMESPACE= and PERFPERSIST_EVENT= in the journal. Of
 * LOG_INFO there are so many lines in so many seconds and no more, and then one that says so. */
#define LOG_EVENTS_MAX 5000
#define LOG_EVENTS_SECONDS 30
void log_event(int level, const char *ns, const char *name, const char *fmt, ...) _printf_(4, 5);

/* Whether to tell once more of what a stranger can make happen again and again: at most once in so
 * many seconds. *told: the caller's, 0 at first; seconds of CLOCK_MONOTONIC. */
bool log_is_due(uint64_t *told, unsigned seconds);

#define log_error(...) log_message(LOG_ERR, __VA_ARGS__)
#define log_warning(...) log_message(LOG_WARNING, __VA_ARGS__)
#define log_notice(...) log_message(LOG_NOTICE, __VA_ARGS__)
#define log_info(...) log_message(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_message(LOG_DEBUG, __VA_ARGS__)
