/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The records: read from the page's blocks (html.h has their format), kept as columns. Times are
 * in ns since the first record. Texts are untrusted: they only go into text nodes and canvases.
 */
"use strict";

const data = {
	n: 0,
	end: 0, // time of the last record
	info: null, // the file's facts about itself
	against: null, // what was different: since, until and before as times of the page
	latencies: [], // as `perfctl report --json` has them, with key, title, label
	lost: [], // [time, cpu, records]
	histories: [], // {first, n (events), from, to, cpus: [[cpu, from], …], lost, missed, missed_at_least, limited}
	cpus: [], // numbers; one lane each
	events: [], // {name, count, …}
	tasks: [], // {pid, tid, comm, process}
	about: null, // of records: {ends, tasks}: the tasks that each names, behind one another; null: not told
	processes: [], // {pid, comm, group, tasks, count}
	groups: [], // the tree of processes: {comm, parent (-1: none), n (processes)}, parents first
	chunks: [], // {first, n, texts, ends}
	series: [], // [lane]: Map from event to records
	lanes: [], // [lane]: records
	runs: [], // [lane]: running tasks
	frames: [], // {name, dso, kernel}
	nodes: { parent: [0], frame: [0], n: 1 }, // call chains: a tree; parents precede children
};

class Reader {
	constructor(bytes) {
		this.bytes = bytes;
		this.at = 0;
	}
	number() {
		let v = 0;
		for (let unit = 1; ; unit *= 128) {
			const b = this.bytes[this.at++];
			if (b < 128) return v + b * unit;
			if (b === undefined) throw new Error("the page is cut off");
			v += (b & 127) * unit;
		}
	}
	signed() {
		const v = this.number();
		return v % 2 ? -(v + 1) / 2 : v / 2;
	}
	column() {
		const b = this.bytes, at = this.at;
		const size = (b[at] | b[at + 1] << 8 | b[at + 2] << 16 | b[at + 3] << 24) >>> 0;
		this.at = at + 4 + size;
		if (this.at > b.length) throw new Error("the page is cut off");
		return new Reader(b.subarray(at + 4, this.at));
	}
}

