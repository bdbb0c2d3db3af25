# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For tests of CPUs that come: an engine that does not see the last of this machine's CPUs, because
# a file lies over sysfs' own. To be read after lib.sh; skips where that cannot be.
#
#   BLIND         what --engine is given, after mount_registry
#   FIRST, LAST   CPUs: one that it sees, and the one that it does not
#   CPUS          all of them

unshare --mount true 2>/dev/null || skip "mount namespaces cannot be made here"
mapfile -t CPUS < <(lscpu --parse=CPU --online | grep -v '^#')
[ ${#CPUS[@]} -ge 2 ] || skip "this machine has only one CPU"
# shellcheck disable=SC2034 # they are for whoever reads this
FIRST=${CPUS[0]} LAST=${CPUS[-1]}
BLIND=$SCRATCH/blind

(IFS=,; echo "${CPUS[*]:0:${#CPUS[@]}-1}") >"$SCRATCH/online"
# The mounts of other instances are not kept busy.
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
