#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Completion offers the existing events to users who may read them, whether the daemon runs or not,
# and starts no daemon. The test drives bash through the completion function and, on a terminal,
# through readline itself, with and without the package bash-completion; zsh on a terminal.
. "$(dirname "$0")/../lib.sh"

install -m 0644 "$ROOT/client/perfctl/completion/perfctl.bash" "$SCRATCH/perfctl.bash"
install -m 0644 "$ROOT/tests/integration/completion.bash" "$SCRATCH/ask.bash"
I=$INSTANCE

# offers LINE WHAT: WHAT is the complete list, in order, separated by blanks.
offers() {
	OUT=$("${WHO[@]}" bash "$SCRATCH/ask.bash" "$SCRATCH/perfctl.bash" "$BIN/perfctl" "$1" "${BREAKS[@]}" | paste -sd ' ')
	expect_eq "$OUT" "$2" "what is offered to '${WHO[*]-root}' for '$1'"
}
# offers_also LINE WHAT: WHAT, and anything else that begins like the line's last word.
offers_also() {
	local word
	OUT=$(bash "$SCRATCH/ask.bash" "$SCRATCH/perfctl.bash" "$BIN/perfctl" "$1")
	grep -qxF "$2" <<<"$OUT" || fail "'$2' is not offered for '$1': $OUT"
	while read -r word; do
		[[ $word == "${1##* }"* ]] || fail "'$word' is offered for '$1'"
	done <<<"$OUT"
}
WHO=() BREAKS=()

online_cpus() {
	tr , '\n' </sys/devices/system/cpu/online | while IFS=- read -r first last; do
		seq "$first" "${last:-$first}"
	done
}

start_daemon
perfctl create default/switches -e sched:sched_switch >/dev/null
perfctl create web/profile -e cpu-clock -F 99 >/dev/null
perfctl create web/second -e cpu-clock -F 99 --share >/dev/null
id=$(perfctl show default/switches --json | jq -r .id)

echo "names"
offers "perfctl --instance $I show " "default/ default/switches web/ web/profile web/second"
offers "perfctl --instance=$I show s" "switches"
offers "perfctl show --instance $I web/p" "web/profile"
offers "perfctl --json --instance $I -d d" "default/switches"
offers "perfctl --instance $I delete web/profile web/s" "web/second"
offers "perfctl --instance $I reopen w" "web/ web/profile web/second"
offers "perfctl --instance $I reopen switches -n " "all"
offers "perfctl --instance $I reopen switches -- logna" "logname"
offers "perfctl --instance $I record switches -- logna" "logname"
offers "perfctl --instance $I pause w" "web/ web/profile web/second"
offers "perfctl --instance $I create w" "web/"
offers "perfctl --instance $I create -n " "default web"
offers "perfctl --instance $I list w" "web/ web/profile web/second"
offers "perfctl events cpu-cl" "cpu-clock"
offers "perfctl --instance $I show --id " "$(perfctl list --json | jq -r '.[].id' | sort | xargs)"
offers "perfctl --instance $I show --id ${id:0:6}" "$(perfctl list --json | jq -r '.[].id' | sort | xargs)"
# What triggers' verbs take is a trigger.
perfctl trigger add web/slow --on sched:sched_process_exec --filter 'pid == 1' profile >/dev/null
offers "perfctl --instance $I trigger show " "web/slow"
offers "perfctl --instance $I trigger fire w" "web/slow"
offers "perfctl --instance $I snapshots collect " "web/slow"
offers "perfctl --instance $I trigger add web/new p" ""
offers "perfctl --instance $I trigger add web/new web/p" "web/profile"
perfctl trigger remove web/slow >/dev/null
# Other instances start and end meanwhile.
offers_also "perfctl --instance ${I:0:3}" "$I"
offers "perfctl --instance $I delete --all " "default web"
offers "perfctl --registry $REGISTRY --direct show w" "web/ web/profile web/second"
offers "perfctl --socket $RUN/control stat w" "web/ web/profile web/second"
offers "perfctl --instance $I-no-such show " ""
offers "perfctl re" "record reload reopen report resume"
offers "perfctl reopen --co" "--copy"
offers "perfctl --no-such-option limits x" ""

