/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The summary: the head, the switches for events, and the tables of processes and events in the
 * selection.
 */

function element(name, text, attributes = {}) {
	const e = document.createElement(name);
	if (text !== undefined) e.textContent = text;
	for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
	return e;
}

/* An event that only carries sideband has no records. */
const realEvents = () => data.events.filter((e) => e.count || !e.dummy);

function longDate(ns) {
	return new Date(Number(ns / 1000000n)).toLocaleString(undefined,
		{ dateStyle: "medium", timeStyle: "medium" });
}

function drawHead() {
	const { info } = data, [lost, atLeast] = coverage.sum(), name = data.histories.length ? "lost or missed" : "lost";
	$("what").textContent = shown(info.what);
	document.title = `${shown(info.what)} · perfctl report`;
	$("where").textContent = [info.hostname, info.release && `Linux ${info.release}`, info.cpudesc,
		data.realtime && data.n ? longDate(data.base + data.realtime) : ""].filter(Boolean).map(shown).join("  ·  ");
	const facts = [
		[duration(data.n ? data.end : 0), "of time"], [count(data.n), data.n === 1 ? "record" : "records"],
		[count(data.cpus.length), data.cpus.length === 1 ? "CPU" : "CPUs"],
		[count(realEvents().length), realEvents().length === 1 ? "event" : "events"],
		[count(data.processes.length), "processes"],
		[count(lost) + (atLeast ? "+" : ""), info.damaged ? name + ", and damaged" : name, lost || info.damaged ? "bad" : atLeast ? "" : "good"],
	];
	$("counts").replaceChildren(...facts.map(([value, name, kind = ""]) => {
		const d = element("div", undefined, { class: kind });
		d.append(element("dt", name), element("dd", value));
		return d;
	}));
}

function drawFacts() {
	const { info } = data, first = data.base, last = data.base + BigInt(Math.round(data.n ? data.end : 0));
	const mono = (ns) => `${ns / 1000000000n}.${pad(ns % 1000000000n, 9)}`;
	const list = [
		["What", info.what], ["Host", info.hostname], ["Kernel", info.release], ["Machine", [info.arch, info.cpudesc].filter(Boolean).join(", ")],
		["CPUs", info.cpus_online ? `${info.cpus_online} online` : ""], ["Command", info.cmdline],
		["Monotonic", data.n ? `${mono(first)} – ${mono(last)} s` : ""],
		["Time of day", data.realtime && data.n ? `${longDate(first + data.realtime)} – ${longDate(last + data.realtime)}` : ""],
		["Selected", info.selected],
		["Lost", info.lost_records ? `${plural(info.lost_records, "record")}, told by ${plural(data.lost.length, "mark")} (red in the timeline)`
			: "the recording tells of no lost record"],
		...coverage.about(),
		["Damaged", info.damaged], ["Names forgotten", info.nameless ? `${plural(info.nameless, "record")} of processes that nobody named` : ""],
		["Made by", `perfctl ${info.version}`],
	];
	$("facts").replaceChildren(...list.filter(([, v]) => v).flatMap(([k, v]) => [element("dt", k), element("dd", shown(String(v)))]));
}

function drawEvents() {
	const sorted = realEvents().sort((a, b) => b.count - a.count);
	const some = sorted.slice(0, 14), box = $("events");
	const chip = (e) => {
		const b = element("button", undefined, { type: "button", "aria-pressed": !!view.events[e.index], title: `${e.name}: click to hide or show, double click for it alone` });
		b.style.setProperty("--dot", eventColor(e.index));
		b.append(element("span", e.name), element("small", count(e.count)));
		b.onclick = () => toggleEvent(e.index);
		b.ondblclick = () => {
			view.events.fill(0)[e.index] = 1;
			filter.start();
		};
		return b;
	};
	box.replaceChildren(...some.map(chip));
	if (sorted.length > some.length) {
		const more = element("button", `and ${sorted.length - some.length} more…`, { type: "button", class: "more" });
		more.onclick = () => showTab("tab-counts");
		box.append(more);
	}
}

function toggleEvent(e) {
	view.events[e] ^= 1;
	filter.start();
}

function drawProcessList() {
	const option = (value, text) => element("option", text, { value });
	const list = [...data.processes].sort((a, b) => b.count - a.count).slice(0, 500);
	$("process").replaceChildren(option("", "all processes"), ...list.map((p) => option(p.index, `${procName(p)}  ${count(p.count)}`)));
	showPicked("");
}

/* The choice above the timeline: one process, or a name for several. */
function showPicked(name) {
	const select = $("process"), [first] = view.processes ?? [];
	select.querySelector("[value=several]")?.remove();
	if (!view.processes) return void (select.value = "");
	select.value = view.processes.size === 1 ? first.index : "several";
	if (select.selectedIndex >= 0) return;
	const one = view.processes.size === 1;
	select.append(element("option", one ? procName(first) : `${name} (${plural(view.processes.size, "process", "processes")})`, { value: one ? first.index : "several" }));
	select.selectedIndex = select.length - 1;
}

/* ── of the selection ── */

