// SPDX-License-Identifier: GPL-2.0-only
/*
 * A PMU whose AUX area is filled with a known pattern, for machines whose hardware traces nothing.
 *
 * While an event of it is enabled a timer of its CPU writes `bytes` bytes every `interval`
 * microseconds. The stream is of 64-bit words: each is its own offset in the stream, in bytes, with
 * the CPU's number in its upper 16 bits. So whoever has a part of the stream knows where it
 * belongs, and that nothing is missing. In an area that overwrites itself the trace goes round and
 * round; `modulo` makes aux_head an offset in the area, as some hardware does, instead of one in
 * the stream.
 *
 * An event and its AUX area have one stream: it continues where the event was stopped, or paused
 * (where the kernel can pause AUX events). Samples of other events can have its newest part.
 */
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#define CPU_SHIFT 48
#define BYTES_DEFAULT 4096
#define BYTES_MAX (16 << 20)
#define INTERVAL_DEFAULT 1000 /* us */
#define INTERVAL_MIN 100

static char *name = "aux_pattern";
module_param(name, charp, 0444);
MODULE_PARM_DESC(name, "name of the PMU");

static char *cpus;
module_param(cpus, charp, 0444);
MODULE_PARM_DESC(cpus, "CPUs that have the PMU, as 0-3,7; without it, all");

static bool secret;
module_param(secret, bool, 0444);
MODULE_PARM_DESC(secret, "whether sysfs does not say which CPUs have it");

static struct cpumask supported;

/* The AUX area of an event. */
struct area {
	u64 *words;
	u64 size; /* bytes, a power of two */
	bool overwrite;
	u64 at;	   /* offset in the stream of the next byte */
	u64 begun; /* as of the last perf_aux_output_begin() */
};

/* What runs on a CPU. */
struct tracer {
	struct perf_output_handle handle;
	struct perf_event *event; /* NULL: nothing */
	struct hrtimer timer;
	ktime_t interval;
	u64 bytes;
	bool traces;
};

static DEFINE_PER_CPU(struct tracer, tracers);

static struct pmu pmu;

/* ── attributes ───────────────────────────────────────────────────────────────────────────── */

PMU_FORMAT_ATTR(bytes, "config:0-31");
PMU_FORMAT_ATTR(interval, "config:32-62");
PMU_FORMAT_ATTR(modulo, "config:63");

static struct attribute *formats[] = {
	&format_attr_bytes.attr,
	&format_attr_interval.attr,
	&format_attr_modulo.attr,
	NULL,
};

static const struct attribute_group format_group = { .name = "format", .attrs = formats };

static ssize_t cpumask_show(struct device *device, struct device_attribute *attribute, char *buffer)
{
	return sysfs_emit(buffer, "%*pbl\n", cpumask_pr_args(&supported));
}
static DEVICE_ATTR_RO(cpumask);

/* As intel_pt has it. */
static ssize_t max_nonturbo_ratio_show(struct device *device, struct device_attribute *attribute,
				       char *buffer)
{
	return sysfs_emit(buffer, "24\n");
}
static DEVICE_ATTR_RO(max_nonturbo_ratio);

static struct attribute *others[] = {
	&dev_attr_cpumask.attr,
	&dev_attr_max_nonturbo_ratio.attr,
	NULL,
};

static umode_t is_visible(struct kobject *kobject, struct attribute *attribute, int i)
{
	return attribute == &dev_attr_cpumask.attr && (!cpus || secret) ? 0 : attribute->mode;
}

static const struct attribute_group other_group = { .attrs = others, .is_visible = is_visible };

static const struct attribute_group *groups[] = { &format_group, &other_group, NULL };

static u64 bytes_of(const struct perf_event *event)
{
	u64 bytes = event->attr.config & U32_MAX;

	return (bytes ? bytes : BYTES_DEFAULT) & ~7ULL;
}

static u64 interval_of(const struct perf_event *event)
{
	u64 interval = event->attr.config >> 32 & (U32_MAX >> 1);

	return interval ? interval : INTERVAL_DEFAULT;
}

