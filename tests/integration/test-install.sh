#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# `make install DESTDIR=` puts every file into its place and nothing elsewhere. The installed files
# work from there: the first program of docs/program.md, built by its commands against the installed
# header, library and .pc file; the daemon, which finds its engine; and the units.
. "$(dirname "$0")/../lib.sh"

DEST=$SCRATCH/dest
mkdir "$DEST"

# The build may use sanitizers; make must not think that it is out of date.
options=(BUILD="$BUILD" DESTDIR="$DEST")
if grep -q __asan_init "$BUILD/libperfpersist.so.0"; then
	options+=(SANITIZE=1)
fi
env -u MAKEFLAGS -u MAKELEVEL make --no-print-directory -s -C "$ROOT" "${options[@]}" install >"$SCRATCH/make" 2>&1 ||
	fail "make install: $(<"$SCRATCH/make")"

libdir=/usr/lib/$(gcc -print-multiarch)
cat >"$SCRATCH/want" <<END
0644 /etc/perfpersist/perfpersistd.conf
0755 /usr/bin/perfctl
0644 /usr/include/perfpersist.h
0644 /usr/include/perfpersist/perfpersist.bpf.h
0644 /usr/lib/perfpersist/events.d/10-hung-task.conf
0644 /usr/lib/perfpersist/events.d/10-mce.conf
0644 /usr/lib/perfpersist/events.d/10-oom.conf
0644 /usr/lib/perfpersist/events.d/10-ras.conf
0644 /usr/lib/perfpersist/events.d/10-thermal.conf
0755 /usr/lib/perfpersist/perfpersist-dumper
0755 /usr/lib/perfpersist/perfpersist-engine
0755 /usr/lib/perfpersist/perfpersist-keeper
0644 /usr/lib/perfpersist/presets/coredump.conf
0644 /usr/lib/perfpersist/presets/flight.conf
0644 /usr/lib/perfpersist/presets/latency.conf
0644 /usr/lib/perfpersist/presets/network.conf
0644 /usr/lib/perfpersist/presets/syscalls@.conf
0644 /usr/lib/systemd/catalog/perfpersist.catalog
0644 /usr/lib/systemd/system/perfpersist-checkpoint.service
0644 /usr/lib/systemd/system/perfpersist-dumper.service
0644 /usr/lib/systemd/system/perfpersist-dumper.socket
0644 /usr/lib/systemd/system/perfpersist-engine.service
0644 /usr/lib/systemd/system/perfpersist-engine.socket
0644 /usr/lib/systemd/system/perfpersist-keeper.service
0644 /usr/lib/systemd/system/perfpersist-keeper.socket
0644 /usr/lib/systemd/system/perfpersist-on-snapshot.service
0644 /usr/lib/systemd/system/perfpersist-save.service
0644 /usr/lib/systemd/system/perfpersist-snapshots.path
0644 /usr/lib/systemd/system/perfpersist-snapshots.service
0644 /usr/lib/systemd/system/perfpersistd.service
0644 /usr/lib/systemd/system/perfpersistd.socket
0644 /usr/lib/systemd/system/run-perfpersist-registry.mount
0644 /usr/lib/sysusers.d/perfpersist.conf
0644 /usr/lib/tmpfiles.d/perfpersist.conf
0644 $libdir/libperfpersist.a
0777 $libdir/libperfpersist.so -> libperfpersist.so.0
0755 $libdir/libperfpersist.so.0
0644 $libdir/pkgconfig/libperfpersist.pc
0755 /usr/sbin/perfpersistd
0644 /usr/share/bash-completion/completions/perfctl
0644 /usr/share/man/man1/perfctl.1
0644 /usr/share/man/man3/libperfpersist.3
0644 /usr/share/man/man5/perfpersistd.conf.5
0644 /usr/share/man/man8/perfpersistd.8
0644 /usr/share/zsh/vendor-completions/_perfctl
END
# Each call has a man page.
nm -D --defined-only "$BUILD/libperfpersist.so.0" |
	sed -nE 's|.* T (perfpersist_[a-z_0-9]*).*|0644 /usr/share/man/man3/\1.3|p' >>"$SCRATCH/want"
echo "files"
(cd "$DEST" && find . ! -type d -printf '0%m /%P -> %l\n') | sed 's/ -> $//' | sort -k2 >"$SCRATCH/got"
diff <(sort -k2 "$SCRATCH/want") "$SCRATCH/got" >&2 || fail "the expected files (<) differ from the installed ones (>)"
echo "  $(wc -l <"$SCRATCH/got") files, each in its place"
if grep -rnE '@[A-Z]+@' "$DEST" --include='*.service' --include='*.socket' --include='*.mount' --include='*.pc'; then
	fail "these were not filled in"
fi
if grep -rlF "$DEST" "$DEST" --include='*.service' --include='*.conf' --include='*.pc'; then
	fail "these name DESTDIR, from which they will be moved"
