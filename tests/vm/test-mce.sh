#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2
# vm-kernels: 6.1 6.12
#
# Corrected machine checks, injected from within and from without while no client is there, are
# read afterwards from mce/mce_record, the event that is shipped: all of them, none twice, and
# every register as rasdaemon, which ran beside, logged it of the same injections.
. "$(dirname "$0")/lib.sh"

export DEBIAN_FRONTEND=noninteractive
scratch=/run/mce
mkdir -p $scratch

# What rasdaemon keeps of each, in its own order.
fields="mcgcap,mcgstatus,status,addr,misc,ip,tsc,walltime,cpu,cpuid,apicid,socketid,cs,bank,cpuvendor"

# ── two who record ───────────────────────────────────────────────────────────────────────

install_packages perfpersist
expect_eq "$(perfctl show mce/mce_record --json | jq -r '.configured, .records' | xargs)" "true 0"

# Made for rasdaemon, whose two processes may otherwise fail at that together. It is woken when its
# buffer is half full, which may be never.
ras=/sys/kernel/tracing/instances/rasdaemon
mkdir $ras
echo 0 >$ras/buffer_percent
expect_ok systemctl start rasdaemon
wait_until 60 grep -q 1 $ras/events/mce/mce_record/enable
# listens: its readers have the buffers open.
listens() {
	journalctl --unit rasdaemon --output cat | grep -q 'Listening to events for cpus'
}
wait_until 60 listens || fail "rasdaemon does not listen: $(journalctl --unit rasdaemon --output cat)"

# ── machine checks ───────────────────────────────────────────────────────────────────────

injected=0

# inject STATUS ADDR MISC CPU BANK: by the kernel, which then reports what no hardware has said.
inject() {
	(
		cd /sys/kernel/debug/mce-inject
		echo sw >flags
		echo "$1" >status
		echo "$2" >addr
		echo "$3" >misc
		echo "$4" >cpu
		echo "$5" >bank
	)
	injected=$((injected + 1))
}

# inject_below STATUS ADDR MISC CPU BANK: into the registers of the emulated CPU, where the kernel
# finds it when it looks.
inject_below() {
	expect_eq "$(monitor mce "$4" "$5" "$1" 0x0 "$2" "$3")" "" "what the monitor says"
	injected=$((injected + 1))
}

# seen_by_kernel N: its own log, which neither of both has a part in.
seen_by_kernel() {
	[ "$(dmesg | grep -c 'Hardware Error.*Machine Check: ')" -ge "$1" ]
}

all_seen() {
	wait_until 60 seen_by_kernel $injected || fail "the kernel has told of no $injected machine checks: $(dmesg | tail -n 20)"
}

modprobe mce-inject
# A read of memory, a scrub, a bus error, a TLB error, and one that overflowed.
inject 0x9c00000000000151 0x12345000 0x8c 1 3
inject 0x8c00004000010091 0x2345680 0x86 0 7
inject 0x8c000040000800c1 0x7ffffffffff040 0x86 1 0
inject 0x9000000000000e0b 0x0 0x0 0 5
inject 0x8400000000000014 0xffffffff81000000 0x0 1 1
all_seen
for ((i = 0; i < 40; i++)); do
	inject "$(printf '0x%x' $((0xdc00008000010090 + i % 8)))" "$(printf '0x%x000' $((0x1000 + i)))" 0x8c $((i % 2)) $((i % 4))
	all_seen
done

echo 1 >/sys/devices/system/machinecheck/machinecheck0/check_interval
inject_below 0x9c00000000000151 0x777000 0x8c 0 2
all_seen
inject_below 0x9c00000000000135 0x999040 0x86 1 4
all_seen
echo 300 >/sys/devices/system/machinecheck/machinecheck0/check_interval

# ── what they say ────────────────────────────────────────────────────────────────────────

database=/var/lib/rasdaemon/ras-mc_event.db

logged() {
	perl -MDBI -e '
		my ($file, $query) = @ARGV;
		my $db = DBI->connect("dbi:SQLite:dbname=$file", "", "", { RaiseError => 1 });
		print join("|", map { sprintf "%x", $_ } @$_), "\n" for @{$db->selectall_arrayref($query)};
	' $database "select $fields from mce_record" | sort
}

logged_all() {
	[ "$(logged | wc -l)" -ge $injected ]
}

# jq knows no numbers of 64 bits, and hands them on as they are only if it has no work with them.
recorded() {
	perfctl reopen mce/mce_record -n all --json 2>/dev/null | perl -ne '
		BEGIN { @names = split /,/, shift @ARGV }
		s/.*"fields"://;
		my %v = /"(\w+)":(\d+)/g;
		print join("|", map { sprintf "%x", $v{$_} } @names), "\n";
	' $fields | sort
}

wait_until 60 logged_all || fail "rasdaemon has logged $(logged | wc -l) of $injected: $(journalctl --unit rasdaemon | tail -n 5)"
logged >$scratch/logged
recorded >$scratch/recorded
expect_eq "$(wc -l <$scratch/logged)" $injected "machine checks that rasdaemon has"
expect_eq "$(wc -l <$scratch/recorded)" $injected "machine checks that we have"
expect_eq "$(sort -u $scratch/recorded | wc -l)" $injected "different ones"
diff $scratch/logged $scratch/recorded || fail "rasdaemon has logged others ($fields)"

# As people read it; kernels print it in different ways.
perfctl reopen mce/mce_record -n all >$scratch/text 2>/dev/null
for what in "CPU: 1, .*MC3: 9c00000000000151, .* 0000000012345000.*000000000000008c" \
	"CPU: 0, .*MC2: 9c00000000000151, .* 0000000000777000.*000000000000008c"; do
	grep -q -e "$what" $scratch/text || fail "no line as '$what': $(tail -n 3 $scratch/text)"
done
expect_eq "$(perfctl show mce/mce_record --json | jq -r '.records, .limited' | xargs)" "$injected 0"
echo "$injected machine checks, each with $(tr ',' '\n' <<<$fields | wc -l) fields as rasdaemon has them, and in $(sort -u -t '|' -k 14,14 $scratch/recorded | wc -l) banks"