static bool is_modulo(const struct perf_event *event)
{
	return event->attr.config >> 63;
}

/* ── the area ─────────────────────────────────────────────────────────────────────────────── */

static void *setup_aux(struct perf_event *event, void **pages, int n, bool overwrite)
{
	struct area *area = kzalloc(sizeof(*area), GFP_KERNEL);
	struct page **list = kcalloc(n, sizeof(*list), GFP_KERNEL);

	if (!area || !list)
		goto fail;
	for (int i = 0; i < n; i++)
		list[i] = virt_to_page(pages[i]);
	area->words = vmap(list, n, VM_MAP, PAGE_KERNEL);
	if (!area->words)
		goto fail;
	kfree(list);
	area->size = (u64)n << PAGE_SHIFT;
	area->overwrite = overwrite;
	return area;
fail:
	kfree(list);
	kfree(area);
	return NULL;
}

static void free_aux(void *aux)
{
	struct area *area = aux;

	vunmap(area->words);
	kfree(area);
}

/* Words that would be overwritten at once need not be written. */
static void fill(struct area *area, u64 bytes)
{
	u64 cpu = (u64)raw_smp_processor_id() << CPU_SHIFT, end = area->at + bytes;
	u64 at = bytes > area->size ? end - area->size : area->at;

	for (; at < end; at += 8)
		area->words[(at & (area->size - 1)) / 8] = cpu | at;
	area->at = end;
}

/* ── tracing ──────────────────────────────────────────────────────────────────────────────── */

static bool output_begin(struct tracer *t)
{
	struct area *area = perf_aux_output_begin(&t->handle, t->event);

	if (!area)
		return false;
	area->begun = area->at;
	return true;
}

static void output_end(struct tracer *t)
{
	struct area *area = perf_get_aux(&t->handle);
	u64 size;

	if (!area)
		return;
	size = area->at - area->begun;
	if (area->overwrite) {
		t->handle.head = is_modulo(t->event) ? area->at & (area->size - 1) : area->at;
		size = min(size, area->size);
	}
	/* The words are there before those who read aux_head look for them. */
	smp_wmb();
	perf_aux_output_end(&t->handle, size);
}

static bool is_paused(struct perf_event *event)
{
#ifdef PERF_PMU_CAP_AUX_PAUSE
	return READ_ONCE(event->hw.aux_paused);
#else
	return false;
#endif
}

/* Without overwriting, each portion is handed over; if there is no more room perf disables the
 * event, as it is to be told of by PERF_AUX_FLAG_TRUNCATED. */
static bool trace(struct tracer *t)
{
	struct area *area = perf_get_aux(&t->handle);
	u64 bytes = t->bytes;

	if (!area)
		return false;
	if (is_paused(t->event))
		return true;
	if (area->overwrite) {
		fill(area, bytes);
		return true;
	}
	if (bytes > t->handle.size) {
		bytes = t->handle.size & ~7UL;
		perf_aux_output_flag(&t->handle, PERF_AUX_FLAG_TRUNCATED);
	}
	fill(area, bytes);
	output_end(t);
	return output_begin(t);
}

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	struct tracer *t = container_of(timer, struct tracer, timer);

	if (!t->traces || !trace(t))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, t->interval);
	return HRTIMER_RESTART;
}

/* ── perf's calls, on the event's CPU with interrupts off ─────────────────────────────────── */

static bool is_pause_or_resume(int mode)
{
#ifdef PERF_PMU_CAP_AUX_PAUSE
	return mode & (PERF_EF_PAUSE | PERF_EF_RESUME); /* hw.aux_paused says it */
#else
	return false;
#endif
}

static void start(struct perf_event *event, int mode)
{
	struct tracer *t = this_cpu_ptr(&tracers);

	if (is_pause_or_resume(mode) || t->traces)
		return;
	t->bytes = bytes_of(event);
	t->interval = ns_to_ktime(interval_of(event) * NSEC_PER_USEC);
	if (!output_begin(t)) {
		event->hw.state = PERF_HES_STOPPED;
		return;
	}
	event->hw.state = 0;
	t->traces = true;
	hrtimer_start(&t->timer, t->interval, HRTIMER_MODE_REL_PINNED_HARD);
}

