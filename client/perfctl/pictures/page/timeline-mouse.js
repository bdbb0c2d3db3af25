/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Mouse, touch and keyboard input of the timeline.
 */

/* The record nearest to x on a lane, among the enabled ones; -1: none within 4 pixels. */
function recordNear(lane, x) {
	const list = data.lanes[lane], t = timeline.t(x), reach = timeline.perPixel() * 4;
	let best = -1, distance = reach;
	const hi = lowerBound(list, t + reach);
	const lo = Math.max(lowerBound(list, t - reach), hi - 5000);

	for (let i = lo; i < hi; i++) {
		const d = Math.abs(data.time[list[i]] - t);
		if (d <= distance && isOn(list[i])) {
			best = list[i];
			distance = d;
		}
	}
	return best;
}

/* The records at pixel x by event; null if they are few. */
function crowdAt(lane, x) {
	const t = timeline.t(Math.floor(x)), end = t + timeline.perPixel(), seen = [];
	let all = 0;
	data.series[lane].forEach((list, e) => {
		if (!view.events[e]) return;
		const n = lowerBound(list, end) - lowerBound(list, t);
		if (n) seen.push([n, e]);
		all += n;
	});
	return all > 3 ? { all, seen: seen.sort((a, b) => b[0] - a[0]) } : null;
}

function tipOfRun(lane, t) {
	const runs = data.runs[lane], k = runAt(runs, t), task = data.tasks[runs.task[k]];
	const lines = [`${task.tid ? taskName(task) : "idle"}`, `on CPU ${cpuName(data.cpus[lane])} for ${duration(runs.start[k + 1] - runs.start[k])}`,
		`from ${timeText(runs.start[k])}`];
	if (!task.tid) lines.splice(2, 1);
	if (runs.unsure[k]) lines.push("records are missing in here: who ran is not sure");
	return lines;
}

function tipOfRecord(i) {
	const task = data.tasks[data.task[i]], text = textOf(i);
	return [{ text: data.events[data.event[i]].name, color: eventColor(data.event[i]) },
		`${timeText(data.time[i])}   CPU ${cpuName(data.cpus[data.lane[i]])}`, taskName(task),
		...(text ? [text.length > 400 ? text.slice(0, 400) + "…" : text] : [])];
}

function timelineTip(e) {
	const box = $("cpus").getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
	const lane = Math.floor(y / timeline.lane);
	if (x < timeline.gutter || !(lane in data.cpus)) return hideTip();
	const t = timeline.t(x), inside = y - lane * timeline.lane, runs = data.runs[lane];
	if (t < 0 || t > data.end) return hideTip();
	if (runs && inside < timeline.lane * 0.52) return showTip(e.clientX, e.clientY, tipOfRun(lane, t));
	const crowd = crowdAt(lane, x);
	if (crowd) {
		const lines = crowd.seen.slice(0, 8).map(([n, ev]) => ({ text: `${count(n)} × ${data.events[ev].name}`, color: eventColor(ev) }));
		if (crowd.seen.length > 8) lines.push(`and ${crowd.seen.length - 8} events more`);
		return showTip(e.clientX, e.clientY, [`${count(crowd.all)} records in ${duration(timeline.perPixel())}`, ...lines]);
	}
	const i = recordNear(lane, x);
	if (i < 0) return hideTip();
	showTip(e.clientX, e.clientY, tipOfRecord(i));
}

/* Follows a pressed pointer until it is released. */
function dragged(element, start) {
	element.addEventListener("pointerdown", (e) => {
		if (e.button > 1) return;
		const moves = start(e);
		if (!moves) return;
		element.setPointerCapture(e.pointerId);
		const move = (m) => moves.move?.(m);
		const up = (u) => {
			element.removeEventListener("pointermove", move);
			element.removeEventListener("pointerup", up);
			element.removeEventListener("pointercancel", up);
			moves.up?.(u);
		};
		element.addEventListener("pointermove", move);
		element.addEventListener("pointerup", up);
		element.addEventListener("pointercancel", up);
		e.preventDefault();
		if (!element.matches(".split")) $("timeline").focus({ preventScroll: true, focusVisible: false });
	});
}