echo "saves"
perfctl save default/ >/dev/null
name=$(ls "$STATE/saved")
offers "perfctl --instance $I --saved show " "default/ default/switches"
offers "perfctl --instance $I --saved=$name reopen sw" "switches"
offers "perfctl --saved=$STATE/saved/$name list " "default/ default/switches"
offers "perfctl --saved=$STATE/saved reopen --id " "$id"
offers "perfctl --instance $I --saved=2" "$name"
offers "perfctl --instance $I save w" "web/ web/profile web/second"

echo "events and other values"
offers "perfctl create x -e cpu-cl" "cpu-clock"
offers "perfctl create x -e cpu-clock,page-f" "cpu-clock,page-faults"
offers "perfctl create x --event=task-" "task-clock"
offers "perfctl create x -e kprobe:vfs_readl" "vfs_readlink"
offers "perfctl create x -e uprobe:$SCRATCH/perfctl.b" "$SCRATCH/perfctl.bash:"
offers "perfctl create x -e 'uprobe:$SCRATCH/perfctl.b" "uprobe:$SCRATCH/perfctl.bash:"
offers "perfctl create x -C 0," "$(online_cpus | sed 's/^/0,/' | sort | xargs)"
offers "perfctl create x -C0," "$(online_cpus | sed 's/^/-C0,/' | sort | xargs)"
offers_also "perfctl create x -p $$" "$$"
offers_also "perfctl create x --comm bas" "bash"
# Any user may call a process so; Enter behind the tab would run it.
for comm in 'pp-zq;id' 'pp-zq&id' pp-zq-1; do
	cp "$(command -v sleep)" "$SCRATCH/$comm"
	spawn "$SCRATCH/$comm" 1000
	wait_until 20 grep -qxF "$comm" "/proc/$SPAWNED/comm"
done
offers "perfctl create x --comm pp-z" "pp-zq-1"
# Or a file, of which readline only quotes whole names.
mkdir "$SCRATCH/files"
touch "$SCRATCH/files/"{'zq;id;','zq$(id)','zq id',"zq';id;'",'zq`id`',zq-1}
offers "perfctl create x -e uprobe:$SCRATCH/files/z" "$SCRATCH/files/zq-1:"
offers "perfctl create x -e 'uprobe:$SCRATCH/files/z" "uprobe:$SCRATCH/files/zq-1:"
# Or a program, or its folder.
chmod +x "$SCRATCH/files/"*
mkdir "$SCRATCH/files/"{'zr;id;',zr-1}
offers "perfctl record x -- $SCRATCH/files/z" "$SCRATCH/files/zq-1 $SCRATCH/files/zr-1"
offers "perfctl script --time re" "real relative"
offers "perfctl script -F comm,ti" "comm,tid comm,time"
# A user's own COMP_WORDBREAKS, without ":" and "=".
BREAKS=($' \t\n"')
offers "perfctl create x -e kprobe:vfs_readl" "kprobe:vfs_readlink"
offers "perfctl --instance=$I show web/p" "web/profile"
offers "perfctl create x --event=task-" "--event=task-clock"
BREAKS=()
if unshare --mount true 2>/dev/null; then
	WHO=(unshare --mount --propagation private bash -c
		'[ -d /sys/kernel/tracing/events ] || mount -t tracefs none /sys/kernel/tracing; "$@"' -)
	offers "perfctl create x -e sched:sched_swi" "sched_switch"
	offers "perfctl create x -e 'sched:sched_swi" "sched:sched_switch"
	offers "perfctl create x -e cpu-clock,sched:sched_swi" "sched_switch"
	offers "perfctl create x -e sche" "sched:"
else
	echo "  not tested: tracepoints (mount namespaces cannot be made here)"
fi

echo "others"
WHO=(as_member)
offers "perfctl --instance $I show " "default/ default/switches web/ web/profile web/second"
WHO=(as_user)
offers "perfctl --instance $I show " "default/ web/" # the names of namespaces are no secret
perfctl delete web/second web/profile >/dev/null
stop_daemon
write_conf "[namespace own]
Owner=$NOBODY
Group=0"
start_daemon
perfctl create own/clock -e cpu-clock -F 99 >/dev/null
offers "perfctl --instance $I show " "default/ own/ own/clock"
offers "perfctl --instance $I reopen --id " "$(perfctl show own/clock --json | jq -r .id)"
WHO=()

