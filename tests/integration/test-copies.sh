#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Copies: a user who may read an event but not hold its live rings gets sealed copies of them. No
# attempt to write to either succeeds. Copies decode to the same records as the rings, at rest and
# under load, with and without a catalog, for large and small rings. Nothing that their reader does
# costs a recorder a record. The test also measures and prints the cost of a live reader.
. "$(dirname "$0")/../lib.sh"

OWNER=61001
GROUP=61100
SYSCTL=/proc/sys/kernel/unprivileged_bpf_disabled

sysctl_before=$(cat $SYSCTL 2>/dev/null || true)

# as WHO CMD…
as() {
	local who=$1
	shift
	if [ "$1" = perfctl ]; then
		shift
		set -- "${PERFCTL[@]}" "$@"
	fi
	case $who in
	root) "$@" ;;
	owner) setpriv --reuid=$OWNER --regid=$OWNER --clear-groups -- "$@" ;;
	member) setpriv --reuid=61002 --regid=61002 --groups=$GROUP -- "$@" ;;
	other) as_user "$@" ;;
	esac
}

WHO=(root owner member other)
# The users among them that get live rings.
declare -A LIVE=([nobody]="root" [owner]="root owner" [group]="root owner member" [readers]="root owner member other")

configuration() {
	local live
	printf 'MaxMemory=2G\nMaxCopies=1G\n'
	for live in "${!LIVE[@]}"; do
		printf '[namespace %s]\nOwner=%s\nGroup=%s\nMode=0644\nLive=%s\n' "$live" $OWNER $GROUP "$live"
	done
}

# expect_reads NAMESPACE WHO…: these get live rings, the others copies; and `show` says so.
expect_reads() {
	local ns=$1 who want
	shift
	for who in "${WHO[@]}"; do
		want=copies
		[[ " $* " != *" $who "* ]] || want=live
		expect_ok as "$who" perfctl show "$ns/e" --json
		expect_eq "$(jq -r .reads <<<"$OUT")" $want "what $who is shown of $ns/e"
		expect_ok as "$who" perfctl show "$ns/e"
		if [ $want = live ]; then
			expect_match "$OUT" 'read as +live buffers' "what $who is shown of $ns/e"
		else
			expect_match "$OUT" 'read as +copies that the daemon makes' "what $who is shown of $ns/e"
		fi
		# A copy is a file with seals, a live ring a BPF map.
		expect_ok as "$who" perfctl reopen "$ns/e" -- sh -c 'readlink /proc/self/fd/3'
		if [ $want = live ]; then
			expect_match "$OUT" 'anon_inode:bpf-map' "what $who got of $ns/e"
		else
			expect_match "$OUT" '/memfd:perfpersist-copy' "what $who got of $ns/e"
		fi
		expect_ok as "$who" perfctl reopen --copy "$ns/e" -- sh -c 'readlink /proc/self/fd/3'
		expect_match "$OUT" '/memfd:perfpersist-copy' "what $who got of $ns/e with --copy"
	done
}

create_all() {
	local live
	for live in "${!LIVE[@]}"; do
		perfctl create "$live/e" -e raw_syscalls:sys_enter -m 64K >/dev/null
	done
}

delete_all() {
	local live
	for live in "${!LIVE[@]}"; do
		perfctl delete "$live/e" >/dev/null
	done
}

# ── where anybody may load programs ──────────────────────────────────────────────────────

# The daemon sees another file instead of the kernel's sysctl, in a mount namespace of its own;
# nothing changes for other processes. Its registry is not visible from here, but its socket is.
echo 0 >"$SCRATCH/zero"
if unshare --mount sh -c "mount --bind $SCRATCH/zero $SYSCTL" 2>/dev/null; then
	real=$BUILD
	BUILD=$SCRATCH/wrapped
	mkdir "$BUILD"
	cat >"$BUILD/perfpersistd" <<-END
		#!/bin/sh
		exec unshare --mount --propagation private sh -c \\
			'mount --bind "$SCRATCH/zero" $SYSCTL && exec "$real/perfpersistd" "\$@"' sh "\$@"
	END
	chmod 0755 "$BUILD/perfpersistd"
	write_conf "$(configuration)"
	start_daemon
	create_all
	if full; then
		for live in "${!LIVE[@]}"; do
			expect_reads "$live" root
		done
	else
		expect_reads readers root
	fi
	delete_all
	stop_daemon
	BUILD=$real
	echo "where unprivileged_bpf_disabled is 0 (for the daemon alone): rings for root, copies for all others"