static void stop(struct perf_event *event, int mode)
{
	struct tracer *t = this_cpu_ptr(&tracers);

	if (is_pause_or_resume(mode))
		return;
	event->hw.state |= PERF_HES_STOPPED;
	if (!t->traces)
		return;
	/* The timer is pinned to this CPU, so its function does not run now. */
	t->traces = false;
	hrtimer_try_to_cancel(&t->timer);
	output_end(t);
}

static int add(struct perf_event *event, int mode)
{
	struct tracer *t = this_cpu_ptr(&tracers);

	if (t->event)
		return -EBUSY;
	t->event = event;
	event->hw.state = PERF_HES_STOPPED;
	if (mode & PERF_EF_START)
		start(event, mode);
	return 0;
}

static void del(struct perf_event *event, int mode)
{
	stop(event, PERF_EF_UPDATE);
	this_cpu_ptr(&tracers)->event = NULL;
}

static void read_nothing(struct perf_event *event)
{
}

static int event_init(struct perf_event *event)
{
	if (event->attr.type != pmu.type)
		return -ENOENT;
	if (event->cpu >= 0 && !cpumask_test_cpu(event->cpu, &supported))
		return -ENOENT;
	if (bytes_of(event) > BYTES_MAX || interval_of(event) < INTERVAL_MIN)
		return -EINVAL;
	return 0;
}

/* ── samples ──────────────────────────────────────────────────────────────────────────────── */

/* The kernel exports it to no module. */
static typeof(perf_output_copy_aux) *copy_aux;

static int find_copy_aux(void)
{
	struct kprobe probe = { .symbol_name = "perf_output_copy_aux" };
	int r = register_kprobe(&probe);

	if (r < 0)
		return r;
	copy_aux = (void *)probe.addr;
	unregister_kprobe(&probe);
	return 0;
}

/* The newest `size` bytes; zeroes where there are not as many yet. */
static long snapshot_aux(struct perf_event *event, struct perf_output_handle *handle,
			 unsigned long size)
{
	struct tracer *t = this_cpu_ptr(&tracers);
	struct area *area = t->event == event && t->traces ? perf_get_aux(&t->handle) : NULL;

	return area ? copy_aux(&t->handle, handle, area->at - size, area->at) : 0;
}

/* ── the module ───────────────────────────────────────────────────────────────────────────── */

static struct pmu pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_sw_context,
	.capabilities = PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE
#ifdef PERF_PMU_CAP_AUX_PAUSE
			| PERF_PMU_CAP_AUX_PAUSE
#endif
	,
	.attr_groups = groups,
	.event_init = event_init,
	.add = add,
	.del = del,
	.start = start,
	.stop = stop,
	.read = read_nothing,
	.setup_aux = setup_aux,
	.free_aux = free_aux,
	.snapshot_aux = snapshot_aux,
};

static void timer_init(struct hrtimer *timer)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(timer, on_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
#else
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer->function = on_timer;
#endif
}

static int __init aux_pattern_init(void)
{
	int cpu, r = 0;

	cpumask_copy(&supported, cpu_possible_mask);
	if (cpus)
		r = cpulist_parse(cpus, &supported);
	if (r < 0)
		return r;
	r = find_copy_aux();
	if (r < 0)
		return r;
	for_each_possible_cpu(cpu) timer_init(&per_cpu(tracers, cpu).timer);
	return perf_pmu_register(&pmu, name, -1);
}

static void __exit aux_pattern_exit(void)
{
	perf_pmu_unregister(&pmu);
}

module_init(aux_pattern_init);
module_exit(aux_pattern_exit);
MODULE_DESCRIPTION("PMU with an AUX area of a known pattern");
MODULE_LICENSE("GPL");