echo "readline"
# on_terminal RC LINE: bash's line after a tab was typed behind it.
on_terminal() {
	printf '%s\n' "PS1= PS2=" "bind -x '\"\\C-x\": printf \"%s\\n\" \"\$READLINE_LINE\" >>$SCRATCH/lines; READLINE_LINE='" \
		"PATH=$BIN:\$PATH" "$1" >"$SCRATCH/bashrc"
	: >"$SCRATCH/lines"
	printf '%s\t\x18\n\nexit\n' "$2" |
		script -qec "env TERM=dumb INPUTRC=/dev/null bash --noprofile --rcfile $SCRATCH/bashrc -i" /dev/null >"$SCRATCH/terminal" 2>&1 ||
		fail "bash on a terminal: $(<"$SCRATCH/terminal")"
	OUT=$(<"$SCRATCH/lines")
}
plain=". $SCRATCH/perfctl.bash"
on_terminal "$plain" "perfctl --instance $I show s"
expect_eq "$OUT" "perfctl --instance $I show switches " "the line"
on_terminal "$plain" "perfctl --instance=$I show own/"
expect_eq "$OUT" "perfctl --instance=$I show own/clock " "the line"
on_terminal "$plain" "perfctl create x -e kprobe:vfs_readl"
expect_eq "$OUT" "perfctl create x -e kprobe:vfs_readlink " "the line"
on_terminal "$plain" "perfctl create x -e 'kprobe:vfs_readl"
expect_eq "$OUT" "perfctl create x -e 'kprobe:vfs_readlink' " "the line"
on_terminal "$plain" "perfctl --instance $I create o"
expect_eq "$OUT" "perfctl --instance $I create own/" "the line"
if [ -e /usr/share/bash-completion/bash_completion ]; then
	# bash-completion finds the file by its name when it completes perfctl for the first time.
	install -D -m 0644 "$SCRATCH/perfctl.bash" "$SCRATCH/data/bash-completion/completions/perfctl"
	package="XDG_DATA_HOME=$SCRATCH/data; . /usr/share/bash-completion/bash_completion"
	on_terminal "$package" "perfctl --instance=$I show own/"
	expect_eq "$OUT" "perfctl --instance=$I show own/clock " "the line"
	on_terminal "$package" "perfctl reopen x -- perfctl relo"
	expect_eq "$OUT" "perfctl reopen x -- perfctl reload " "the line"
else
	echo "  not tested: with the package bash-completion (it is not installed)"
fi

echo "zsh"
if command -v zsh >/dev/null; then
	lines=(
		"perfctl --instance $I show s|perfctl --instance $I show switches |switches"
		"perfctl --instance=$I show |perfctl --instance=$I show |default default/switches own own/clock"
		"perfctl show --instance $I own/|perfctl show --instance $I own/clock |own/clock"
		"perfctl --instance $I -d d|perfctl --instance $I -d default/switches |default/switches"
		"perfctl --instance $I create o|perfctl --instance $I create own/|own"
		"perfctl reopen --instance $I --id $id|perfctl reopen --instance $I --id $id |$id"
		"perfctl --instance $I --saved reopen d|perfctl --instance $I --saved reopen default|default default/switches"
		"perfctl --instance $I --saved=2|perfctl --instance $I --saved=$name |$name"
		"perfctl --instance $I delete --all o|perfctl --instance $I delete --all own |own"
		"perfctl relo|perfctl reload |reload"
		"perfctl reopen --instance $I switches --co|perfctl reopen --instance $I switches --copy |--copy"
		"perfctl reopen switches -- perfctl relo|perfctl reopen switches -- perfctl reload |reload"
		"perfctl create x -e cpu-clock,page-f|perfctl create x -e cpu-clock,page-faults |page-faults"
		"perfctl create x -e kprobe:vfs_readl|perfctl create x -e kprobe:vfs_readlink |vfs_readlink"
	)
	mkdir "$SCRATCH/zsh"
	zsh -f "$ROOT/tests/integration/completion.zsh" "$ROOT/client/perfctl/completion" "$BIN/perfctl" "$SCRATCH/zsh" \
		"${lines[@]%%|*}" >"$SCRATCH/zsh/got" || fail "zsh on a terminal"
	diff <(printf '%s\n' "${lines[@]}") "$SCRATCH/zsh/got" >&2 || fail "what zsh should make of these (<) and makes (>)"
	echo "  ${#lines[@]} lines"
else
	echo "  not tested: zsh is not installed"
fi

echo "without the daemon"
stop_daemon
offers "perfctl --instance $I show " "default/ default/switches own/ own/clock"
# The shell does not wait for perfctl to end, only for what it prints.
wait_until 20 _no_processes || fail "completion started a daemon: $(daemon_pids | xargs)"
start_daemon
