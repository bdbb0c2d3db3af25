# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests in a guest. Such a test is root of a booted Debian that is thrown away behind it:
#
#   #!/bin/bash
#   # vm: --smp 2,maxcpus=4 --timeout 60      options of run.sh
#   . "$(dirname "$0")/lib.sh"
#   install_packages perfpersist
#   expect_ok systemctl start perfpersistd
#
# It fails at the first command that fails. With reboot it asks to be run again after another
# boot: PHASE is 1 in the first, 2 in the second. What several tests ask of the recorder is in
# recorder.sh.

set -eE -u -o pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../expect.sh"

OUT_DIR=/run/vm/out
BUILD=/run/vm/build
PHASE=${PHASE:-1}

trap 'echo "failed: ${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND" >&2' ERR

# next_boot: if the guest now reboots, panics or is reset, the test goes on in the next boot.
next_boot() {
	touch "$OUT_DIR/next"
}

# reboot: ends this boot in order; the test is called again in the next.
reboot() {
	next_boot
	exit 0
}

# monitor CMD…: has QEMU's monitor (its human one) do it, and writes what that answered. It tells
# errors in words, and in no other way.
monitor() {
	local request

	request=$(jq -cn --arg line "$*" \
		'{execute: "human-monitor-command", id: "human", arguments: {"command-line": $line}}')
	{
		printf '%s\n' '{"execute": "qmp_capabilities"}' "$request" >&3
		timeout 60 jq -rn --unbuffered \
			'first(inputs | select(.id == "human") | .return // .error.desc)' <&3
	} 3<>/dev/virtio-ports/monitor
}

# install_packages NAME…: ours, as `make deb` made them. The guest has all that they depend on, and
# dpkg is quicker than apt; test-install.sh has apt do it.
install_packages() {
	local name files=()
	for name in "$@"; do
		files+=("$BUILD/deb/${name}"_*.deb)
	done
	DEBIAN_FRONTEND=noninteractive expect_ok dpkg --install "${files[@]}"
}
