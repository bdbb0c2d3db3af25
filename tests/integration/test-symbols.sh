#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The names of functions in call chains are those that perf finds, for programs and kernel; those of
# C++ are demangled; those of stripped programs come from their debug files. There are none if the
# file is gone or has been replaced.
. "$(dirname "$0")/../lib.sh"
command -v perf >/dev/null || skip "there is no perf"
CC=${CC:-gcc}
command -v "$CC" >/dev/null || skip "there is no $CC"

export HOME=$SCRATCH/home # for perf's caches
mkdir -m 0755 "$HOME" "$SCRATCH/programs"
cd "$SCRATCH/programs"

# Spends its time in two functions, one of which calls the other, and in the kernel.
cat >spin.c <<'END'
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
volatile long sink;
__attribute__((noinline)) void PREFIX(inner)(long n)
{
	for (long i = 0; i < n; i++)
		sink += i;
}
__attribute__((noinline)) void PREFIX(outer)(long n)
{
	char buffer[512];
	for (long i = 0; i < 64; i++) {
		PREFIX(inner)(n);
		sink += readlink("/proc/self/exe", buffer, sizeof(buffer));
	}
	sink++;
}
/* For a third of a second of its own, or so often. */
int main(int argc, char **argv)
{
	if (argc > 1)
		for (int i = atoi(argv[1]); i > 0; i--)
			PREFIX(outer)(2000);
	else
		while (clock() < CLOCKS_PER_SEC / 3)
			PREFIX(outer)(2000);
	return 0;
}
END
# build NAME PREFIX [OPTION…]
build() {
	"$CC" -x c -O0 -fno-omit-frame-pointer "-DPREFIX(x)=$2_##x" "${@:3}" -o "$1" spin.c
}

# record FILE CMD…: samples where it spends its time. perf's buffer has room for everything, however
# late perf empties it; and perf need not list all BPF programs of the machine for it.
record() {
	perf record -q --no-bpf-event -m 4M -e cpu-clock -F 2000 -g -o "$1" "${@:2}" >/dev/null 2>err.txt </dev/null || fail "perf record: $(<err.txt)"
}

# How often FUNCTION is in the chains of the last output, and in which file. A name ends at "+0x".
count() {
	grep -cE "^\s+[0-9a-f]+ $1\+0x[0-9a-f]+ \($2\)$" out.txt || true
}

script() {
	perfctl script -i "$@" >out.txt 2>err.txt || fail "perfctl script $*: $(<err.txt)"
	[ ! -s err.txt ] || fail "perfctl script $*: $(<err.txt)"
}

# many N WHAT
many() {
	[ "$1" -gt 20 ] || fail "only $1 of $2: $(head -n 20 out.txt)"
}

# ── as perf finds them ───────────────────────────────────────────────────────────────────

# different FILE: chains in which perf names another function. Ignores perf's names for the
# beginning of a function, because there the call before it is meant; jumps that only have a number,
# or that perf has no name for, as in programs at a fixed address; code that ran while another
# program took its place; and strangers' BPF programs, which load and unload between the two.
different() {
	perf script --no-inline -i "$1" >perf.txt 2>/dev/null
	script "$1"
	expect_eq "$(wc -l <out.txt)" "$(wc -l <perf.txt)" "lines of $1"
	paste -d '|' perf.txt out.txt | awk -F '|' '$1 != $2' | grep -vE '^[^|]*(\+0x0 | @plt|execve)|\|[^|]*@plt\+|bpf_(prog|trampoline|dispatcher)_|ftrace_trampoline' || true
}

build spin known
record spin.data ./spin
lost=$(different spin.data)
[ -z "$lost" ] || fail "perf (left) and perfctl name others: $(head -n 5 <<<"$lost")"
many "$(count known_inner "$PWD/spin")" known_inner
many "$(count known_outer "$PWD/spin")" known_outer
if [ "$(head -c 16 /proc/kallsyms)" != 0000000000000000 ]; then
	many "$(count '[a-z_0-9]*readlink[a-z_0-9]*' '\[kernel.kallsyms\]')" "the kernel's readlink"
fi
[ "$(grep -c '^spin ' out.txt)" -gt 100 ] || fail "only $(grep -c '^spin ' out.txt) samples"

# Each call has its correct address, and each function its correct size.
perfctl script -i spin.data --json >out.json
size=$((0x$(nm -S spin | awk '$4 == "known_inner" { print $2 }')))
jq -se --argjson size "$size" '[.[] | .callchain[] | select(.sym == "known_inner") | .symoff] |
	length > 20 and all(. < $size)' out.json >/dev/null || fail "known_inner is longer than $size bytes"
# Not at a function's beginning or end: there the frame pointer still, or again, belongs to its
# caller.
jq -se --argjson size "$size" '[.[] | select(.callchain[0].sym == "known_inner") |
	select(.callchain[0].symoff >= 12 and .callchain[0].symoff < $size - 4) | .callchain[1].sym] |
	length > 20 and all(. == "known_outer")' out.json >/dev/null || fail "others than known_outer call known_inner"

# Programs at a fixed address, another kind of program.
build fixed known -no-pie
record fixed.data ./fixed
lost=$(different fixed.data)
[ -z "$lost" ] || fail "not position-independent: $(head -n 5 <<<"$lost")"
many "$(count known_inner "$PWD/fixed")" "known_inner at a fixed place"

# Tracepoints have chains, too.
perf record -q --no-bpf-event -m 4M -e syscalls:sys_enter_readlink -g -o trace.data ./spin 20 >/dev/null 2>err.txt || fail "perf record: $(<err.txt)"
lost=$(different trace.data)
[ -z "$lost" ] || fail "of tracepoints: $(head -n 5 <<<"$lost")"
# (libc has no frame pointer for its caller, but for the caller's caller.)
many "$(count main "$PWD/spin")" "main behind a tracepoint"

