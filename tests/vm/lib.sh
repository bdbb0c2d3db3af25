# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests in a guest. Such a test is root on a booted Debian that is discarded afterwards:
#
#   #!/bin/bash
#   # vm: --smp 2,maxcpus=4 --timeout 60      options of run.sh
#   . "$(dirname "$0")/lib.sh"
#   install_packages perfpersist
#   expect_ok systemctl start perfpersistd
#
# It fails at the first command that fails. With reboot it requests another run after another boot:
# PHASE is 1 in the first, 2 in the second. recorder.sh has what several tests share.

set -eE -u -o pipefail

. "$(dirname "${BASH_SOURCE[0]}")/../expect.sh"

OUT_DIR=/run/vm/out
BUILD=/run/vm/build
PHASE=${PHASE:-1}

trap 'echo "failed: ${BASH_SOURCE[0]##*/}:$LINENO: $BASH_COMMAND" >&2' ERR

# next_boot: if the guest reboots, panics or is reset from now on, the test continues in the next
# boot.
next_boot() {
	touch "$OUT_DIR/next"
}

# reboot: shuts down cleanly; the test runs again in the next boot.
reboot() {
	next_boot
	exit 0
}

# lose_power: QEMU is killed; the test runs again in the next boot. Needs `# vm: --disk durable`.
lose_power() {
	next_boot
	touch "$OUT_DIR/kill"
	sleep infinity
}

# monitor CMD…: runs CMD in QEMU's human monitor, and prints the answer. The monitor reports errors
# only as text.
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

# install_packages NAME…: ours, from `make deb`. The guest has all their dependencies, and dpkg is
# faster than apt; test-install.sh uses apt.
install_packages() {
	local name files=()
	for name in "$@"; do
		files+=("$BUILD/deb/${name}"_*.deb)
	done
	DEBIAN_FRONTEND=noninteractive expect_ok dpkg --install "${files[@]}"
}
