// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is known of an event, in a map. */
#include "daemon/engine/meta.h"

#include <bpf/bpf.h>
#include <string.h>

#include "daemon/text.h"
#include "proto/macro.h"

static const char *recorder_name(uint32_t recorder)
{
	switch (recorder) {
	case PP_RECORDER_GENERIC:
		return "generic";
	case PP_RECORDER_TP_BTF:
		return "tp_btf";
	default:
		return "overflow";
	}
}

static void print_flags(FILE *f, uint32_t flags)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {
		{ PP_EVENT_FREQ, "freq" },
		{ PP_EVENT_CALLCHAIN, "callchain" },
		{ PP_EVENT_ALL_CPUS, "all-cpus" },
		{ PP_EVENT_GENERIC, "generic" },
	};
	const char *sep = "";

	fputs("flags=", f);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (flags & names[i].bit) {
			fprintf(f, "%s%s", sep, names[i].name);
			sep = ",";
		}
	fputc('\n', f);
}

/* The text of `info`. All of it fits: the longest values are bounded to half of the field. */
static int print_text(const struct pp_event *e, char *buf, size_t size, unsigned *ret_used)
{
	_cleanup_fclose_ FILE *f = fmemopen(buf, size, "w");
	char cpus[PP_CPUS_SIZE];

	if (!f)
		return -errno;
	if (pp_format_cpus(&e->rings, cpus, sizeof(cpus)) < 0)
		return -ENOSPC;
	fprintf(f, "id=%llu\nnamespace=%s\nname=%s\nevent=%s\n", (unsigned long long)e->id,
		e->spec.ns, e->spec.name, e->spec.event);
	fprintf(f, "recorder=%s\nbuffer=%llu\ncpus=%s\nsample_type=0x%llx\nperiod=%llu\n",
		recorder_name(e->recorder), (unsigned long long)e->spec.data_size, cpus,
		(unsigned long long)e->sample_type, (unsigned long long)e->spec.period);
	print_flags(f, e->spec.flags);
	fprintf(f, "owner=%u\ngroup=%u\nmode=%04o\ncreated=%llu\nstate=running\n", e->spec.owner,
		e->spec.group, e->spec.mode, (unsigned long long)e->created);
	if (fflush(f) < 0 || ftell(f) >= (long)size)
		return -ENOSPC;
	*ret_used = ftell(f);
	return 0;
}

int meta_create(const struct pp_event *event, int *ret_fd)
{
	_cleanup_free_ struct pp_meta *m = calloc(1, sizeof(*m));
	_cleanup_close_ int fd = -EBADF;
	uint32_t zero = 0;
	int r;

	if (!m)
		return -ENOMEM;
	m->head.magic = PP_META_MAGIC;
	m->head.version = PP_META_VERSION;
	m->head.size = sizeof(*m);
	m->event = *event;
	r = print_text(event, m->head.text, sizeof(m->head.text), &m->head.text_size);
	if (r < 0)
		return r;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pp_meta", 4, sizeof(*m), 1, NULL);
	if (fd < 0)
		return fd;
	if (bpf_map_update_elem(fd, &zero, m, BPF_ANY) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Reads the map's whole value, whose size its maker chose. */
static int read_value(int fd, struct pp_meta **ret)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info), zero = 0;
	struct pp_meta *m;

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return -errno;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.value_size < sizeof(m->head))
		return -EBADMSG;
	m = calloc(1, ALIGN_TO(MAX((size_t)info.value_size, sizeof(*m)), 8UL));
	if (!m)
		return -ENOMEM;
	if (bpf_map_lookup_elem(fd, &zero, m) < 0) {
		free(m);
		return -errno;
	}
	if (info.value_size != sizeof(*m) && m->head.version <= PP_META_VERSION)
		m->head.magic = 0; /* no version of ours had that size */
	*ret = m;
	return 0;
}

int meta_read(int fd, struct pp_event *ret)
{
	_cleanup_free_ struct pp_meta *m = NULL;
	int r;

	r = read_value(fd, &m);
	if (r < 0)
		return r;
	if (m->head.magic != PP_META_MAGIC || m->head.version == 0)
		return -EBADMSG;
	if (m->head.version > PP_META_VERSION)
		return -EPROTONOSUPPORT;
	if (m->head.size != sizeof(*m) || pp_event_check(&m->event) < 0)
		return -EBADMSG;
	*ret = m->event;
	return 0;
}

int meta_mark_deleted(int fd)
{
	_cleanup_free_ struct pp_meta *m = NULL;
	uint32_t zero = 0;
	int r;

	r = read_value(fd, &m);
	if (r < 0)
		return r;
	m->head.deleted = 1;
	return bpf_map_update_elem(fd, &zero, m, BPF_ANY) < 0 ? -errno : 0;
}
