/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The timeline: a lane for each CPU, with the running tasks (if there are context switches) and
 * below them the records. If many share a pixel, the height is their exact number, at every zoom:
 * it is counted by looking up each pixel's edges in the sorted times, so the cost depends on
 * pixels, not on records.
 */

const timeline = {
	gutter: 64,
	width: 1,
	lane: 40, // height
	hover: null,
	colored: 60, // events
	axis: 22, // height

	/* ── places ── */

	x: (t) => timeline.gutter + (t - view.from) / (view.to - view.from) * timeline.width,
	t: (x) => view.from + (x - timeline.gutter) / timeline.width * (view.to - view.from),
	perPixel: () => (view.to - view.from) / timeline.width,

	shape() {
		const box = $("lanes"), n = Math.max(1, data.cpus.length);
		timeline.width = Math.max(50, box.clientWidth - timeline.gutter - 10);
		timeline.lane = Math.min(72, Math.max(data.runs.some(Boolean) ? 30 : 22, Math.floor(box.clientHeight / n)));
	},

	/* ── counting ── */

	/* Adds list's records of each pixel to out; returns how many are in view. */
	pixels(list, out) {
		const { time } = data, { from, to } = view, w = timeline.width, k = w / (to - from);
		const lo = lowerBound(list, from), hi = lowerBound(list, to, lo);

		if (hi - lo < w * 6) {
			for (let i = lo; i < hi; i++) out[Math.min(w - 1, (time[list[i]] - from) * k | 0)]++;
		} else {
			for (let p = 0, at = lo; p < w && at < hi; p++) {
				/* Most pixels have nearly the average number: search near there
				 * first. */
				const edge = from + (p + 1) / k;
				let end = Math.min(hi, at + Math.ceil((hi - at) / (w - p) * 2));
				if (end < hi && time[list[end]] < edge) end = hi;
				const next = p === w - 1 ? hi : lowerBound(list, edge, at, end);
				out[p] += next - at;
				at = next;
			}
		}
		return hi - lo;
	},

	/* The events with most records; the others share a colour. */
	own() {
		timeline.most ??= new Set([...data.events].sort((a, b) => b.count - a.count).slice(0, timeline.colored).map((e) => e.index));
		return timeline.most;
	},

	/* For a lane: the events in view with their counts, and the highest pixel of all events
	 * together. Event -1 are all that have no colour of their own. */
	countLane(lane) {
		const w = timeline.width, sum = new Float64Array(w), parts = [], others = { e: -1, out: new Uint32Array(w) }, own = timeline.own();
		let n = 0;
		data.series[lane].forEach((list, e) => {
			if (!view.events[e]) return;
			if (!own.has(e)) return void (n += timeline.pixels(list, others.out));
			const out = new Uint32Array(w);
			if (timeline.pixels(list, out)) parts.push({ e, out });
		});
		if (n) parts.push(others);
		for (const { out } of parts) for (let p = 0; p < w; p++) sum[p] += out[p];
		return { parts, sum, top: sum.reduce((a, b) => Math.max(a, b), 0) };
	},

	/* ── drawing ── */

	draw() {
		if (!data.n) return timeline.drawEmpty();
		timeline.shape();
		timeline.drawAxis();
		const h = timeline.lane, c = canvasOf($("cpus"), timeline.gutter + timeline.width + 10, h * data.cpus.length);
		const box = $("lanes"), first = Math.floor(box.scrollTop / h);
		const last = Math.min(data.cpus.length, Math.ceil((box.scrollTop + box.clientHeight) / h) + 1);
		const counted = [];
		for (let l = first; l < last; l++) counted[l] = timeline.countLane(l);
		const matched = view.matches && view.query ? timeline.countMatches() : null;
		const top = counted.reduce((a, b) => Math.max(a, b.top), 1);
		timeline.top = top;

		timeline.drawGrid(c, h * data.cpus.length);
		for (let l = first; l < last; l++) {
			timeline.drawLane(c, l, l * h, h, counted[l], top, matched?.[l]);
		}
		timeline.drawLost(c, h);
		timeline.drawMarks(c, h * data.cpus.length);
		timeline.drawOverview();
	},

	drawEmpty() {
		const box = $("lanes");
		const c = canvasOf($("cpus"), box.clientWidth, Math.max(40, box.clientHeight));
		c.fillStyle = colors.faint;
		c.fillText("there are no records", 12, 20);
	},

	countMatches() {
		const { time, lane } = data, { from, to } = view, k = timeline.width / (to - from);
		const out = data.cpus.map(() => new Uint32Array(timeline.width));
		const lo = lowerBound(view.matches, from), hi = lowerBound(view.matches, to, lo);
		for (let i = lo; i < hi; i++) {
			const r = view.matches[i];
			out[lane[r]][Math.min(timeline.width - 1, (time[r] - from) * k | 0)]++;
		}
		return out;
	},

	drawLane(c, l, y, h, counted, top, matched) {
		const runs = data.runs[l], g = timeline.gutter, w = timeline.width, off = !view.lanes[l];

		c.globalAlpha = 1;
		c.fillStyle = colors.line;
		c.fillRect(0, y + h - 1, g + w + 10, 1);
		c.fillStyle = off ? colors.faint : colors.text;
		c.textAlign = "left";
		c.font = "600 11px system-ui, sans-serif";
		c.fillText("CPU " + cpuName(data.cpus[l]), 10, y + h / 2);
		c.font = "11px system-ui, sans-serif";
		c.globalAlpha = off ? 0.18 : 1;
		let at = y + 3, room = h - 7;
		if (runs) {
			const bar = Math.round(room * 0.52);
			timeline.drawRuns(c, runs, at, bar);
			at += bar + 2;
			room -= bar + 2;
		}
		if (matched) c.globalAlpha = off ? 0.08 : 0.28;
		if (view.color === "process" && !runs) timeline.drawByProcess(c, l, at, room, counted, top);
		else timeline.drawByEvent(c, at, room, counted, top);
		if (matched) {
			c.globalAlpha = 1;
			c.fillStyle = colors.match;
			for (let p = 0; p < w; p++) {
				if (!matched[p]) continue;
				const part = timeline.high(matched[p], top, room);
				c.fillRect(g + p, at + room - part, 1.6, part);
			}
		}
		c.globalAlpha = 1;
	},

	/* On a square root scale, so that single records are visible beside a thousand. */
	high: (n, top, room) => Math.max(2, Math.sqrt(n / top) * room),

	drawByEvent(c, y, room, { parts, sum }, top) {
		const g = timeline.gutter, w = timeline.width, base = new Float64Array(w).fill(y + room);
		const sparse = top < 3 ? 1.6 : 1;
		for (const { e, out } of parts) {
			c.fillStyle = e < 0 ? colors.faint : eventColor(e);
			for (let p = 0; p < w; p++) {
				if (!out[p]) continue;
				const part = timeline.high(sum[p], top, room) * out[p] / sum[p];
				c.fillRect(g + p, base[p] - part, sparse, part);
				base[p] -= part;
			}
		}
	},

	/* A pixel has the colour of the process with most of a few sampled records. */
	drawByProcess(c, l, y, room, { sum }, top) {
		const list = data.lanes[l], g = timeline.gutter, w = timeline.width;
		let at = lowerBound(list, view.from);
		for (let p = 0; p < w; p++) {
			if (!sum[p]) continue;
			const end = lowerBound(list, view.from + (p + 1) * timeline.perPixel(), at);
			const seen = new Map(), step = Math.max(1, (end - at) / 16 | 0);
			let best = null;
			for (let i = at; i < end; i += step) {
				if (!view.events[data.event[list[i]]]) continue;
				const proc = data.tasks[data.task[list[i]]].process, n = (seen.get(proc) ?? 0) + 1;
				seen.set(proc, n);
				if (!best || n > seen.get(best)) best = proc;
			}
			at = end;
			const part = timeline.high(sum[p], top, room);
			c.fillStyle = best ? processColor(best) : colors.faint;
			c.fillRect(g + p, y + room - part, 1, part);
		}
	},

	drawRuns(c, runs, y, h) {
		const g = timeline.gutter, w = timeline.width;
		const lo = runAt(runs, view.from), hi = runAt(runs, view.to) + 1;

		c.fillStyle = colors.idle;
		const x0 = Math.max(g, timeline.x(0)), x1 = Math.min(g + w, timeline.x(data.end));
		c.fillRect(x0, y + h - 1, x1 - x0, 1);
		if (hi - lo > w * 3) return timeline.drawBusy(c, runs, y, h);
		for (let k = lo; k < hi; k++) {
			const task = data.tasks[runs.task[k]];
			if (!task.tid) continue;
			const a = Math.max(g, timeline.x(runs.start[k])), b = Math.min(g + w, timeline.x(runs.start[k + 1]));
			if (b < g || a > g + w) continue;
			const mine = isMine(task.process);
			c.fillStyle = mine ? processColor(task.process) : colors.idle;
			c.fillRect(a, y, Math.max(0.7, b - a - (b - a > 3 ? 0.5 : 0)), h);
			if (runs.unsure[k]) {
				c.fillStyle = colors.bad;
				c.fillRect(a, y, Math.max(1, b - a), 2);
			}
			const text = mine && h >= 11 ? fitted(c, taskName(task), b - a - 8) : "";
			if (text) {
				c.fillStyle = colors.text;
				c.fillText(text, a + 4, y + h / 2 + 0.5);
			}
		}
	},

	/* More runs than pixels: the share of busy time, in the colour of a task that ran long
	 * there. */
	drawBusy(c, runs, y, h) {
		const g = timeline.gutter, w = timeline.width, step = timeline.perPixel();
		for (let p = 0; p < w; p++) {
			const a = Math.max(0, view.from + p * step), b = Math.min(data.end, view.from + (p + 1) * step);
			if (b <= a) continue;
			const busy = (busyBefore(runs, b) - busyBefore(runs, a)) / (b - a);
			if (busy <= 0) continue;
			const lo = runAt(runs, a), hi = runAt(runs, b), jump = Math.max(1, (hi - lo) / 24 | 0);
			let best = null, longest = 0;
			for (let k = lo; k <= hi; k += jump) {
				const task = data.tasks[runs.task[k]], ran = runs.start[k + 1] - runs.start[k];
				if (task.tid && ran >= longest && isMine(task.process)) {
					best = task.process;
					longest = ran;
				}
			}
			const part = Math.max(1, busy * h);
			c.fillStyle = best ? processColor(best) : colors.idle;
			c.fillRect(g + p, y + h - part, 1, part);
		}
	},

	drawLost(c, h) {
		for (const [t, cpu] of data.lost) {
			const x = timeline.x(t), l = data.cpus.indexOf(cpu);
			if (x < timeline.gutter || x > timeline.gutter + timeline.width) continue;
			c.fillStyle = colors.bad;
			c.fillRect(x - 1, l < 0 ? 0 : l * h, 2, l < 0 ? h * data.cpus.length : h - 1);
		}
	},

	/* Draws the selection, the picked record and the mouse. */
	drawMarks(c, height) {
		const g = timeline.gutter, w = timeline.width;
		const clip = (x) => Math.min(g + w, Math.max(g, x));
		c.save();
		if (view.range) {
			const a = clip(timeline.x(view.range[0])), b = clip(timeline.x(view.range[1]));
			c.globalAlpha = 0.16;
			c.fillStyle = colors.select;
			c.fillRect(a, 0, b - a, height);
			c.globalAlpha = 0.9;
			c.fillRect(a, 0, 1, height);
			c.fillRect(b - 1, 0, 1, height);
			c.globalAlpha = 1;
		}
		if (view.record >= 0) {
			const x = timeline.x(data.time[view.record]), l = data.lane[view.record];
			if (x >= g && x <= g + w) {
				c.fillStyle = colors.accent;
				c.globalAlpha = 0.45;
				c.fillRect(x - 0.5, 0, 1, height);
				c.globalAlpha = 1;
				c.fillRect(x - 1, l * timeline.lane + 1, 2, timeline.lane - 3);
				c.beginPath();
				c.moveTo(x - 5, l * timeline.lane);
				c.lineTo(x + 5, l * timeline.lane);
				c.lineTo(x, l * timeline.lane + 7);
				c.fill();
			}
		}
		if (timeline.hover !== null) {
			c.fillStyle = colors.faint;
			c.fillRect(Math.round(timeline.hover), 0, 1, height);
		}
		c.restore();
	},

	/* ── axis ── */

	ticks() {
		const least = timeline.perPixel() * 110;
		let step = 10 ** Math.ceil(Math.log10(least));
		if (step / 5 >= least) step /= 5;
		else if (step / 2 >= least) step /= 2;
		step = Math.max(1, step);
		/* Other clocks have round numbers elsewhere. */
		const zero = view.clock === "relative" ? 0n : view.clock === "real" ? data.base + data.realtime : data.base;
		const shift = step >= 1 && zero ? Number(zero % BigInt(Math.round(step))) : 0;
		const list = [];
		for (let t = Math.ceil((view.from + shift) / step) * step - shift; t <= view.to; t += step) list.push(t);
		return { step, list };
	},

	axisText(t, step) {
		if (view.clock === "relative" && step < 1e9) {
			const [unit, size] = units.find(([, s]) => Math.max(Math.abs(view.to), Math.abs(view.from)) >= s * 0.999) ?? units[3];
			const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
			return `${(t / size).toFixed(digits)}\u202f${unit}`;
		}
		return timeText(t, Math.max(0, Math.min(9, 9 - Math.floor(Math.log10(step) + 1e-9)))) + (view.clock === "real" ? "" : "\u202fs");
	},

	drawAxis() {
		const c = canvasOf($("axis"), timeline.gutter + timeline.width + 10, timeline.axis);
		const { step, list } = timeline.ticks();
		c.textAlign = "center";
		for (const t of list) {
			const x = timeline.x(t);
			c.fillStyle = colors.line;
			c.fillRect(Math.round(x), 16, 1, 6);
			c.fillStyle = colors.faint;
			if (x > timeline.gutter + 24) c.fillText(timeline.axisText(t, step), x, 9);
		}
		c.textAlign = "left";
		changes.drawTimes(c);
	},

	drawGrid(c, height) {
		c.fillStyle = colors.line;
		c.globalAlpha = 0.55;
		for (const t of timeline.ticks().list) c.fillRect(Math.round(timeline.x(t)), 0, 1, height);
		c.globalAlpha = 1;
	},

	/* ── the overview, above ── */

	/* Its counts change only with the filter's switches. */
	recount() {
		const w = timeline.width, out = new Uint32Array(w), k = w / data.end;
		for (let i = 0; i < data.n; i++) if (isOn(i)) out[Math.min(w - 1, data.time[i] * k | 0)]++;
		timeline.whole = { w, out, top: out.reduce((a, b) => Math.max(a, b), 1) };
	},

	drawOverview() {
		if (timeline.whole?.w !== timeline.width) timeline.recount();
		const { w, out, top } = timeline.whole, h = 34, g = timeline.gutter;
		const c = canvasOf($("overview"), g + w + 10, h), at = (t) => g + t / data.end * w;

		c.fillStyle = colors.raised;
		c.fillRect(g, 2, w, h - 4);
		c.fillStyle = colors.faint;
		for (let p = 0; p < w; p++) {
			const part = out[p] ? Math.max(1, Math.sqrt(out[p] / top) * (h - 8)) : 0;
			c.fillRect(g + p, h - 3 - part, 1, part);
		}
		if (view.matches && view.query) {
			c.fillStyle = colors.match;
			const step = Math.max(1, view.matches.length / 20000 | 0);
			for (let i = 0; i < view.matches.length; i += step) c.fillRect(at(data.time[view.matches[i]]), 2, 1, 5);
		}
		if (view.range) {
			c.globalAlpha = 0.3;
			c.fillStyle = colors.select;
			c.fillRect(at(view.range[0]), 2, Math.max(1, at(view.range[1]) - at(view.range[0])), h - 4);
			c.globalAlpha = 1;
		}
		const a = Math.max(g, at(view.from)), b = Math.min(g + w, at(view.to));
		c.fillStyle = colors.ground;
		c.globalAlpha = 0.62;
		c.fillRect(g, 2, a - g, h - 4);
		c.fillRect(b, 2, g + w - b, h - 4);
		c.globalAlpha = 1;
		c.strokeStyle = colors.accent;
		c.strokeRect(a + 0.5, 2.5, Math.max(2, b - a - 1), h - 5);
		c.fillStyle = colors.faint;
		c.fillText("all", 10, h / 2);
	},
};
