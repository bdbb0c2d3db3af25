// SPDX-License-Identifier: LGPL-2.1-or-later
/* Opens files that a trace names. */
#include <elf.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "client/perfctl/trace/symbols-elf.h"
#include "proto/macro.h"
#include "proto/regular.h"

/* The largest copy; larger files of strangers are refused. */
#define COPY_MAX (256 << 20)

/* Other files libdwfl would unpack, if it can: also those that only begin like one. */
static bool is_elf(int fd)
{
	unsigned char id[EI_VERSION + 1];

	return pread(fd, id, sizeof(id), 0) == sizeof(id) && !memcmp(id, ELFMAG, SELFMAG) &&
	       (id[EI_CLASS] == ELFCLASS32 || id[EI_CLASS] == ELFCLASS64) &&
	       (id[EI_DATA] == ELFDATA2LSB || id[EI_DATA] == ELFDATA2MSB) &&
	       id[EI_VERSION] == EV_CURRENT;
}

/* elfutils maps its input, and reading a truncated mapping kills the process. A file may be large
 * and sparse. Behind its end are zeroes, for a name that does not end in it. */
static int copy_of(int fd, off_t size, struct strangers *payer)
{
	_cleanup_close_ int copy = -EBADF;

	if (size > COPY_MAX || (payer && (uint64_t)size > payer->copies)) {
		if (payer)
			payer->refused = true;
		return -E2BIG;
	}
	if (payer)
		payer->copies -= (uint64_t)size;
	copy = memfd_create("perfctl-elf", MFD_CLOEXEC);
	if (copy < 0)
		return -errno;
	while (size > 0) {
		ssize_t n = sendfile(copy, fd, NULL, (size_t)size);

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size -= n;
	}
	if (ftruncate(copy, lseek(copy, 0, SEEK_END) + SYMTAB_NAME_MAX + 1) < 0)
		return -errno;
	return TAKE_FD(copy);
}

/* A stranger can give a file any inode, on a file system of his own. On btrfs and overlayfs, stat()
 * has other devices than the kernel records. */
static bool is_it(int fd, const struct stat *st, const struct elf_identity *which)
{
	struct statfs fs;

	if (which->build_id_size || !which->inode)
		return true;
	if (st->st_ino != which->inode || fstatfs(fd, &fs) < 0)
		return false;
	return st->st_dev == which->device || fs.f_type == BTRFS_SUPER_MAGIC ||
	       fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

int elf_open(const char *path, const struct elf_identity *which, bool *ret_strange)
{
	_cleanup_close_ int fd = regular_open(AT_FDCWD, path, RESOLVE_NO_MAGICLINKS), copy = -EBADF;
	struct stat st;
	bool strange;

	if (fd < 0)
		return fd == -EINVAL ? -ENOEXEC : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!is_it(fd, &st, which))
		return -ESTALE;
	strange = st.st_uid != 0 && st.st_uid != geteuid();
	if (ret_strange)
		*ret_strange = strange;
	if (!is_elf(fd))
		return -ENOEXEC;
	if (!strange)
		return TAKE_FD(fd);
	copy = copy_of(fd, st.st_size, which->strangers);
	if (copy >= 0 && !is_elf(copy)) /* changed meanwhile */
		return -ENOEXEC;
	return TAKE_FD(copy);
}

struct debug_path debug_path(const uint8_t *build_id, size_t size)
{
	struct debug_path path = { DEBUG_ROOT "/.build-id/" };
	char *end = path.text + strlen(path.text);

	for (size_t i = 0; i < size && i < 64; i++)
		end += sprintf(end, i == 0 ? "%02x/" : "%02x", build_id[i]);
	strcpy(end, ".debug");
	return path;
}
