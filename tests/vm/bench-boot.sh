#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# vm: --smp 2 --timeout 120
#
# Measures the cost to a boot of perfpersistd and all shipped events: `make bench-boot`. Boots with
# and without take turns, as ABBA, so that other load on the machine affects both alike. A missed
# bar is shown but is not a failure: machines differ, and neighbours are noisy.
. "$(dirname "$0")/lib.sh"

blocks=4 # of two boots with and two without
bar=5    # percent
times=/var/tmp/times

# arm PHASE: with or without.
arm() {
	case $((($1 - 2) % 4)) in
	0 | 3) echo with ;;
	*) echo without ;;
	esac
}

# for_next: configures the next boot.
for_next() {
	case $(arm $((PHASE + 1))) in
	with) expect_ok systemctl enable perfpersistd ;;
	without) expect_ok systemctl disable perfpersistd ;;
	esac
}

# is_as_it_should_be ARM: a boot that did something else must not count.
is_as_it_should_be() {
	case $1 in
	with) [ "$(perfctl list --direct --json | jq length)" -ge 4 ] ;;
	without) ! systemctl --quiet is-active perfpersistd.service perfpersistd.socket ;;
	esac
}

# of_unit UNIT PROPERTY, or of_manager PROPERTY: a time in µs of CLOCK_MONOTONIC.
of_unit() {
	systemctl show --value -p "$2" "$1"
}

of_manager() {
	systemctl show --value -p "$1"
}

# Like `systemd-analyze time`: the kernel's time begins at 0.
measure() {
	local began end

	began=$(of_manager UserspaceTimestampMonotonic)
	end=$(of_manager FinishTimestampMonotonic)
	echo "$1 $((end - began)) $end $(of_unit multi-user.target ActiveEnterTimestampMonotonic)"
}

# column ARM N: sorted.
column() {
	awk -v arm="$1" -v n="$2" '$1 == arm { print $n }' $times | sort -n
}

# tell WHAT N: medians of that column, minimum and maximum, and the difference.
tell() {
	paste -d ' ' <(column without "$2") <(column with "$2") | awk -v what="$1" '
		{ a[NR] = $1 / 1e6; b[NR] = $2 / 1e6 }
		function median(v) { return (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }
		function all(v) { return sprintf("%6.2f (%.2f to %.2f)", median(v), v[1], v[NR]) }
		END {
			more = 100 * (median(b) / median(a) - 1)
			printf "%-26s %-24s %-24s %+6.1f %%\n", what, all(a), all(b), more
		}'
}

if [ "$PHASE" -eq 1 ]; then
	install_packages perfpersist
	for_next
	reboot
fi

systemctl is-system-running --wait >/dev/null || fail "the boot is not sound: $(systemctl --failed --plain --no-legend)"
now=$(arm "$PHASE")
is_as_it_should_be "$now" || fail "boot $PHASE is no boot $now it: $(systemctl status perfpersistd)"
measure "$now" >>$times
systemd-analyze time | sed -n "s/^/$now: /; 1p"
[ "$now" = without ] || systemd-analyze blame --no-pager | grep perfpersist | xargs
if [ "$PHASE" -le $((blocks * 4)) ]; then
	for_next
	reboot
fi

echo
printf '%-26s %-24s %-24s %s\n' "seconds, median of $((blocks * 2))" "without perfpersistd" "with it" "more"
tell "userspace" 2
tell "kernel and userspace" 3
tell "until multi-user.target" 4
echo "The bar is $bar %."