fi

echo "units"
sed -nE 's/^Exec[A-Za-z]*=[-+!@:]*([^ ]*).*/\1/p' "$DEST"/usr/lib/systemd/system/*.service | while read -r program; do
	[ -x "$DEST$program" ] || fail "a unit starts $program, which is not there"
done
if command -v systemd-analyze >/dev/null; then
	# The units that ours need are this machine's; the programs are the installed ones.
	mkdir "$SCRATCH/units"
	for unit in "$DEST"/usr/lib/systemd/system/*; do
		sed -E "s|^(Exec[A-Za-z]*=[-+!@:]*)/usr/|\1$DEST/usr/|" "$unit" >"$SCRATCH/units/${unit##*/}"
	done
	(cd "$SCRATCH/units" && SYSTEMD_UNIT_PATH=$PWD: systemd-analyze verify --man=no ./*) >"$SCRATCH/verify" 2>&1 ||
		fail "systemd-analyze: $(<"$SCRATCH/verify")"
	if grep perfpersist "$SCRATCH/verify"; then
		fail "systemd-analyze has something to say of our units"
	fi
	echo "  systemd-analyze verify is content"
fi
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers --root="$DEST" "$DEST/usr/lib/sysusers.d/perfpersist.conf" 2>"$SCRATCH/sysusers" ||
		fail "systemd-sysusers: $(<"$SCRATCH/sysusers")"
	expect_match "$(cut -d: -f1 "$DEST/etc/passwd" | xargs) / $(cut -d: -f1 "$DEST/etc/group" | xargs)" \
		'perfpersist.* / .*perfpersist' "user and group"
	echo "  systemd-sysusers makes user and group"
fi
# Each program accepts the options that its unit passes.
for unit in "$DEST"/usr/lib/systemd/system/*.service; do
	while read -r line; do
		read -ra command <<<"${line%% --*}"
		for option in ${line#"${command[*]}"}; do
			[[ $option != --* ]] || grep -q -e "$option" < <("$DEST${command[0]}" "${command[@]:1}" --help) ||
				fail "${unit##*/}: $option"
		done
	done < <(sed -nE 's/^Exec[A-Za-z]*=[-+!@:]*//p' "$unit")
done

# The unit names the broker's user; this uses one that exists here.
engine=$DEST$(sed -n 's/^ExecStart=//p' "$DEST/usr/lib/systemd/system/perfpersist-engine.service")
# shellcheck disable=SC2086
expect_exit 2 ${engine/%perfpersist/nobody}
expect_match "$OUT" 'in LISTEN_FDS' "what the engine lacks, started by hand"
expect_exit 2 "$DEST/usr/lib/perfpersist/perfpersist-dumper"
expect_match "$OUT" 'in LISTEN_FDS' "what the dumper lacks, started by hand"
expect_exit 2 "$DEST/usr/lib/perfpersist/perfpersist-keeper"
expect_match "$OUT" 'in LISTEN_FDS' "what the keeper lacks, started by hand"
expect_exit 2 "$DEST/usr/lib/perfpersist/perfpersist-engine" --broker-uid no-such-user
expect_match "$OUT" "Invalid --broker-uid 'no-such-user': there is no such user; run systemd-sysusers" "what the engine says of a user who is not there"

echo "configuration"
expect_ok "$DEST/usr/sbin/perfpersistd" --check-config --config "$DEST/etc/perfpersist/perfpersistd.conf"
# The file shows each key with its default: the daemon accepts each one without the comment sign.
sed -E "s/^#(\[|[A-Z][A-Za-z]+=)/\1/; s/=(perfpersist)$/=$DAEMON_UID/" "$DEST/etc/perfpersist/perfpersistd.conf" >"$CONF"
expect_ok "$DEST/usr/sbin/perfpersistd" --check-config --config "$CONF"
echo "  $(grep -cE '^[A-Z][A-Za-z]+=' "$CONF") keys, all known to the daemon"

echo "the first program of docs/program.md, by its commands"
sed -n '/^```c$/,/^```$/{/^```$/q; /^```/!p}' "$ROOT/docs/program.md" >"$SCRATCH/newest.c"
compile=$(grep -m1 -E '^    cc .*newest\.c' "$ROOT/docs/program.md" | sed 's/^ *//')
[ -n "$compile" ] || fail "docs/program.md does not say how to compile"
export PKG_CONFIG_SYSROOT_DIR=$DEST PKG_CONFIG_PATH=$DEST$libdir/pkgconfig PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
	PKG_CONFIG_ALLOW_SYSTEM_LIBS=1
