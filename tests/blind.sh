# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For hotplug tests: an engine that does not see this machine's last CPU, because a file is mounted
# over the one in sysfs. Source it after lib.sh. It skips the test where such a mount is impossible.
#
#   BLIND         the argument of --engine, after mount_registry
#   FIRST, LAST   CPUs: one that the engine sees, and the one that it does not
#   CPUS          all of them

unshare --mount true 2>/dev/null || skip "mount namespaces cannot be made here"
mapfile -t CPUS < <(lscpu --parse=CPU --online | grep -v '^#')
[ ${#CPUS[@]} -ge 2 ] || skip "this machine has only one CPU"
# shellcheck disable=SC2034 # the test that sources this uses them
FIRST=${CPUS[0]} LAST=${CPUS[-1]}
BLIND=$SCRATCH/blind

(IFS=,; echo "${CPUS[*]:0:${#CPUS[@]}-1}") >"$SCRATCH/online"
# Does not keep the mounts of other instances busy.
cat >"$BLIND.inside" <<END
#!/bin/bash
set -eu
findmnt -rno TARGET -t bpf | grep /perfpersist | grep -vxF '$REGISTRY' |
	while read -r m; do umount -l "\$m"; done
mount --bind "$SCRATCH/online" /sys/devices/system/cpu/online
exec "$BUILD/perfpersist-engine" "\$@"
END
printf '#!/bin/bash\nexec unshare --mount --propagation private "%s" "$@"\n' "$BLIND.inside" >"$BLIND"
chmod 0755 "$BLIND" "$BLIND.inside"