else
	echo "SKIP unprivileged_bpf_disabled as 0: nothing can be mounted over it here; the unit tests have it"
fi

# ── who gets what ────────────────────────────────────────────────────────────────────────

write_conf "$(configuration)"
start_daemon
create_all
checked=(nobody group)
full && checked=("${!LIVE[@]}")
for live in "${checked[@]}"; do
	# shellcheck disable=SC2086
	if [ "$sysctl_before" = 0 ]; then
		expect_reads "$live" root
	else
		expect_reads "$live" ${LIVE[$live]}
	fi
done
summary=$(printf ', %s' "${checked[@]}")
echo "Live=${summary#, }: users get rings or copies as it says, and as show says"

# ── attacks ──────────────────────────────────────────────────────────────────────────────

# attack WHAT WHO OPTION… NAMESPACE/EVENT
attack() {
	local what=$1 who=$2
	shift 2
	expect_ok as "$who" perfctl reopen "$@" -- "$BIN/ring-attack"
	expect_match "$OUT" "^$what of " "what $who attacks"
	expect_match "$OUT" 'every attempt was refused' "the attacks of $who"
}

for who in other member owner; do
	attack copy $who nobody/e
done
attack copy root --copy nobody/e
echo "copies: $(grep -c ' E[A-Z]*$' <<<"$OUT") attempts to change them, even by root, all refused"
attack ring root readers/e
echo "rings: $(grep -c ' E[A-Z]*$' <<<"$OUT") attempts to change them, even by root, all refused"
# docs/read.md shows these lines.
told() {
	sed -nE 's/^ +([a-z].*[^ ]) +(E[A-Z]+|unchanged)$/\1 \2/p' | awk '!seen[$0]++'
}
if [ "$sysctl_before" != 0 ]; then
	attack ring other readers/e
	expect_eq "$(told <<<"$OUT")" "$(sed -n '/ -- ring-attack$/,/every attempt/p' "$ROOT/docs/read.md" | told)" "what docs/read.md shows"
fi
delete_all

# ── what is in them ──────────────────────────────────────────────────────────────────────

# check NAME COUNT OPTION…: under load, then at rest, and as perfctl prints it.
check() {
	local name=$1 count=$2
	shift 2
	perfctl create "$name" "$@" --comm pp-copies >/dev/null
	"$BIN/copy-check" "$INSTANCE" "$name" load "$count"
	perfctl pause "$name" >/dev/null
	"$BIN/copy-check" "$INSTANCE" "$name" rest
	perfctl reopen "$name" -n 2000 >"$SCRATCH/live" 2>/dev/null
	as other perfctl reopen "$name" -n 2000 >"$SCRATCH/copy" 2>/dev/null
	[ -s "$SCRATCH/live" ] || fail "perfctl prints nothing of $name"
	cmp "$SCRATCH/live" "$SCRATCH/copy" || fail "perfctl prints other records of copies than of rings"
	perfctl delete "$name" >/dev/null
}

if full; then
	for size in 4K 64K; do
		check nobody/one 400 -e raw_syscalls:sys_enter -m $size
		check nobody/generic 400 -e raw_syscalls:sys_enter -m $size --generic
		check nobody/several 400 -e 'raw_syscalls:*,cpu-clock' -c 100000 -m $size
	done
	check nobody/one 30 -e raw_syscalls:sys_enter -m 8M
	check nobody/several 30 -e 'raw_syscalls:*,cpu-clock' -c 100000 -m 8M
else
	check nobody/one 60 -e raw_syscalls:sys_enter -m 4K
	check nobody/generic 60 -e raw_syscalls:sys_enter -m 64K --generic
	check nobody/several 60 -e 'raw_syscalls:*,cpu-clock' -c 100000 -m 64K
fi

# ── what reading costs ───────────────────────────────────────────────────────────────────

perfctl create nobody/cpus -e raw_syscalls:sys_enter -m 4K >/dev/null
cpu=$(sed -nE 's/^cpu([0-9]+) .*/\1/p' "$REGISTRY/nobody/cpus/stat" | tail -n 1)
perfctl delete nobody/cpus >/dev/null
echo "the cost of readers on CPU $cpu to the recorders there:"
if [ "$sysctl_before" = 0 ]; then
	echo "SKIP the cost of live readers: kernel.unprivileged_bpf_disabled is 0, and only root is one"
else
	"$BIN/reader-cost" "$INSTANCE" "$cpu" nobody readers "$(length short full)"
fi

expect_eq "$(cat $SYSCTL 2>/dev/null || true)" "$sysctl_before" "kernel.unprivileged_bpf_disabled"