async function unpack(element) {
	const text = element.textContent;
	let bytes;

	element.remove();
	if (Uint8Array.fromBase64) {
		bytes = Uint8Array.fromBase64(text);
	} else {
		const raw = atob(text);
		bytes = new Uint8Array(raw.length);
		for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
	}
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* The end of each text: texts follow one another, one a line. */
function lineEnds(text, n) {
	const ends = new Uint32Array(n);
	for (let i = 0, at = 0; i < n; i++) ends[i] = at = text.indexOf("\n", at + (i ? 1 : 0));
	return ends;
}

function readChunk(bytes, base, laneOf) {
	const d = data, head = new Reader(bytes), n = head.number(), texts = head.number();
	const [time, cpu, event, task, text, node, period, next, about] = Array.from({ length: 9 }, () => head.column());
	const last = base.first + n;
	let t = base.time;

	for (let i = base.first; i < last; i++) {
		const e = event.number();
		t += time.signed();
		d.time[i] = t;
		d.lane[i] = laneOf.get(cpu.number());
		d.event[i] = e;
		d.task[i] = task.number();
		d.text[i] = text.number();
		d.node[i] = node.number();
		d.period[i] = period.number();
		if (d.events[e].switch) d.next[i] = next.number();
		if (d.about) {
			for (let k = about.number(); k > 0; k--) d.about.tasks.push(about.number());
			d.about.ends[i] = d.about.tasks.length;
		}
	}
	const all = new TextDecoder().decode(head.column().bytes);
	d.chunks.push({ first: base.first, n, texts: all, ends: lineEnds(all, texts) });
	return { first: last, time: t };
}

function readNodes(bytes) {
	const r = new Reader(bytes), n = r.number() + 1;
	const parent = new Uint32Array(n), frame = new Uint32Array(n);

	for (let i = 1; i < n; i++) {
		parent[i] = i - r.number();
		frame[i] = r.number();
	}
	data.nodes = { parent, frame, n };
}

/* Records of each CPU, and of each event on it, by a counting sort. A file can have many events, so only
 * those with records take memory. */
function index() {
	const d = data, counts = d.cpus.map(() => new Map()), sizes = new Uint32Array(d.cpus.length);

	for (let i = 0; i < d.n; i++) {
		const of = counts[d.lane[i]], e = d.event[i], c = of.get(e);
		if (c) c.n++;
		else of.set(e, { n: 1, at: 0 });
		sizes[d.lane[i]]++;
	}
	for (const [l, of] of counts.entries()) {
		const events = [...of.keys()].sort((a, b) => a - b);
		d.series.push(new Map(events.map((e) => [e, of.get(e).list = new Uint32Array(of.get(e).n)])));
		d.lanes.push(new Uint32Array(sizes[l]));
	}
	sizes.fill(0);
	for (let i = 0; i < d.n; i++) {
		const l = d.lane[i], c = counts[l].get(d.event[i]);
		c.list[c.at++] = i;
		d.lanes[l][sizes[l]++] = i;
	}
	for (const p of d.processes) p.count = 0;
	for (let i = 0; i < d.n; i++) d.tasks[d.task[i]].process.count++;
}

/* Runs: from each sched_switch to the next one of that CPU, and from a record with a new name of
 * the same thread (an exec). busy: ns not idle before each run. unsure: the task that leaves is not
 * the task that had come: records are missing. */
function findRuns() {
	const d = data;

	for (const list of d.lanes) {
		const start = [], task = [], unsure = [];
		let switches = 0;
		const tid = (k) => d.tasks[task[k]].tid;
		for (const i of list) {
			const last = start.length - 1, same = last >= 0 && tid(last) === d.tasks[d.task[i]].tid;
			const t = d.time[i];
			if (last < 0 || same && d.task[i] !== task[last]) {
				start.push(last < 0 ? 0 : t);
				task.push(d.task[i]);
				unsure.push(0);
			}
			if (!d.events[d.event[i]].switch) continue;
			if (last >= 0 && !same) unsure[last] = 1;
			start.push(t);
			task.push(d.next[i]);
			unsure.push(0);
			switches++;
		}
		d.runs.push(switches ? asRuns(start, task, unsure) : null);
	}
}

function asRuns(start, task, unsure) {
	const n = start.length, busy = new Float64Array(n + 1);

	start.push(data.end);
	for (let k = 0; k < n; k++)
		busy[k + 1] = busy[k] + (data.tasks[task[k]].tid ? start[k + 1] - start[k] : 0);
	return { n, start: Float64Array.from(start), task: Uint32Array.from(task), busy, unsure: Uint8Array.from(unsure) };
}

function addTasks(list) {
	const byKey = new Map();

	for (let i = 0; i + 3 < list.length; i += 4) {
		const t = { pid: list[i], tid: list[i + 1], comm: shown(data.info.comms[list[i + 2]]) }, group = list[i + 3] - 1;
		const key = `${t.tid ? t.pid : 0} ${group} ${t.comm}`;
		let p = byKey.get(key);
		if (!p) {
			p = { pid: t.pid, comm: t.comm, group, tasks: 0, count: 0, index: data.processes.length };
			byKey.set(key, p);
			data.processes.push(p);
		}
		p.tasks++;
		t.process = p;
		data.tasks.push(t);
	}
}

/* Processes without a record of their own, to which others only switched: a group for each name. */
function addStrays() {
	const byComm = new Map(), pids = new Map();

	for (const p of data.processes) {
		if (p.group >= 0) continue;
		let g = byComm.get(p.comm);
		if (g === undefined) {
			byComm.set(p.comm, g = data.groups.length);
			data.groups.push({ comm: p.comm, parent: -1, n: 0 });
			pids.set(g, new Set());
		}
		p.group = g;
		data.groups[g].n = pids.get(g).add(p.pid).size;
	}
}

/* null: the page has none. */
async function readReport(id) {
	const block = document.getElementById(id);
	return block && JSON.parse(new TextDecoder().decode(await unpack(block)));
}

async function readAll(progress) {
	const d = data, info = await readReport("info");

	d.info = info;
	d.n = info.records;
	d.base = BigInt(info.base);
	d.realtime = BigInt(info.realtime_offset);
	d.lost = info.lost;
	d.histories = info.histories;
	d.latencies = await readReport("latencies") ?? [];
	d.against = await readReport("against");
	for (const time of d.against ? ["since", "until", "before"] : [])
		d.against[time] = Number(BigInt(Math.round(d.against[time])) - d.base);
	d.cpus = info.cpus;
	d.events = info.events.map((e, index) => ({ ...e, name: shown(e.name), short: shown(e.name.slice(e.tracepoint ? e.name.indexOf(":") + 1 : 0)), index }));
	d.frames = info.frames.map(([name, dso, kernel]) =>
		({ name: shown(name), dso: shown(info.dsos[dso]), kernel }));
	d.groups = info.tree.map(([comm, parent, n]) => ({ comm: shown(comm), parent: parent - 1, n }));
	addTasks(info.tasks);
	addStrays();
	d.time = new Float64Array(d.n);
	d.lane = new Uint16Array(d.n);
	d.event = new (d.events.length > 65536 ? Uint32Array : Uint16Array)(d.n);
	d.task = new Uint32Array(d.n);
	d.next = new Uint32Array(d.events.some((e) => e.switch) ? d.n : 0);
	d.text = new Uint32Array(d.n);
	d.node = new Uint32Array(d.n);
	d.period = new Float64Array(d.n);

	if (info.about) d.about = { ends: new Uint32Array(d.n), tasks: [] };

	const laneOf = new Map(d.cpus.map((cpu, lane) => [cpu, lane]));
	let base = { first: 0, time: 0 };
	for (const block of document.querySelectorAll("script.records")) {
		base = readChunk(await unpack(block), base, laneOf);
		progress(base.first, d.n);
		await pause();
	}
	if (base.first !== d.n) throw new Error(`of ${d.n} records only ${base.first} are there`);
	readNodes(await unpack(document.getElementById("nodes")));
	d.end = d.n ? Math.max(d.time[d.n - 1], 1) : 1;
	index();
	findRuns();
}

/* ── looking things up ── */

/* The first record of list (or of all, without one) at t or later. */
function lowerBound(list, t, lo = 0, hi = list ? list.length : data.n) {
	const time = data.time;
	while (lo < hi) {
		const m = (lo + hi) >>> 1;
		if (time[list ? list[m] : m] < t) lo = m + 1;
		else hi = m;
	}
	return lo;
}

function chunkOf(i) {
	let lo = 0, hi = data.chunks.length - 1;
	while (lo < hi) {
		const m = (lo + hi + 1) >>> 1;
		if (data.chunks[m].first <= i) lo = m;
		else hi = m - 1;
	}
	return data.chunks[lo];
}

function textOf(i) {
	const c = chunkOf(i), k = data.text[i];
	return shown(c.texts.slice(k ? c.ends[k - 1] + 1 : 0, c.ends[k]));
}

/* The processes that a record names beside its own. */
function aboutOf(i) {
	const { ends, tasks } = data.about;
	return tasks.slice(i ? ends[i - 1] : 0, ends[i]).map((t) => data.tasks[t].process);
}

/* The lane's run at t. */
function runAt(runs, t) {
	let lo = 0, hi = runs.n - 1;
	while (lo < hi) {
		const m = (lo + hi + 1) >>> 1;
		if (runs.start[m] <= t) lo = m;
		else hi = m - 1;
	}
	return lo;
}

/* Time that a lane was not idle before t. */
function busyBefore(runs, t) {
	const k = runAt(runs, t);
	return runs.busy[k] + (data.tasks[runs.task[k]].tid ? t - runs.start[k] : 0);
}

/* Invisible characters, and those that change the direction of writing, are shown escaped. */
function shown(text) {
	return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
		(c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

function pause() {
	return new Promise((go) => {
		const channel = new MessageChannel();
		channel.port1.onmessage = go;
		channel.port2.postMessage(0);
	});
}