script spin.data --no-symbols
[ "$(count known_inner "$PWD/spin")" -eq 0 ] || fail "--no-symbols shows symbols"
script spin.data --max-stack 1
expect_eq "$(awk -v RS= -F '\n\t' 'NF > 2' out.txt)" "" "chains with --max-stack 1"
many "$(count known_inner "$PWD/spin")" "known_inner with --max-stack 1"
script spin.data -G
[ "$(grep -c '^\s*[0-9a-f]* known_' out.txt)" -eq 0 ] || fail "-G shows chains"
many "$(grep -c 'cpu-clock: .* known_inner+0x' out.txt)" "known_inner with -G"

# A user who may read the file may see its names, except for the kernel's.
chmod 0644 spin.data
as_user perfctl script -i "$PWD/spin.data" >out.txt
many "$(count known_inner "$PWD/spin")" "known_inner for nobody in particular"

# ── C++ ──────────────────────────────────────────────────────────────────────────────────

if echo 'int main() { return 0; }' | "$CC" -x c++ -o /dev/null - 2>/dev/null && ldconfig -p | grep -F libstdc++.so.6 >/dev/null; then
	cat >box.cc <<-'END'
		#include <time.h>
		namespace outer {
		template <typename T> struct Box {
			volatile T sum = 0;
			__attribute__((noinline)) T add(T n, const char *) { for (T i = 0; i < n; i++) sum += i; return sum; }
			__attribute__((noinline)) T operator()(T n) { for (T i = 0; i < n; i++) sum -= i; return sum; }
		};
		template <typename T> __attribute__((noinline)) T twice(T a) { Box<T> b; b.add(a, ""); return b(a); }
		}
		int main() { while (clock() < CLOCKS_PER_SEC / 5) outer::twice<long>(50000); }
	END
	"$CC" -x c++ -O0 -fno-omit-frame-pointer -o box box.cc
	record box.data ./box
	lost=$(different box.data)
	[ -z "$lost" ] || fail "of C++: $(head -n 5 <<<"$lost")"
	many "$(count 'outer::Box<long>::add' "$PWD/box")" outer::Box
	many "$(count 'outer::Box<long>::operator\(\)' "$PWD/box")" "an operator"
	many "$(count 'outer::twice<long>' "$PWD/box")" outer::twice
	script box.data --no-demangle
	many "$(count '_ZN5outer3BoxIlE3addElPKc' "$PWD/box")" "a mangled name"
else
	echo "not tested: C++ (there is no compiler or no library for it)"
fi

# ── stripped ─────────────────────────────────────────────────────────────────────────────

build stripped known
objcopy --only-keep-debug stripped stripped.debug
strip --strip-all stripped
record stripped.data ./stripped
HOME=/nonexistent script stripped.data
[ "$(count 'known_inner' "$PWD/stripped")" -eq 0 ] || fail "a stripped program has symbols"
many "$(grep -cE "^\s+[0-9a-f]+ \[unknown\] \($PWD/stripped\)$" out.txt)" "places in a stripped program"

# Beside it, by .gnu_debuglink; the debug file of another program is no use.
cp stripped linked
objcopy --add-gnu-debuglink=stripped.debug linked
record linked.data ./linked
mkdir -p .debug
mv stripped.debug .debug/
script linked.data
many "$(count known_inner "$PWD/linked")" "known_inner from a debug file"
build other wrong -O2
objcopy --only-keep-debug other .debug/stripped.debug
HOME=/nonexistent script linked.data
[ "$(count '(wrong|known)_inner' "$PWD/linked")" -eq 0 ] || fail "names from another program's debug file"
# A file that is not regular does not block perfctl.
rm .debug/stripped.debug
mkfifo .debug/stripped.debug
expect_ok timeout 60 env HOME=/nonexistent "${PERFCTL[@]}" script -i linked.data

# ── replaced ─────────────────────────────────────────────────────────────────────────────

build spin wrong -O2
HOME=/nonexistent script spin.data
[ "$(count 'wrong_[a-z]*' "$PWD/spin")" -eq 0 ] || fail "names from another program that took the file's place"
many "$(grep -cE "^\s+[0-9a-f]+ \[unknown\] \($PWD/spin\)$" out.txt)" "places in a program that was replaced"
# perf keeps copies of the files that it saw.
script spin.data
many "$(count known_inner "$PWD/spin")" "known_inner from perf's copy"
rm spin
HOME=/nonexistent script spin.data
many "$(grep -cE "^\s+[0-9a-f]+ \[unknown\] \($PWD/spin\)$" out.txt)" "places in a program that is gone"
mkfifo spin
expect_ok timeout 60 env HOME=/nonexistent "${PERFCTL[@]}" script -i spin.data
rm spin
head -c 5000 fixed >spin
HOME=/nonexistent script spin.data
[ "$(count '(wrong|known)_[a-z]*' "$PWD/spin")" -eq 0 ] || fail "names from half a program"

# ── events of ours ───────────────────────────────────────────────────────────────────────

build spin known
start_daemon
# Samples only this program: on a busy machine others would overwrite its samples.
perfctl create t/clock -e cpu-clock -F 2000 -g -m 1M --comm spin >/dev/null
wait_until 20 kept
taskset -c 0 ./spin &
pid=$!
wait "$pid"
perfctl script t/clock --pid "$pid" >out.txt 2>err.txt || fail "perfctl script: $(<err.txt)"
many "$(count known_inner "$PWD/spin")" "known_inner of a program that has ended"
many "$(count known_outer "$PWD/spin")" "known_outer of a program that has ended"
echo "$(grep -c known_ out.txt) places named of a program that had ended"