/* Counts by process and by event, and the time on CPUs. */
function summarize() {
	const procs = data.processes.map(() => ({ n: 0, about: 0, samples: 0, ran: 0 }));
	const lanes = data.cpus.length <= 8 ? data.cpus.length : 0; // others have no columns
	const events = { n: new Float64Array(data.events.length), cpus: new Float64Array(data.events.length * lanes) };
	const [lo, hi] = inRange(view.matches);

	for (let k = lo; k < hi; k++) {
		const i = view.matches ? view.matches[k] : k, p = procs[data.tasks[data.task[i]].process.index];
		p.n++;
		if (data.about) for (const of of aboutOf(i)) procs[of.index].about++;
		if (flame.has[data.event[i]]) p.samples++;
		events.n[data.event[i]]++;
		if (lanes) events.cpus[data.event[i] * lanes + data.lane[i]]++;
	}
	const [from, to] = rangeOf().map((t) => Math.max(0, Math.min(data.end, t)));
	data.runs.forEach((runs, l) => {
		if (!runs || !view.lanes[l]) return;
		for (let k = runAt(runs, from), end = runAt(runs, to); k <= end; k++) {
			const task = data.tasks[runs.task[k]];
			if (task.tid)
				procs[task.process.index].ran += Math.max(0, Math.min(to, runs.start[k + 1]) - Math.max(from, runs.start[k]));
		}
	});
	return { procs, events, lanes, n: hi - lo, span: to - from };
}

/* heads: [title, right?]; rows: {cells (texts or elements), part, color, pick, picked, depth, fold (by
 * arrow keys: whether to)} */
function drawTable(box, heads, rows, more) {
	const table = element("table"), head = element("tr");
	heads.forEach(([text, right]) => head.append(element("th", text, { scope: "col", class: right ? "right" : "" })));
	table.append(element("thead"), element("tbody"));
	table.tHead.append(head);
	for (const { cells, part, color, pick, picked, depth, fold } of rows) {
		const row = element("tr", undefined, { tabindex: 0, "aria-selected": !!picked });
		cells.forEach((text, i) => {
			const cell = element("td", undefined, { class: heads[i][1] ? "right" : "" });
			cell.append(text ?? "");
			if (!i) {
				cell.style.setProperty("--depth", depth ?? 0);
				cell.style.setProperty("--dot", color);
				cell.style.setProperty("--part", (part * 100).toFixed(2) + "%");
				cell.className = "name";
			}
			row.append(cell);
		});
		row.onclick = pick;
		row.onkeydown = (e) => {
			const enters = e.key === "Enter" || e.key === " ", arrow = fold && /^Arrow(Left|Right)$/.test(e.key);
			if (e.target !== row || !enters && !arrow) return;
			e.preventDefault();
			e.stopPropagation();
			if (enters) pick();
			else fold(e.key === "ArrowLeft");
		};
		table.tBodies[0].append(row);
	}
	box.replaceChildren(table);
	if (more) box.append(element("p", more));
}

function drawCounts() {
	const { events, lanes, n, span } = summarize(), most = 2000;
	const list = realEvents().sort((a, b) => events.n[b.index] - events.n[a.index]);
	const some = data.cpus.slice(0, lanes), of = new Map();
	for (const h of data.histories) for (let e = h.first; e < h.first + h.n; e++) of.set(e, h);
	const cover = (e) => {
		const h = of.get(e.index);
		return !of.size ? [] : h ? [h.to > h.from ? duration(Math.max(0, Math.min(data.end, h.to) - Math.max(0, h.from))) : "–", coverage.missed(h)] : ["?", "?"];
	};
	drawTable($("event-counts"), [["event"], ["records", true], ["", true], ["a second", true], ...of.size ? [["complete for", true], ["missed", true]] : [], ...some.map((c) => ["CPU " + cpuName(c), true])],
		list.slice(0, most).map((e) => ({
			cells: [e.name, count(events.n[e.index]), n ? percent(events.n[e.index] / n) : "", count(events.n[e.index] / span * 1e9), ...cover(e),
				...some.map((_, l) => count(events.cpus[e.index * lanes + l]))],
			part: events.n[e.index] / Math.max(1, n), color: eventColor(e.index), picked: !view.events[e.index] ? false : filter.active(),
			pick: () => toggleEvent(e.index),
		})), list.length > most ? `and ${count(list.length - most)} more` : "");
}

/* list: of data.processes; null: all of them. */
function pickProcesses(list, name) {
	view.processes = list ? new Set(list) : null;
	showPicked(name);
	return filter.start();
}

const tabs = { "tab-changes": "changes", "tab-flame": "flame", "tab-processes": "processes", "tab-counts": "event-counts", "tab-latency": "latency" };

function showTab(tab) {
	for (const [id, panel] of Object.entries(tabs)) {
		$(id).setAttribute("aria-selected", id === tab);
		$(id).tabIndex = id === tab ? 0 : -1;
		$(panel).hidden = id !== tab;
	}
	summary.again();
	flame.again();
}

const summary = { again: null };

function startSummary() {
	summary.again = coalesced(() => {
		if (!$("processes").hidden) tree.draw();
		if (!$("event-counts").hidden) drawCounts();
		if (!$("latency").hidden) latency.draw();
		if (!$("changes").hidden) changes.draw();
	});
	on("range", summary.again);
	on("range", () => {
		$("range").textContent = view.range ? `${duration(view.range[1] - view.range[0])} selected` : "";
	});
	on("filter", () => {
		drawEvents();
		summary.again();
	});
	on("looks", () => {
		drawEvents();
		summary.again();
	});
	drawHead();
	drawFacts();
	drawProcessList();
	tree.build();
	$("tab-latency").hidden = !data.latencies.length;
	$("tab-changes").hidden = !data.against;
	$("process").onchange = (e) => pickProcesses(e.target.value === "" ? null : [data.processes[e.target.value]]);
	for (const id of Object.keys(tabs)) {
		$(id).onclick = () => showTab(id);
		$(id).onkeydown = (e) => {
			const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
			if (!by) return;
			e.stopPropagation();
			const ids = Object.keys(tabs).filter((tab) => !$(tab).hidden), to = ids[(ids.indexOf(id) + by + ids.length) % ids.length];
			showTab(to);
			$(to).focus();
		};
	}
}
