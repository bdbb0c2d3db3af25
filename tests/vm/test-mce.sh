#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2
#
# The test injects corrected machine checks from inside and outside while there is no client, and
# reads them afterwards from the shipped event mce/mce_record: all of them, none twice, and every
# register equal to rasdaemon's log of the same injections.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/recorder.sh"

export DEBIAN_FRONTEND=noninteractive
scratch=/run/mce
mkdir -p $scratch

# The fields that rasdaemon keeps for each, in its own order.
fields="mcgcap,mcgstatus,status,addr,misc,ip,tsc,walltime,cpu,cpuid,apicid,socketid,cs,bank,cpuvendor"

# ── two who record ───────────────────────────────────────────────────────────────────────

install_packages perfpersist
expect_eq "$(perfctl show mce/mce_record --json | jq -r '.configured, .records' | xargs)" "true 0"

# Made in advance, because rasdaemon's two processes may otherwise both fail at it. The kernel wakes
# rasdaemon when its buffer is half full, which may never happen.
ras=/sys/kernel/tracing/instances/rasdaemon
mkdir $ras
echo 0 >$ras/buffer_percent
expect_ok systemctl start rasdaemon
wait_until 60 grep -q 1 $ras/events/mce/mce_record/enable
# listens: its readers have opened the buffers.
listens() {
	grep -q 'Listening to events for cpus' < <(journalctl --unit rasdaemon --output cat)
}
wait_until 60 listens || fail "rasdaemon does not listen: $(journalctl --unit rasdaemon --output cat)"

# ── machine checks ───────────────────────────────────────────────────────────────────────

modprobe mce-inject
inject_kinds
all_seen
for ((i = 0; i < 40; i++)); do
	inject "$(printf '0x%x' $((0xdc00008000010090 + i % 8)))" "$(printf '0x%x000' $((0x1000 + i)))" 0x8c $((i % 2)) $((i % 4))
	all_seen
done

check_interval 1
inject_below 0x9c00000000000151 0x777000 0x8c 0 2
all_seen
inject_below 0x9c00000000000135 0x999040 0x86 1 4
all_seen
check_interval 300

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
	[ "$(logged | wc -l)" -ge "$injected" ]
}

wait_until 60 logged_all || fail "rasdaemon has logged $(logged | wc -l) of $injected: $(journalctl --unit rasdaemon | tail -n 5)"
logged >$scratch/logged
recorded_checks $fields >$scratch/recorded
expect_eq "$(wc -l <$scratch/logged)" "$injected" "machine checks that rasdaemon has"
expect_eq "$(wc -l <$scratch/recorded)" "$injected" "machine checks that we have"
expect_eq "$(sort -u $scratch/recorded | wc -l)" "$injected" "different ones"
diff $scratch/logged $scratch/recorded || fail "rasdaemon has logged others ($fields)"

# As users read it; kernels print it in different ways.
perfctl reopen mce/mce_record -n all >$scratch/text 2>/dev/null
for what in "CPU: 1, .*MC3: 9c00000000000151, .* 0000000012345000.*000000000000008c" \
	"CPU: 0, .*MC2: 9c00000000000151, .* 0000000000777000.*000000000000008c"; do
	grep -q -e "$what" $scratch/text || fail "no line as '$what': $(tail -n 3 $scratch/text)"
done
expect_eq "$(perfctl show mce/mce_record --json | jq -r '.records, .limited' | xargs)" "$injected 0"
echo "$injected machine checks, each with $(tr ',' '\n' <<<$fields | wc -l) fields as rasdaemon has them, and in $(sort -u -t '|' -k 14,14 $scratch/recorded | wc -l) banks"
