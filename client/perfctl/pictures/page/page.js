/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads the records, starts the parts, and handles keys. With "#test" in the address, optionally
 * followed by "=QUERY", it writes its counts into <pre id="test">, for tests.
 */

const faults = [];
addEventListener("error", (e) => faults.push(e.message));
addEventListener("unhandledrejection", (e) => faults.push(String(e.reason)));
document.addEventListener("securitypolicyviolation", (e) => faults.push(`refused: ${e.violatedDirective} ${e.blockedURI}`));

function setTheme(theme) {
	if (theme) document.documentElement.dataset.theme = theme;
	else delete document.documentElement.dataset.theme;
	readColors();
	changed("looks");
}

function setClock(clock) {
	view.clock = $("clock").value = clock;
	changed("looks");
}

function clearAll() {
	if (view.range) return select(null);
	$("query").value = view.query = "";
	view.events.fill(1);
	view.lanes.fill(1);
	pickProcesses(null);
}

function pageKey(e) {
	if (e.ctrlKey || e.altKey || e.metaKey || $("about").open) return;
	const typing = e.target.matches("input[type=search], select");
	if (e.key === "Escape") {
		if (typing) e.target.blur();
		else clearAll();
		return;
	}
	if (typing) return;
	const size = view.to - view.from, button = e.target.matches("button, input, tr");
	const keys = {
		w: () => zoom(0.7), s: () => zoom(1 / 0.7), "+": () => zoom(0.7), "=": () => zoom(0.7), "-": () => zoom(1 / 0.7),
		a: () => look(view.from - size * 0.15, view.to - size * 0.15), d: () => look(view.from + size * 0.15, view.to + size * 0.15),
		0: lookAtAll, Home: lookAtAll, n: () => step(1), p: () => step(-1),
		ArrowDown: () => step(1), ArrowUp: () => step(-1),
		ArrowLeft: () => look(view.from - size * 0.15, view.to - size * 0.15),
		ArrowRight: () => look(view.from + size * 0.15, view.to + size * 0.15),
		Enter: () => (view.range ? look(...view.range) : zoom(0.4)),
		"/": () => $("query").focus(), "?": () => $("about").showModal(),
		c: () => { $("color").value = view.color = view.color === "event" ? "process" : "event"; changed("looks"); },
		t: () => setTheme(dark() ? "light" : "dark"),
	};
	const f = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
	if (!f || button && (e.key === "Enter" || e.key === " ")) return;
	e.preventDefault();
	f();
}

/* The user can move the borders between the parts. */
function startSplits() {
	const root = document.documentElement.style;
	dragged($("split-y"), () => ({
		move: (m) => root.setProperty("--timeline", Math.max(110, m.clientY - $("timeline").getBoundingClientRect().top) + "px"),
	}));
	dragged($("split-x"), () => ({
		move(m) {
			const box = $("below").getBoundingClientRect();
			root.setProperty("--left", Math.min(85, Math.max(15, (m.clientX - box.left) / box.width * 100)) + "%");
		},
	}));
}

function startControls() {
	let wait = 0;
	$("query").addEventListener("input", (e) => {
		clearTimeout(wait);
		wait = setTimeout(() => {
			view.query = e.target.value.trim();
			filter.start();
		}, data.n > 200000 ? 180 : 60);
	});
	$("query").addEventListener("keydown", (e) => {
		if (e.key === "Enter") step(1);
	});
	$("filter").addEventListener("submit", (e) => e.preventDefault());
	$("clear").onclick = () => {
		select(null);
		clearAll();
	};
	$("color").onchange = (e) => {
		view.color = e.target.value;
		changed("looks");
	};
	$("clock").onchange = (e) => setClock(e.target.value);
	if (!data.realtime) $("clock").querySelector("[value=real]").disabled = true;
	$("theme").onclick = () => setTheme(dark() ? "light" : "dark");
	$("help").onclick = () => $("about").showModal();
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTheme(null));
	document.addEventListener("keydown", pageKey);
}

/* The timeline's initial height: all CPUs, if that leaves room for the rest. */
function firstShape() {
	const lane = data.runs.some(Boolean) ? 58 : 44;
	const height = Math.min(innerHeight * 0.42, Math.max(130, data.cpus.length * lane + 62)) +
		Math.min(coverage.list().length, coverage.most) * coverage.row;
	document.documentElement.style.setProperty("--timeline", height + "px");
}

async function selfTest(query, started) {
	const ready = performance.now() - started, byEvent = {};
	for (const e of data.event) byEvent[data.events[e].name] = (byEvent[data.events[e].name] ?? 0) + 1;
	flame.compute();
	timeline.draw();
	const result = {
		records: data.n, events: byEvent, lost: data.info.lost_records,
		cpus: Object.fromEntries(data.cpus.map((cpu, l) => [cpu, data.lanes[l].length])),
		flame: flame.total[0], flame_samples: flame.samples, ready,
		first: textOf(0), times: [0, data.n - 1].map((i) => String(data.base + BigInt(data.time[i]))),
	};
	view.query = $("query").value = query;
	const before = performance.now();
	await filter.start();
	records.count();
	timeline.draw();
	flame.matched = 0;
	flame.draw();
	Object.assign(result, { found: records.n, rows: records.shown, search: performance.now() - before, flame_matched: flame.matched, faults });
	$("test").textContent = JSON.stringify(result);
}

async function start() {
	const started = performance.now();
	if (typeof DecompressionStream === "undefined")
		throw new Error("this browser is too old: it has no DecompressionStream");
	await readAll((done, all) => { $("progress").textContent = `reading… ${percent(done / Math.max(1, all))}`; });
	view.events = new Uint8Array(data.events.length).fill(1);
	view.lanes = new Uint8Array(data.cpus.length).fill(1);
	readColors();
	firstShape();
	startTimeline();
	startCoverage();
	startFlame();
	startRecords();
	startSummary();
	startChanges();
	startControls();
	startSplits();
	document.body.classList.remove("loading");
	showTab(data.against ? "tab-changes" : flame.has.includes(1) ? "tab-flame" : "tab-processes");
	lookAtAll();
	await filter.start();
	changed("looks");
	const test = /^#test(?:=(.*))?$/.exec(location.hash);
	if (test && data.n) await selfTest(decodeURIComponent(test[1] ?? ""), started);
	document.body.dataset.ready = "";
}

start().catch((e) => {
	faults.push(String(e));
	$("progress").textContent = `This page cannot be shown: ${e.message}`;
	$("test").textContent = JSON.stringify({ faults });
});
