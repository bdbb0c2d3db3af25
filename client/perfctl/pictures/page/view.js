/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The view: the visible time, the selected time, the filter, the record; the format of times,
 * numbers and colours. Parts receive changes and never change each other.
 */

const view = {
	from: 0, to: 1, // visible
	range: null, // selected: [from, to], or null
	record: -1,
	clock: "relative",
	color: "event",
	events: null, // Uint8Array: 1 is shown
	lanes: null,
	processes: null, // a Set: only these; null: all
	matches: null, // records that pass the filter, in order; null: all of them
	query: "",
	words: [], // of the query, those without a key
};

const $ = (id) => document.getElementById(id);

const listeners = {};
function on(what, f) {
	(listeners[what] ??= []).push(f);
}
/* what: time, range, filter, record, looks */
function changed(what) {
	for (const f of listeners[what] ?? []) f();
}

/* At most once a frame. */
function coalesced(f) {
	let waiting = false;
	return () => {
		if (waiting) return;
		waiting = true;
		requestAnimationFrame(() => {
			waiting = false;
			f();
		});
	};
}

/* ── time ── */

function look(from, to) {
	const least = 50, most = data.end * 1.02;
	let size = Math.min(Math.max(to - from, least), most);
	const middle = (from + to) / 2;
	from = Math.min(Math.max(middle - size / 2, -data.end * 0.01), data.end * 1.01 - size);
	view.from = from;
	view.to = from + size;
	changed("time");
}

const lookAtAll = () => look(-data.end * 0.005, data.end * 1.005);

function zoom(factor, t = (view.from + view.to) / 2) {
	look(t - (t - view.from) * factor, t + (view.to - t) * factor);
}

function select(range) {
	view.range = range && range[1] > range[0] ? range : null;
	changed("range");
}

/* The range that the tables and the flame graph show. */
const rangeOf = () => view.range ?? [-Infinity, Infinity];

/* list's part in the selected range: [from, to) as indices. */
function inRange(list) {
	const [from, to] = rangeOf();
	const n = list ? list.length : data.n;
	return [from === -Infinity ? 0 : lowerBound(list, from),
		to === Infinity ? n : lowerBound(list, to + 0.5)];
}

/* ── numbers ── */

const count = (n) => Math.round(n).toLocaleString("en-US").replaceAll(",", "\u202f");
const percent = (x) => (x * 100).toFixed(x < 0.0995 ? 2 : 1) + "\u202f%";

function plural(n, one, many = one + "s") {
	return `${count(n)} ${n === 1 ? one : many}`;
}

const units = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
function duration(ns) {
	const [unit, size] = units.find(([, s]) => Math.abs(ns) >= s) ?? units[3];
	const v = ns / size;
	return `${size === 1 ? v.toFixed(0) : v.toPrecision(v >= 1000 ? 4 : 3)}\u202f${unit}`;
}

const pad = (n, width = 2) => String(n).padStart(width, "0");

/* digits: behind the point of seconds. */
function timeText(t, digits = 9) {
	const cut = (ns) => pad(ns, 9).slice(0, digits);
	const point = digits ? "." : "";
	if (view.clock === "relative") {
		const ns = Math.abs(Math.round(t));
		return (t < -0.5 ? "-" : "") + Math.floor(ns / 1e9) + point + cut(ns % 1e9);
	}
	let ns = data.base + BigInt(Math.round(t));
	if (view.clock === "monotonic") return `${ns / 1000000000n}${point}${cut(ns % 1000000000n)}`;
	ns += data.realtime;
	const at = new Date(Number(ns / 1000000n));
	return `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}${point}${cut(ns % 1000000000n)}`;
}

/* ── colours: the same lightness for all of a kind, so that text on them is readable ── */