function pan(e) {
	const { from, to } = view, x = e.clientX, per = timeline.perPixel();
	return { move: (m) => look(from - (m.clientX - x) * per, to - (m.clientX - x) * per) };
}

function pickOrSelect(e) {
	if (e.shiftKey || e.button === 1) return pan(e);
	const left = $("cpus").getBoundingClientRect().left, x0 = e.clientX - left;
	const lane = Math.floor((e.clientY - $("cpus").getBoundingClientRect().top) / timeline.lane);
	let moved = false;
	if (x0 < timeline.gutter) {
		view.lanes[lane] ^= 1;
		filter.start();
		return null;
	}
	return {
		move(m) {
			const x = m.clientX - left;
			if (!moved && Math.abs(x - x0) < 4) return;
			moved = true;
			const [a, b] = [timeline.t(x0), timeline.t(x)].sort((p, q) => p - q);
			select([Math.max(0, a), Math.min(data.end, b)]);
		},
		up() {
			if (moved) return;
			const i = recordNear(lane, x0);
			if (i >= 0) pickRecord(i, false);
			else select(null);
		},
	};
}

/* Zooms into the selection, or into the clicked run or place. */
function zoomInto(e) {
	const box = $("cpus").getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
	const lane = Math.floor(y / timeline.lane), t = timeline.t(x), runs = data.runs[lane];
	if (x < timeline.gutter) return;
	if (view.range && t >= view.range[0] && t <= view.range[1]) return look(...view.range);
	if (runs && y - lane * timeline.lane < timeline.lane * 0.52) {
		const k = runAt(runs, t), size = runs.start[k + 1] - runs.start[k];
		return look(runs.start[k] - size * 0.1, runs.start[k + 1] + size * 0.1);
	}
	zoom(0.2, t);
}

function timelineWheel(e) {
	const across = Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey;
	const x = e.clientX - $("lanes").getBoundingClientRect().left;
	if (x < timeline.gutter && !across) return; // the lanes scroll
	e.preventDefault();
	const delta = (across && e.deltaX ? e.deltaX : e.deltaY) * (e.deltaMode === 1 ? 16 : 1);
	if (across) look(view.from + delta * timeline.perPixel(), view.to + delta * timeline.perPixel());
	else zoom(Math.exp(Math.max(-120, Math.min(120, delta)) * 0.0035), timeline.t(x));
}

function startTimeline() {
	const redraw = coalesced(() => timeline.draw());
	for (const what of ["time", "range", "record", "looks"]) on(what, redraw);
	on("filter", () => {
		timeline.whole = null;
		redraw();
	});
	$("lanes").addEventListener("scroll", redraw);
	new ResizeObserver(redraw).observe($("lanes"));
	for (const id of ["lanes", "axis", "overview"]) $(id).addEventListener("wheel", timelineWheel, { passive: false });

	dragged($("cpus"), pickOrSelect);
	dragged($("axis"), pan);
	dragged($("overview"), (e) => {
		const left = $("overview").getBoundingClientRect().left + timeline.gutter;
		const go = (m) => {
			const t = (m.clientX - left) / timeline.width * data.end, half = (view.to - view.from) / 2;
			look(t - half, t + half);
		};
		go(e);
		return { move: go };
	});
	$("cpus").addEventListener("dblclick", zoomInto);
	$("cpus").addEventListener("mousemove", (e) => {
		timelineTip(e);
		timeline.hover = e.offsetX >= timeline.gutter ? e.offsetX : null;
		redraw();
	});
	$("cpus").addEventListener("mouseleave", () => {
		hideTip();
		timeline.hover = null;
		redraw();
	});
}
