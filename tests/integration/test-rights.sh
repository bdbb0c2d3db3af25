#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Tests each mode of a namespace, for its owner, members of its group, others and root. Compares the
# daemon's decisions, and the access rights of the registry's files, with the mode. Only root may
# use pins. A ring's descriptor permits only reading; so does that of a copy, which users get who
# may read but not hold the rings.
. "$(dirname "$0")/../lib.sh"

OWNER=61001
GROUP=61100
# shellcheck disable=SC2207
MODES=($(length "0000 0200 0600 0604 0640 0644 0660" "0000 0200 0400 0440 0600 0604 0620 0640 0644 0660 0666"))
SYSCTL=/proc/sys/kernel/unprivileged_bpf_disabled

sysctl_before=$(cat $SYSCTL 2>/dev/null || true)

# as WHO CMD…: becomes that; for subshells.
as() {
	local who=$1
	shift
	if [ "$1" = perfctl ]; then
		shift
		set -- "${PERFCTL[@]}" "$@"
	fi
	case $who in
	root) exec "$@" ;;
	owner) exec setpriv --reuid=$OWNER --regid=61001 --clear-groups -- "$@" ;;
	member) exec setpriv --reuid=61002 --regid=61002 --groups=61050,$GROUP,61200 -- "$@" ;;
	primary) exec setpriv --reuid=61003 --regid=$GROUP --clear-groups -- "$@" ;;
	other) exec setpriv --reuid=61004 --regid=61004 --groups=61050 -- "$@" ;;
	esac
}

