/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tries every known way to change a ring, or the copy of one (attack-copy.h), through its
 * descriptor. The kernel must refuse each; afterwards the ring must be unchanged, except for new
 * records.
 *
 *   perfctl reopen [--copy] NAMESPACE/EVENT -- ring-attack
 *
 * Takes descriptors as LISTEN_FDS has them and prints a line for each attempt. Exit 0: all attempts
 * were refused; 1: one succeeded; 2: wrong usage. Knows the ring's layout and bpf(2), nothing else
 * of perfpersist.
 */
#include "tests/integration/attack-copy.h"

static long bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static void attack_file(int fd)
{
	char path[64];

	ATTEMPT("write(fd)", write(fd, FORGED, sizeof(FORGED)) >= 0);
	ATTEMPT("pwrite(fd)", pwrite(fd, FORGED, sizeof(FORGED), 0) >= 0);
	ATTEMPT("ftruncate(fd, 0)", ftruncate(fd, 0) == 0);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ATTEMPT("open(/proc/self/fd/N, O_RDWR)", ({
			_cleanup_close_ int again = open(path, O_RDWR | O_CLOEXEC);
			again >= 0;
		}));
}

static int update(int fd, const void *value)
{
	__u32 key = 0;
	union bpf_attr attr = {
		.map_fd = fd, .key = (uintptr_t)&key, .value = (uintptr_t)value, .flags = BPF_ANY
	};

	return (int)bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

/* Opens a new descriptor of the same map, without the limits of the given one. Root can do that and
 * gains nothing: the map itself is frozen. */
static void attack_by_id(int fd, const void *value)
{
	struct bpf_map_info info = { 0 };
	union bpf_attr attr = {
		.info = { .bpf_fd = fd, .info_len = sizeof(info), .info = (uintptr_t)&info }
	};

	if (bpf(BPF_OBJ_GET_INFO_BY_FD, &attr) < 0) {
		tell("bpf(BPF_OBJ_GET_INFO_BY_FD)", strerrorname_np(errno));
		return;
	}
	attr = (union bpf_attr){ .map_id = info.id };
	_cleanup_close_ int again = (int)bpf(BPF_MAP_GET_FD_BY_ID, &attr);

	if (again < 0)
		tell("bpf(BPF_MAP_GET_FD_BY_ID)", strerrorname_np(errno));
	else
		ATTEMPT("bpf(BPF_MAP_UPDATE_ELEM) by BPF_MAP_GET_FD_BY_ID",
			update(again, value) == 0);
}

static void attack_map(int fd, size_t size)
{
	_cleanup_free_ void *value = calloc(1, size);
	__u32 key = 0;
	union bpf_attr attr;

	if (!value)
		return;
	ATTEMPT("bpf(BPF_MAP_UPDATE_ELEM)", update(fd, value) == 0);

	attr = (union bpf_attr){ .map_fd = fd, .key = (uintptr_t)&key };
	ATTEMPT("bpf(BPF_MAP_DELETE_ELEM)", bpf(BPF_MAP_DELETE_ELEM, &attr) == 0);

	attr = (union bpf_attr){ .batch = { .keys = (uintptr_t)&key,
					    .values = (uintptr_t)value,
					    .count = 1,
					    .map_fd = fd } };
	ATTEMPT("bpf(BPF_MAP_UPDATE_BATCH)", bpf(BPF_MAP_UPDATE_BATCH, &attr) == 0);
	attack_by_id(fd, value);
}

/* Whether the constant parts of the header are unchanged. */
static bool same(const void *map, const void *before)
{
	const char *a = map, *b = before;
	const size_t behind = PP_RING_LIMIT_OFFSET + sizeof(struct pp_ring_limit);

	return memcmp(a, b, PP_RING_LIVE_OFFSET) == 0 &&
	       memcmp(a + behind, b + behind, sizeof(struct pp_ring_header) - behind) == 0;
}

static int attack_ring(int fd)
{
	struct pp_ring_header before;
	size_t size;
	void *map;
	bool ok;

	map = mmap(NULL, PP_RING_PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		fprintf(stderr, "ring-attack: descriptor %d cannot be mapped to read: %m\n", fd);
		return 2;
	}
	memcpy(&before, map, sizeof(before));
	size = pp_ring_size(before.header_size, before.data_size, before.spill_size);
	if (before.magic != PP_RING_MAGIC || size > 2 * PP_DATA_SIZE_MAX) {
		fprintf(stderr, "ring-attack: descriptor %d is not a ring\n", fd);
		munmap(map, PP_RING_PAGE);
		return 2;
	}
	printf("ring of CPU %u, event id %llu, %llu records so far; as uid %u:\n", before.cpu,
	       (unsigned long long)before.event_id, (unsigned long long)before.live.records,
	       getuid());

	attack_mapping(fd, map, PP_RING_PAGE);
	attack_file(fd);
	attack_map(fd, size);

	ok = same(map, &before);
	tell_unchanged("its header afterwards", ok);
	munmap(map, PP_RING_PAGE);
	return 0;
}

/* A copy is a file in memory, a ring is a map. */
static int attack(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? attack_copy(fd) : attack_ring(fd);
}

int main(void)
{
	return attack_all("perfctl reopen [--copy] NAMESPACE/EVENT -- ring-attack", attack);
}
