/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The registers of user space, as perf records them (PERF_SAMPLE_REGS_USER), and where the kernel has
 * them: in the task's struct pt_regs, whatever interrupted it. All entries from user space put them
 * there, exceptions and NMIs, too. The names are those of bpf_user_pt_regs_t, which the kernel's own
 * structure begins with. A task that exits runs on another's memory once its own (task_struct.mm) is gone;
 * its registers still say where its stack was.
 */
#pragma once

#include <linux/bpf_perf_event.h>

#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
/* In perf's order, with their bytes; as perf record asks for them: all but the data segments. Since 6.9 the
 * bytes behind those of cs and ss are others'. */
/* clang-format off */
#define USER_REGS(REG) \
	REG(rax, 8) REG(rbx, 8) REG(rcx, 8) REG(rdx, 8) REG(rsi, 8) REG(rdi, 8) REG(rbp, 8) REG(rsp, 8) \
	REG(rip, 8) REG(eflags, 8) REG(cs, 2) REG(ss, 2) \
	REG(r8, 8) REG(r9, 8) REG(r10, 8) REG(r11, 8) REG(r12, 8) REG(r13, 8) REG(r14, 8) REG(r15, 8)
/* clang-format on */
#define USER_REGS_MASK 0xff0fffULL
#define USER_REGS_SP rsp
/* They are user space's, and not those that a kernel thread begins with. */
#define USER_REGS_MODE cs
#define USER_REGS_MODE_BYTES 2
#define USER_REGS_MODE_MASK 3
#define USER_REGS_MODE_USER 3
/* Of a 64-bit program, also under Xen (__USER_CS, FLAT_USER_CS64); any other is one of 32 bits. */
#define USER_REGS_64 0x33
#define USER_REGS_64_MASK 0x1fff
#elif defined(__aarch64__) || defined(__TARGET_ARCH_arm64)
/* clang-format off */
#define USER_REGS(REG) \
	REG(regs[0], 8) REG(regs[1], 8) REG(regs[2], 8) REG(regs[3], 8) REG(regs[4], 8) \
	REG(regs[5], 8) REG(regs[6], 8) REG(regs[7], 8) REG(regs[8], 8) REG(regs[9], 8) \
	REG(regs[10], 8) REG(regs[11], 8) REG(regs[12], 8) REG(regs[13], 8) REG(regs[14], 8) \
	REG(regs[15], 8) REG(regs[16], 8) REG(regs[17], 8) REG(regs[18], 8) REG(regs[19], 8) \
	REG(regs[20], 8) REG(regs[21], 8) REG(regs[22], 8) REG(regs[23], 8) REG(regs[24], 8) \
	REG(regs[25], 8) REG(regs[26], 8) REG(regs[27], 8) REG(regs[28], 8) REG(regs[29], 8) \
	REG(regs[30], 8) \
	REG(sp, 8) REG(pc, 8)
/* clang-format on */
#define USER_REGS_MASK 0x1ffffffffULL
#define USER_REGS_SP sp
/* Not those of 32-bit programs, whose stack pointer is another register. */
#define USER_REGS_MODE pstate
#define USER_REGS_MODE_BYTES 8
#define USER_REGS_MODE_MASK 0x1f
#define USER_REGS_MODE_USER 0
#endif

#define USER_REGS_ONE(name, bytes) +1
#define USER_REGS_N (USER_REGS(USER_REGS_ONE))

/*
 * In a record: the ABI, and the registers; then the size of the stack, and the stack, and how much of
 * it was read. Without registers the first is PERF_SAMPLE_REGS_ABI_NONE, and the stack's size 0;
 * without a stack that is the last word.
 */
#define USER_DUMP_NONE 16
#define USER_DUMP_REGS (8 + 8 * USER_REGS_N + 8)
#define USER_DUMP_SIZE(stack) (USER_DUMP_REGS + (stack) + 8)

/* The stack is read by pages: a page that is not in memory ends it. */
#define USER_DUMP_PAGE 4096
#define USER_DUMP_PAGES(stack) ((stack) / USER_DUMP_PAGE + 2)
#define USER_DUMP_STACK_MAX 65528