const dark = () => {
	const forced = document.documentElement.dataset.theme;
	return forced ? forced === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

/* First hues that colour-blind people can distinguish; then by the golden angle. */
const hues = [250, 65, 160, 345, 215, 35, 300, 110];
const colors = { of: new Map() };

function hueColor(key, hue, chroma, light) {
	let c = colors.of.get(key);
	if (!c) colors.of.set(key, c = `oklch(${light} ${chroma} ${hue.toFixed(0)})`);
	return c;
}

function eventColor(e) {
	const hue = e < hues.length ? hues[e] : (250 + e * 137.5) % 360;
	const step = [0, 0.09, -0.07][e % 3];
	return hueColor("e" + e, hue, 0.15, (dark() ? 0.7 : 0.62) + step);
}

function hash(text) {
	let h = 2166136261;
	for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
	return (h ^ h >>> 15) >>> 0;
}

function processColor(p) {
	const h = hash(p.comm + p.pid);
	const step = ((h >>> 9) % 3 - 1) * 0.05;
	return hueColor("p" + p.index, h % 360, 0.1, (dark() ? 0.5 : 0.8) + step);
}

function frameColor(frame) {
	const f = data.frames[frame], h = hash(f.name);
	const base = f.dso === "" ? 300 : f.kernel ? 45 : f.name === "[unknown]" ? 0 : 215 + hash(f.dso) % 5 * 18;
	const chroma = f.dso === "" ? 0.02 : f.name === "[unknown]" ? 0.01 : 0.09;
	return hueColor("f" + frame, base + h % 17 - 8, chroma, (dark() ? 0.44 : 0.81) + (h >>> 8) % 7 * 0.012);
}

/* -1: less, to 1: more */
function changeColor(by) {
	const part = Math.round(Math.min(1, Math.abs(by)) * 20) / 20;
	return hueColor(`c${by < 0 ? -part : part}`, by < 0 ? 250 : 25, part * 0.16, (dark() ? 0.42 : 0.86) - (dark() ? -0.1 : 0.14) * part);
}

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function readColors() {
	colors.of.clear();
	for (const name of ["ground", "raised", "line", "text", "faint", "accent", "select", "match", "bad", "idle"])
		colors[name] = css("--" + name);
}

/* ── canvases ── */

/* Sized in css pixels, sharp on any screen. */
function canvasOf(element, width, height) {
	const scale = devicePixelRatio || 1;
	const w = Math.max(1, Math.round(width * scale)), h = Math.max(1, Math.round(height * scale));
	if (element.width !== w || element.height !== h) {
		element.width = w;
		element.height = h;
		element.style.width = width + "px";
		element.style.height = height + "px";
	}
	const c = element.getContext("2d");
	c.setTransform(scale, 0, 0, scale, 0, 0);
	c.clearRect(0, 0, width, height);
	c.font = "11px system-ui, sans-serif";
	c.textBaseline = "middle";
	return c;
}

/* As much of a text as fits into width, or nothing. */
function fitted(c, text, width) {
	const letter = 6.1;
	if (width < 18) return "";
	if (text.length * 9 > width && c.measureText(text).width > width) {
		let n = Math.floor(width / letter);
		while (n > 1 && c.measureText(text.slice(0, n) + "…").width > width) n--;
		return n > 1 ? text.slice(0, n) + "…" : "";
	}
	return text;
}

/* ── the tip under the mouse ── */

/* lines: [text, …] or {dot, text}; the first is the title. */
function showTip(x, y, lines) {
	const tip = $("tip");
	tip.replaceChildren(...lines.map((line, i) => {
		const row = document.createElement(i ? "div" : "b");
		row.textContent = line.text ?? line;
		if (line.color) {
			row.className = "dotted";
			row.style.setProperty("--dot", line.color);
		}
		return row;
	}));
	tip.hidden = false;
	const box = tip.getBoundingClientRect();
	const right = x + 14 + box.width < innerWidth - 6;
	tip.style.left = Math.max(6, right ? x + 14 : x - box.width - 10) + "px";
	tip.style.top = Math.max(6, Math.min(y + 16, innerHeight - box.height - 6)) + "px";
}

function hideTip() {
	$("tip").hidden = true;
}

const NO_CPU = 8192; // for records without a CPU
const cpuName = (cpu) => (cpu === NO_CPU ? "?" : cpu);
const isMine = (p) => !view.processes || view.processes.has(p);
/* Whether it is a record of the chosen processes, or about them. */
const isOfMine = (i) => isMine(data.tasks[data.task[i]].process) || !!data.about && aboutOf(i).some(isMine);
const procName = (p) => (p.pid || !p.tasks ? `${p.comm} (${p.pid | 0})` : p.comm);
const taskName = (t) => (t.tid ? `${t.comm} ${t.pid | 0}/${t.tid | 0}` : t.comm);