expect_eq "$(pkg-config --modversion libperfpersist)" "$(sed -n 's/^VERSION := //p' "$ROOT/Makefile")" "the .pc file's version"
(cd "$SCRATCH" && eval "$compile -Wall -Wextra -Werror") || fail "it does not compile: $compile"
if command -v g++ >/dev/null; then
	cp "$SCRATCH/newest.c" "$SCRATCH/newest.cc"
	# shellcheck disable=SC2046
	g++ -Wall -Wextra -Werror -o "$SCRATCH/newest++" "$SCRATCH/newest.cc" $(pkg-config --cflags --libs libperfpersist) ||
		fail "it does not compile as C++"
fi
grep -q libperfpersist.so.0 "$SCRATCH/newest" || fail "it does not use the shared library"
expect_eq "$(nm -D --defined-only "$DEST$libdir/libperfpersist.so.0" |
	awk '$2 != "A" && $3 !~ /^perfpersist_/ { print $3 }')" "" "symbols exported beside perfpersist_*"

# A library built with sanitizers needs their runtime to be loaded first.
preload=
case " ${options[*]} " in *" SANITIZE=1 "*) preload=$(gcc -print-file-name=libasan.so) ;; esac

echo "manual"
if command -v man >/dev/null; then
	for page in perfctl perfpersistd perfpersistd.conf libperfpersist perfpersist_connect perfpersist_follow_next; do
		expect_ok env MANPAGER=cat MANWIDTH=80 LC_ALL=C.UTF-8 man -M "$DEST/usr/share/man" "$page"
		expect_match "$OUT" "^(PERFCTL|PERFPERSISTD|PERFPERSISTD\.CONF|LIBPERFPERSIST)\([1358]\)" "man $page"
	done
	expect_match "$OUT" 'perfpersist_follow_next\(' "man perfpersist_follow_next"
else
	echo "  not tested: that man finds the pages (it is not installed)"
fi
sed -n '/^\.\\" example/,/^\.Ed/p' "$DEST/usr/share/man/man3/libperfpersist.3" | grep -v '^\.' | sed 's/\\e/\\/g' >"$SCRATCH/follow.c"
# shellcheck disable=SC2046
gcc -Wall -Wextra -Werror -o "$SCRATCH/follow" "$SCRATCH/follow.c" $(pkg-config --cflags --libs libperfpersist) ||
	fail "the example of libperfpersist.3 does not compile"

echo "the daemon as it was installed"
write_conf
# The daemon looks for engine, dumper and keeper beside itself and in their place under /usr, not
# under DESTDIR.
"$DEST/usr/sbin/perfpersistd" --instance "$INSTANCE" --config "$CONF" \
	--engine "$DEST/usr/lib/perfpersist/perfpersist-engine" \
	--dumper "$DEST/usr/lib/perfpersist/perfpersist-dumper" \
	--keeper "$DEST/usr/lib/perfpersist/perfpersist-keeper" >>"$LOG" 2>&1 &
DAEMON_PID=$!
wait_until 20 _ready
"$DEST/usr/bin/perfctl" --instance "$INSTANCE" create default/switches -e sched:sched_switch
wait_until 20 more_records_than 20 default/switches
# The example uses the system's own instance: a mount namespace puts ours in its place.
unshare --mount true 2>/dev/null || skip "mount namespaces cannot be made here"
mkdir "$SCRATCH/run"
as_system() {
	unshare --mount --propagation private bash -c '
		mount --bind "$1" "$0" && mount -t tmpfs none /run && mkdir /run/perfpersist &&
			mount --bind "$0" /run/perfpersist && shift && exec "$@"' "$SCRATCH/run" "$RUN" \
		env LD_LIBRARY_PATH="$DEST$libdir" LD_PRELOAD="$preload" "$@"
}
for program in newest newest++; do
	[ -e "$SCRATCH/$program" ] || continue
	OUT=$(as_system "$SCRATCH/$program" default switches)
	expect_eq "$(grep -cE '^\[[0-9]{3}\] [0-9]+\.[0-9]{9} pid [0-9]+, [0-9]+ bytes$' <<<"$OUT")" 10 "lines of $program"
done
echo "  ./newest default switches: 10 records, such as $(tail -n 1 <<<"$OUT")"
# The manual's example follows until the event is deleted.
spawn as_system "$SCRATCH/follow" default switches >"$SCRATCH/followed"
has_followed() {
	[ "$(grep -cE '^\[[0-9]{3}\] [0-9]+\.[0-9]{9} pid [0-9]+, [0-9]+ bytes$' "$SCRATCH/followed")" -gt 50 ]
}
wait_until 20 has_followed || fail "the example of libperfpersist.3 prints: $(<"$SCRATCH/followed")"
perfctl delete default/switches >/dev/null
wait_until 20 gone "$SPAWNED" || fail "the example of libperfpersist.3 does not end with its event"
wait "$SPAWNED" || fail "the example of libperfpersist.3 ends with $?"
echo "  the manual's example: $(wc -l <"$SCRATCH/followed") records"
expect_exit 1 as_system "$SCRATCH/newest" default switches
expect_match "$OUT" "no namespace 'default'" "what it says of an event that is not there"
stop_daemon
