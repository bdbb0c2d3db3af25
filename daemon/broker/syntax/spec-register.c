// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Registers by name, as words of struct pt_regs (arm64: of struct user_pt_regs, which BPF programs
 * see). Pure; supports the machine that this is compiled for.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/broker/syntax/spec-internal.h"

#if defined(__x86_64__)

/* In the order of struct pt_regs. As in perf and ftrace, the first two columns name the whole
 * register. */
static const struct {
	const char *whole, *ftrace, *parts[3];
} registers[] = {
	{ "r15", "r15", { "r15d", "r15w", "r15b" } },
	{ "r14", "r14", { "r14d", "r14w", "r14b" } },
	{ "r13", "r13", { "r13d", "r13w", "r13b" } },
	{ "r12", "r12", { "r12d", "r12w", "r12b" } },
	{ "rbp", "bp", { "ebp", "bp", "bpl" } },
	{ "rbx", "bx", { "ebx", "bx", "bl" } },
	{ "r11", "r11", { "r11d", "r11w", "r11b" } },
	{ "r10", "r10", { "r10d", "r10w", "r10b" } },
	{ "r9", "r9", { "r9d", "r9w", "r9b" } },
	{ "r8", "r8", { "r8d", "r8w", "r8b" } },
	{ "rax", "ax", { "eax", "ax", "al" } },
	{ "rcx", "cx", { "ecx", "cx", "cl" } },
	{ "rdx", "dx", { "edx", "dx", "dl" } },
	{ "rsi", "si", { "esi", "si", "sil" } },
	{ "rdi", "di", { "edi", "di", "dil" } },
	{ "orig_rax", "orig_ax", { 0 } },
	{ "rip", "ip", { 0 } },
	{ "cs", "cs", { 0 } },
	{ "rflags", "flags", { "eflags", 0, 0 } },
	{ "rsp", "sp", { "esp", "sp", "spl" } },
	{ "ss", "ss", { 0 } },
};

int spec_register(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++)
		if (!strcmp(name, registers[i].whole) || !strcmp(name, registers[i].ftrace))
			return i;
	return -1;
}

int spec_register_part(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		if (!strcmp(name, registers[i].whole))
			return i;
		for (size_t k = 0; k < ARRAY_SIZE(registers[i].parts); k++)
			if (registers[i].parts[k] && !strcmp(name, registers[i].parts[k]))
				return i;
	}
	return -1;
}

#elif defined(__aarch64__)

/* x0…x30 or w0…w30: 0…30, or -1. */
static int numbered(const char *name, char letter)
{
	char again[8];

	for (int i = 0; i <= 30; i++) {
		snprintf(again, sizeof(again), "%c%d", letter, i);
		if (!strcmp(name, again))
			return i;
	}
	return -1;
}

int spec_register(const char *name)
{
	static const struct {
		const char *name;
		int word;
	} others[] = { { "fp", 29 }, { "lr", 30 }, { "sp", 31 }, { "pc", 32 }, { "pstate", 33 } };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (!strcmp(name, others[i].name))
			return others[i].word;
	return numbered(name, 'x');
}

int spec_register_part(const char *name)
{
	int word = spec_register(name);

	return word < 0 ? numbered(name, 'w') : word;
}

#else
#error "the registers of this machine are not known: add them here"
#endif
