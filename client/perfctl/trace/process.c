// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names and mappings of processes. Processes and threads are never removed: names are needed after
 * the exit, too, and a new process with the same number replaces the old one. */
#include "client/perfctl/trace/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/trace/process-dsos.h"
#include "client/perfctl/trace/process-maps.h"
#include "client/perfctl/trace/process-table.h"
#include "proto/macro.h"

/* The kernel's names have 16 bytes with the NUL; those of its own threads can be longer in
 * /proc. */
#define COMM_SIZE 32

struct thread {
	char comm[COMM_SIZE]; /* "": unknown */
};

struct process {
	struct map_node *maps;
};

struct processes {
	struct process *processes;
	struct thread *threads;
	size_t n_processes, n_threads;
	struct keytable by_pid, by_tid;
	struct map_node *kernel;
	struct dsos dsos;
};

static uint64_t tid_key(uint32_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

static int get_process(struct processes *p, uint32_t pid, struct process **ret)
{
	int64_t i = keytable_get(&p->by_pid, pid);
	int r;

	if (i < 0) {
		if (!GROW(p->processes, p->n_processes))
			return -ENOMEM;
		r = keytable_set(&p->by_pid, pid, (uint32_t)p->n_processes);
		if (r < 0)
			return r;
		i = (int64_t)p->n_processes++;
		p->processes[i] = (struct process){ 0 };
	}
	*ret = &p->processes[i];
	return 0;
}

static int get_thread(struct processes *p, uint32_t pid, uint32_t tid, struct thread **ret)
{
	int64_t i = keytable_get(&p->by_tid, tid_key(pid, tid));
	int r;

	if (i < 0) {
		if (!GROW(p->threads, p->n_threads))
			return -ENOMEM;
		r = keytable_set(&p->by_tid, tid_key(pid, tid), (uint32_t)p->n_threads);
		if (r < 0)
			return r;
		i = (int64_t)p->n_threads++;
		p->threads[i] = (struct thread){ 0 };
	}
	*ret = &p->threads[i];
	return 0;
}

int processes_new(struct processes **ret)
{
	struct processes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	/* The idle threads, which have no record. */
	if (processes_comm(p, 0, 0, "swapper", false) < 0) {
		processes_free(p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

void processes_free(struct processes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n_processes; i++)
		maps_unref(p->processes[i].maps);
	maps_unref(p->kernel);
	dsos_done(&p->dsos);
	keytable_done(&p->by_pid);
	keytable_done(&p->by_tid);
	free(p->processes);
	free(p->threads);
	free(p);
}

int processes_comm(struct processes *p, uint32_t pid, uint32_t tid, const char *comm, bool exec)
{
	struct process *process;
	struct thread *thread;
	int r;

	r = get_process(p, pid, &process);
	if (r == 0)
		r = get_thread(p, pid, tid, &thread);
	if (r < 0)
		return r;
	if (exec)
		processes_unmap(p, pid);
	memset(thread->comm, 0, sizeof(thread->comm));
	memcpy(thread->comm, comm, strnlen(comm, sizeof(thread->comm) - 1));
	return 0;
}

int processes_fork(struct processes *p, uint32_t ppid, uint32_t ptid, uint32_t pid, uint32_t tid)
{
	const char *name = processes_name(p, ppid, ptid);
	struct process *parent, *child;
	char comm[COMM_SIZE] = "";
	struct thread *thread;
	struct map_node *maps;
	int r;

	if (name)
		memcpy(comm, name, strlen(name) + 1);
	r = get_thread(p, pid, tid, &thread);
	if (r < 0)
		return r;
	memcpy(thread->comm, comm, sizeof(comm));
	if (pid == ppid)
		return 0;
	r = get_process(p, ppid, &parent);
	if (r < 0)
		return r;
	maps = maps_ref(parent->maps); /* parent may move now */
	r = get_process(p, pid, &child);
	if (r < 0) {
		maps_unref(maps);
		return r;
	}
	maps_unref(child->maps);
	child->maps = maps;
	return 0;
}

/* Name and mappings stay available until the number is reused. */
int processes_exit(struct processes *p, uint32_t pid, uint32_t tid)
{
	struct thread *thread;

	return get_thread(p, pid, tid, &thread);
}

void processes_unmap(struct processes *p, uint32_t pid)
{
	int64_t i = keytable_get(&p->by_pid, pid);

	if (i < 0)
		return;
	maps_unref(p->processes[i].maps);
	p->processes[i].maps = NULL;
}

int processes_map(struct processes *p, uint32_t pid, uint64_t start, uint64_t size, uint64_t offset,
		  const char *path, const uint8_t *build_id, size_t build_id_size, uint64_t device,
		  uint64_t inode, const struct map **ret)
{
	bool kernel = pid == (uint32_t)-1;
	struct map_node **maps = &p->kernel;
	struct process *process;
	struct map map = {
		.start = start,
		.end = size > UINT64_MAX - start ? UINT64_MAX : start + size,
		.offset = offset,
	};
	int r;

	if (!kernel) {
		r = get_process(p, pid, &process);
		if (r < 0)
			return r;
		maps = &process->maps;
	}
	r = dsos_get(&p->dsos, path, build_id, build_id_size, device, inode, &map.dso);
	if (r < 0)
		return r;
	if (kernel)
		map.dso->kernel = true;
	if (map.start < map.end) {
		r = maps_insert(maps, &map);
		if (r < 0)
			return r;
	}
	if (ret)
		*ret = maps_find(*maps, start);
	return 0;
}

int processes_unmap_symbol(struct processes *p, uint64_t start, const char *name)
{
	const struct map *map = maps_find(p->kernel, start);

	if (!map || map->start != start || strcmp(map->dso->path, name) != 0)
		return 0;
	return maps_remove(&p->kernel, start, map->end);
}

int processes_build_id(struct processes *p, const char *path, const uint8_t *build_id, size_t size)
{
	return dsos_announce(&p->dsos, path, build_id, size);
}

const char *processes_name(const struct processes *p, uint32_t pid, uint32_t tid)
{
	int64_t i = keytable_get(&p->by_tid, tid_key(pid, tid));

	if (i >= 0 && p->threads[i].comm[0])
		return p->threads[i].comm;
	if (tid != pid)
		return processes_name(p, pid, pid);
	return NULL;
}

const struct map *processes_find(const struct processes *p, uint32_t pid, uint64_t address,
				 bool kernel)
{
	int64_t i;

	if (kernel)
		return maps_find(p->kernel, address);
	i = keytable_get(&p->by_pid, pid);
	return i < 0 ? NULL : maps_find(p->processes[i].maps, address);
}

size_t processes_dsos(const struct processes *p)
{
	return p->dsos.n;
}

struct dso *processes_dso(struct processes *p, size_t i)
{
	return dsos_at(&p->dsos, i);
}
