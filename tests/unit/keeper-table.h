/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The keeper's table as a fixture, and handmade records of the kernel to apply to it. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "daemon/keeper/table.h"
#include "proto/macro.h"
#include "proto/sideband.h"
#include "tests/unit/needs.h"

#define ROOMY (64UL << 20)

static struct table table;
static uint64_t now;

static _unused_ void setup_with(uint64_t max)
{
	ck_assert_int_eq(table_init(&table, max), 0);
	now = 1000;
	table.began = table.since_rings = now;
}

static _unused_ void setup(void)
{
	setup_with(ROOMY);
}

static _unused_ void teardown(void)
{
	table_clear(&table); /* asserts that nothing is left */
}

/* ── records ────────────────────────────────────────────────────────────────────────────── */

static _unused_ void record(uint32_t type, uint16_t misc, const void *body, size_t size)
{
	uint8_t bytes[512];
	struct perf_event_header h = { .type = type, .misc = misc };

	ck_assert_uint_eq(size % 8, 0);
	h.size = (uint16_t)(sizeof(h) + size + PP_SIDEBAND_ID_SIZE);
	now += 10;
	memset(bytes, 0xee, sizeof(bytes));
	memcpy(bytes, &h, sizeof(h));
	memcpy(bytes + sizeof(h), body, size);
	memcpy(bytes + sizeof(h) + size + 8, &now, sizeof(now));
	table_apply_bytes(&table, bytes, h.size);
}

static _unused_ void task(uint32_t type, uint32_t pid, uint32_t ppid, uint32_t tid, uint32_t ptid)
{
	struct {
		uint32_t pid, ppid, tid, ptid;
		uint64_t time;
	} body = { pid, ppid, tid, ptid, now + 10 };

	record(type, 0, &body, sizeof(body));
}

static _unused_ void forks(uint32_t ppid, uint32_t pid)
{
	task(PERF_RECORD_FORK, pid, ppid, pid, ppid);
}

static _unused_ void starts_thread(uint32_t pid, uint32_t tid)
{
	task(PERF_RECORD_FORK, pid, pid, tid, pid);
}

static _unused_ void exits(uint32_t pid, uint32_t tid)
{
	task(PERF_RECORD_EXIT, pid, 1, tid, 1);
}

static _unused_ void comm(uint32_t pid, uint32_t tid, const char *name, uint16_t misc)
{
	struct {
		uint32_t pid, tid;
		char name[16];
	} body = { .pid = pid, .tid = tid };

	snprintf(body.name, sizeof(body.name), "%s", name);
	record(PERF_RECORD_COMM, misc, &body, sizeof(body));
}

static _unused_ void execs(uint32_t pid, const char *name)
{
	comm(pid, pid, name, PERF_RECORD_MISC_COMM_EXEC);
}

static _unused_ void maps(uint32_t pid, uint64_t start, const char *path)
{
	struct {
		uint32_t pid, tid;
		uint64_t start, size, offset;
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t prot, flags;
		char path[32];
	} body = { .pid = pid, .tid = pid, .start = start, .size = 0x1000, .prot = 5, .flags = 2 };

	snprintf(body.path, sizeof(body.path), "%s", path);
	record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &body, sizeof(body));
}

static _unused_ void loses(uint64_t n)
{
	uint64_t body[2] = { 7, n };

	record(PERF_RECORD_LOST, 0, body, sizeof(body));
}

/* A forked shell that has exec'ed, like all other shells here. */
static _unused_ void begin_shell(void)
{
	table.told = true;
	forks(1, 100);
	execs(100, "sh");
	maps(100, 0x1000, "/bin/sh");
	maps(100, 0x5000, "/lib/libc.so");
}