# may WHO RIGHT MODE: the first matching class decides, as for a file.
may() {
	local bit=$2 shift
	case $1 in
	root) return 0 ;;
	owner) shift=6 ;;
	member | primary) shift=3 ;;
	other) shift=0 ;;
	esac
	[ $((8#$3 >> shift & bit)) -ne 0 ]
}

# may_file WHO MODE: the text files belong to the daemon's user, so that the namespace's owner reads
# them as a member of its group or as one of the others; perfctl shows an owner the same.
may_file() {
	local who=$1
	[ "$who" = owner ] && who=other
	may "$who" 4 "$2"
}

checked=0 refused=0

# expect WHETHER WHO WHAT CMD…: exit 0, or 4: not allowed.
expect() {
	local want=$1 got=0
	OUT=$(as "$2" "${@:4}" 2>&1) || got=$?
	[ "$got" -eq "$want" ] || fail "$2, mode $mode, $3: expected exit $want, got $got: $OUT"
	checked=$((checked + 1))
	[ "$want" -eq 0 ] || refused=$((refused + 1))
}

# code N CMD…: CODE is 0 or N, depending on its success.
code() {
	CODE=0
	"${@:2}" || CODE=$1
}

namespaces() {
	local mode
	for mode in "${MODES[@]}"; do
		printf '[namespace m%s]\nOwner=%s\nGroup=%s\nMode=%s\n' "$mode" $OWNER $GROUP "$mode"
	done
}

chmod 0711 "$SCRATCH"
write_conf "$(namespaces)"
start_daemon
# A processor has only a few registers for breakpoints, and test-kinds takes all of them.
alone_with breakpoints
for mode in "${MODES[@]}"; do
	perfctl create "m$mode/e" -e sched:sched_switch -m 4K >/dev/null
done

# ── what the daemon does ─────────────────────────────────────────────────────────────────

for who in root owner member primary other; do
	readable=()
	for mode in "${MODES[@]}"; do
		ns=m$mode
		code 4 may $who 4 "$mode"
		r=$CODE
		code 4 may $who 2 "$mode"
		w=$CODE
		[ "$r" -eq 0 ] && readable+=("$ns")
		expect "$r" $who list perfctl list "$ns"
		expect "$r" $who show perfctl show "$ns/e"
		expect "$r" $who reopen perfctl reopen "$ns/e" -n 1
		expect "$w" $who create perfctl create "$ns/made" -e sched:sched_switch -m 4K
		if [ "$w" -eq 0 ]; then
			expect 0 $who delete perfctl delete "$ns/made"
		else
			expect 4 $who delete perfctl delete "$ns/e"
		fi
		if full || [ "$mode" = 0640 ] || [ "$mode" = 0660 ]; then
			expect "$w" $who change perfctl change "$ns/e" --max-rate 1000000
			expect "$w" $who pause perfctl pause "$ns/e"
			expect "$w" $who resume perfctl resume "$ns/"
		fi
		# A user who may not read does not learn which names exist, either.
		if [ "$r" -ne 0 ]; then
			expect 4 $who "show of what is not there" perfctl show "$ns/nothing"
		else
			expect 3 $who "show of what is not there" perfctl show "$ns/nothing"
		fi
	done
	expect_eq "$(as $who perfctl list --json | jq -r '.[].namespace' | sort | xargs)" "${readable[*]}" "what $who is shown"
	expect_eq "$(as $who perfctl limits --json | jq -r '.[].namespace // empty' | sort | xargs)" "${readable[*]}" \
		"whose limits $who is shown"
done
echo "the daemon: $checked requests by 5 people in ${#MODES[@]} modes, $refused of them refused, all as the modes say"

# ── what the registry's files let through ────────────────────────────────────────────────

checked=0 refused=0
for who in root owner member primary other; do
	for mode in "${MODES[@]}"; do
		dir=$REGISTRY/m$mode
		code 1 may_file $who "$mode"
		f=$CODE
		expect "$f" $who "cat info" cat "$dir/e/info"
		expect "$f" $who "cat stat" cat "$dir/e/stat"
		code 2 may_file $who "$mode"
		expect "$CODE" $who ls ls "$dir" "$dir/e/"
		# Nor does who counts up ids find more than by names.
		by_id=$(realpath "$dir/e")
		expect "$f" $who "cat info by its id" cat "$by_id/info"
		code 2 may_file $who "$mode"
		expect "$CODE" $who "ls by its id" ls "$by_id"
		[ $who = root ] && continue
		expect 0 $who "the pins" "$BIN/pin-get" "$dir"/e/*
		expect 1 $who "mkdir" mkdir "$dir/e/x" "$dir/x"
		expect 1 $who "mv" mv "$dir/e" "$dir/x"
	done
	[ $who = root ] && continue
	expect 2 $who "ls of ids" ls "$REGISTRY/by-id"
	expect 1 $who "mkdir among ids" mkdir "$REGISTRY/by-id/1"
	expect 1 $who "mkdir" mkdir "$REGISTRY/x"
	expect 1 $who "connecting to the engine" "$BIN/stranger" "$RUN/engine" silent 1
done
echo "the registry: $checked attempts, $refused refused"

# ── rings, by name and in hand ───────────────────────────────────────────────────────────

for who in "owner m0600" "member m0640" "other m0644" "root m0000"; do
	mode=${who#* m}
	expect 0 "${who% *}" "attacks on what it gets" perfctl reopen "${who#* }/e" -- "$BIN/ring-attack"
	expect_match "$OUT" 'every attempt was refused' "the attacks of ${who% *}"
done
echo "rings: $(grep -c 'E[A-Z]' <<<"$OUT") attempts on a live one, even by root, all refused"

# ── who gets the rings, and who copies ───────────────────────────────────────────────────

live() {
	local who
	for who in owner group readers nobody; do
		printf '[namespace live-%s]\nOwner=%s\nGroup=%s\nMode=0644\nLive=%s\n' $who $OWNER $GROUP $who
	done
}

# The kind of the descriptors that a command inherits.
cat >"$BIN/what" <<'END'
#!/bin/bash
for fd in $(seq 3 $((LISTEN_FDS + 2))); do
	case $(readlink "/proc/$$/fd/$fd") in
	anon_inode:bpf-map) echo live ;;
	/memfd:*) echo copies ;;
	*) echo nothing known ;;
	esac
done | sort -u
END
chmod 0755 "$BIN/what"

# reads WHO LIVE: what the setting allows; only root gets rings that BPF programs of its own could
# write.
reads() {
	case $1:$2 in
	root:*) echo live ;;
	owner:owner | owner:group | owner:readers | member:group | member:readers | primary:group | \
		primary:readers | other:readers)
		if [ "$sysctl_before" = 0 ]; then echo copies; else echo live; fi
		;;
	*) echo copies ;;
	esac
}

stop_daemon
write_conf "$(namespaces)
$(live)"
start_daemon
checked=0
for setting in owner group readers nobody; do
	mode="0644, Live=$setting"
	event=live-$setting/e
	perfctl create $event -e raw_syscalls:sys_enter -m 64K >/dev/null
	for who in root owner member primary other; do
		want=$(reads $who $setting)
		expect_eq "$(as $who perfctl show $event --json | jq -r .reads)" "$want" "what $who is told to get, $mode"
		expect 0 $who "reopening" perfctl reopen $event -- "$BIN/what"
		expect_eq "$OUT" "$want" "what $who gets, $mode"
		expect 0 $who "asking for copies" perfctl reopen --copy $event -- "$BIN/what"
		expect_eq "$OUT" copies "what $who gets of --copy, $mode"
		if full || [ $who = other ]; then
			expect 0 $who "attacks on what it gets" perfctl reopen --copy $event -- "$BIN/ring-attack"
			expect_match "$OUT" 'every attempt was refused' "the attacks of $who"
		fi
		# Live or not, a reader gets the newest records.
		expect 0 $who "reading" perfctl reopen $event -n 5 --json
		expect_eq "$(grep -c '"event": *"raw_syscalls:sys_enter"' <<<"$OUT")" 5 "records that $who reads, $mode"
	done
	perfctl delete $event >/dev/null
done
not_charged() {
	[ "$(perfctl limits --json | jq '.[0].copies + .[0].memory')" = "$(perfctl list --json | jq '[.[].memory] | add')" ]
}
wait_until 20 not_charged || fail "released copies are charged: $(perfctl limits)"
echo "copies: $checked requests by 5 people, live or copies as Live= says, and no copy is left"

# ── who may make a namespace ─────────────────────────────────────────────────────────────

mode=-
for makers in root group all; do
	stop_daemon
	write_conf "CreateNamespaces=$makers
$(namespaces)"
	sed -i "s/^Group=$DAEMON_GID/Group=$GROUP/" "$CONF"
	start_daemon
	code 4 test $makers != root
	expect "$CODE" member "making a namespace" perfctl create mine/e -e sched:sched_switch -m 4K
	code 4 test $makers = all
	expect "$CODE" other "making a namespace" perfctl create theirs/e -e sched:sched_switch -m 4K
	if [ $makers != root ]; then
		# It belongs to its creator: the group reads, others get nothing.
		expect 0 primary "reading what a member made" perfctl show mine/e
		expect 0 primary "cat of what a member made" cat "$REGISTRY/mine/e/info"
		expect 4 primary "deleting what a member made" perfctl delete mine/e
		expect 4 other "reading what a member made" perfctl show mine/e
		expect 0 member "deleting what is one's own" perfctl delete mine/e
	fi
	[ $makers != all ] || expect 0 other "deleting what is one's own" perfctl delete theirs/e
done

# ── who may set probes, and record user stacks ───────────────────────────────────────────

# A user who may create events may still not create probes or breakpoints, or record stacks. The daemon refuses the
# others before it looks for the file, so a file that does not exist makes no difference to them.
libc=$(ldd "$BIN/perfctl" | sed -nE 's/.*libc\.so[^ ]* => ([^ ]+).*/\1/p')
for probers in root group all; do
	stop_daemon
	write_conf "CreateNamespaces=all
Probes=$probers
UserStacks=$probers
$(namespaces)"
	sed -i "s/^Group=$DAEMON_GID/Group=$GROUP/" "$CONF"
	start_daemon
	for who in root member other; do
		code 4 test $who = root -o $probers = all -o $who = member -a $probers = group
		may=$CODE
		for text in "uprobe:$libc:malloc" mem:0x1000:w "sched:sched_switch,mem:0x1000:w"; do
			if [ "$may" -eq 0 ]; then
				expect 0 $who "probing $text, Probes=$probers" perfctl create $who/probe -e "$text" -m 4K
				expect 0 $who "deleting it" perfctl delete $who/probe
			else
				expect 4 $who "probing $text, Probes=$probers" perfctl create $who/probe -e "$text" -m 4K
				expect_match "$OUT" "user 6100[24] may not set.* Probes= in perfpersistd.conf" "the sentence"
			fi
		done
		expect "$((may ? 4 : 3))" $who "probing what is not there" \
			perfctl create $who/probe -e uprobe:/no/such/file:f
		expect "$may" $who "recording stacks, UserStacks=$probers" perfctl create $who/stacks -e cpu-clock --call-graph dwarf -m 16K
		[ "$may" -ne 0 ] || expect 0 $who "deleting it" perfctl delete $who/stacks
	done
	# A second name for root's event gives no access, either.
	perfctl create m0644/stacks -e cpu-clock --call-graph dwarf -m 16K >/dev/null 2>&1
	code 4 test $probers = all
	expect "$CODE" other "a name for root's stacks" \
		perfctl create other/stacks -e cpu-clock --call-graph dwarf -m 16K --share
	perfctl delete m0644/stacks >/dev/null
	perfctl delete other/stacks >/dev/null 2>&1 || true
	perfctl create m0644/probe -e mem:0x1000:w -m 4K >/dev/null
	code 4 test $probers = all
	expect "$CODE" other "a name for root's probe" \
		perfctl create other/probe -e mem:0x1000:w -m 4K --share
	perfctl delete m0644/probe >/dev/null
	perfctl delete other/probe >/dev/null 2>&1 || true
done
echo "probes and breakpoints, and user stacks: by root, by the group, by all, as Probes= and UserStacks= say"

# ── the daemon's own user ────────────────────────────────────────────────────────────────

# In the foreground, engine and dumper obey no other process of that user, and none can look into
# them.
perfctl create m0644/last -e sched:sched_switch -m 4K >/dev/null
for socket in engine dumper; do
	expect_ok as_daemon perl -MSocket -e '
		socket(my $s, AF_UNIX, SOCK_SEQPACKET, 0) or die;
		connect($s, sockaddr_un($ARGV[0])) or die;
		alarm 20;
		exit(sysread($s, my $b, 1) ? 1 : 0)' "$RUN/$socket"
done
grep -qi 'a process that is not the broker was turned away' "$LOG" || fail "the engine accepted a stranger"
perfctl delete m0644/last >/dev/null
! grep -q 'The engine is gone' "$LOG" || fail "the broker lost its engine"
perfctl create m0644/last -e sched:sched_switch -m 4K >/dev/null
wait_until 20 kept
for pid in "$(broker_pid)" "$(dumper_pid)" "$(keeper_pid)"; do
	expect_eq "$(stat -c %u "/proc/$pid/environ")" 0 "who may look into $(<"/proc/$pid/comm")"
	! as_daemon cat "/proc/$pid/environ" >/dev/null 2>&1 || fail "the daemon's user looks into $pid"
done
perfctl delete m0644/last >/dev/null
echo "another process of the daemon's user: not obeyed, and it cannot look into our processes"

expect_eq "$(cat $SYSCTL 2>/dev/null || true)" "$sysctl_before" "kernel.unprivileged_bpf_disabled"
echo "kernel.unprivileged_bpf_disabled is ${sysctl_before:-not there}, as before"
