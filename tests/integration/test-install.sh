#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# `make install DESTDIR=` puts every file into its place and nothing elsewhere; what is installed
# works from there: the README's program, built by the commands of the README against the installed
# header, library and .pc file; the daemon, which finds its engine; and the units.
. "$(dirname "$0")/../lib.sh"

DEST=$SCRATCH/dest
mkdir "$DEST"

# Whoever built this can have built it with sanitizers; make must not think it is out of date.
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
0755 /usr/lib/perfpersist/perfpersist-engine
0644 /usr/lib/systemd/system/perfpersist-engine.service
0644 /usr/lib/systemd/system/perfpersist-engine.socket
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
0644 /usr/share/man/man1/perfctl.1
END
echo "files"
(cd "$DEST" && find . ! -type d -printf '0%m /%P -> %l\n') | sed 's/ -> $//' | sort -k2 >"$SCRATCH/got"
diff <(sort -k2 "$SCRATCH/want") "$SCRATCH/got" >&2 || fail "what should be installed (<) is not what is (>)"
echo "  $(wc -l <"$SCRATCH/got") files, each in its place"
if grep -rnE '@[A-Z]+@' "$DEST" --include='*.service' --include='*.socket' --include='*.mount' --include='*.pc'; then
	fail "these were not filled in"
fi
if grep -rlF "$DEST" "$DEST" --include='*.service' --include='*.conf' --include='*.pc'; then
	fail "these name DESTDIR, from which they will be moved"
fi

echo "units"
sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$DEST"/usr/lib/systemd/system/*.service | while read -r program; do
	[ -x "$DEST$program" ] || fail "a unit starts $program, which is not there"
done
if command -v systemd-analyze >/dev/null; then
	# The units that they need are this machine's, the programs are where they were installed.
	mkdir "$SCRATCH/units"
	for unit in "$DEST"/usr/lib/systemd/system/*; do
		sed "s|^ExecStart=/|ExecStart=$DEST/|" "$unit" >"$SCRATCH/units/${unit##*/}"
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
# Each option that a unit gives to a program is one that the program takes.
for unit in "$DEST"/usr/lib/systemd/system/*.service; do
	read -ra line < <(sed -n 's/^ExecStart=//p' "$unit")
	for option in "${line[@]:1}"; do
		[[ $option != --* ]] || grep -q -e "$option" < <("$DEST${line[0]}" --help) || fail "${unit##*/}: $option"
	done
done

# The unit names the broker's user; here another one, who is there.
engine=$DEST$(sed -n 's/^ExecStart=//p' "$DEST/usr/lib/systemd/system/perfpersist-engine.service")
# shellcheck disable=SC2086
expect_exit 2 ${engine/%perfpersist/nobody}
expect_match "$OUT" 'in LISTEN_FDS' "what the engine lacks, started by hand"
expect_exit 2 "$DEST/usr/lib/perfpersist/perfpersist-engine" --broker-uid no-such-user
expect_match "$OUT" "there is no user 'no-such-user'; run systemd-sysusers" "what the engine says of a user who is not there"

echo "configuration"
expect_ok "$DEST/usr/sbin/perfpersistd" --check-config --config "$DEST/etc/perfpersist/perfpersistd.conf"
# Each key is shown with its default: taken out of its comment, each is one that the daemon knows.
sed -E "s/^#(\[|[A-Z][A-Za-z]+=)/\1/; s/=(perfpersist)$/=$DAEMON_UID/" "$DEST/etc/perfpersist/perfpersistd.conf" >"$CONF"
expect_ok "$DEST/usr/sbin/perfpersistd" --check-config --config "$CONF"
echo "  $(grep -cE '^[A-Z][A-Za-z]+=' "$CONF") keys, all known to the daemon"

echo "the README's program, by the README's commands"
# shellcheck disable=SC2016
sed -n '/^```c$/,/^```$/p' "$ROOT/README.md" | sed '/^```/d' >"$SCRATCH/newest.c"
compile=$(grep -m1 -E '^    cc .*newest\.c' "$ROOT/README.md" | sed 's/^ *//')
[ -n "$compile" ] || fail "the README does not say how to compile"
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

# Built with sanitizers, the library needs their runtime before all others.
preload=
case " ${options[*]} " in *" SANITIZE=1 "*) preload=$(gcc -print-file-name=libasan.so) ;; esac

echo "the daemon as it was installed"
write_conf
# The engine is looked for beside the daemon and in its place under /usr; not under DESTDIR.
"$DEST/usr/sbin/perfpersistd" --instance "$INSTANCE" --config "$CONF" \
	--engine "$DEST/usr/lib/perfpersist/perfpersist-engine" >>"$LOG" 2>&1 &
DAEMON_PID=$!
wait_until 20 _ready
"$DEST/usr/bin/perfctl" --instance "$INSTANCE" create default/switches -e sched:sched_switch
wait_until 20 more_records_than 20 default/switches
# It talks to the system's own instance, whose place is the other one's here.

# It talks to the system's own instance: in mounts of its own, ours is in its place.
unshare --mount true 2>/dev/null || skip "mount namespaces cannot be made here"
mkdir "$SCRATCH/run"
as_system() {
	# shellcheck disable=SC2016
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
perfctl delete default/switches >/dev/null
expect_exit 1 as_system "$SCRATCH/newest" default switches
expect_match "$OUT" "no namespace 'default'" "what it says of an event that is not there"
stop_daemon
