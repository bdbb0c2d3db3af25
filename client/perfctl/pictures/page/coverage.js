/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From when to when each event's records are complete, and how many it has missed: rows above the
 * lanes, for the events of which the recording does not have all of the time. Without them, an event
 * that covers the last seconds looks like a burst.
 */

const coverage = {
	row: 13, // height
	most: 8, // rows
	facts: 20, // of the list of all

	/* Those of which more than a thousandth is missing, the shortest first. */
	list() {
		if (coverage.of !== data.histories) {
			coverage.of = data.histories;
			coverage.all = data.histories.filter((h) => h.lost + h.missed || Math.min(h.to, data.end) - Math.max(h.from, 0) < data.end * 0.999)
				.sort((a, b) => (a.to - a.from) - (b.to - b.from));
		}
		return coverage.all;
	},

	/* [name, text] of each; if there are many, of those that lack most. */
	about() {
		const n = data.histories.length, some = n > coverage.facts ? coverage.list().slice(0, coverage.facts) : data.histories;
		const facts = some.map((h) => [coverage.name(h), `${coverage.text(h)}${h.missed ? " since it was created" : ""}`]), [missed, atLeast] = coverage.sum();
		return n > some.length ? [...facts, ["And more", `${count(n - some.length)} others; of all, ${count(missed)}${atLeast ? "+" : ""} lost or missed`]] : facts;
	},

	name(h) {
		const { name } = data.events[h.first];
		return h.n > 1 ? `${name} and ${h.n - 1} more` : name;
	},

	/* "1 234+" */
	missed: (h) => h.lost + h.missed ? count(h.lost + h.missed) + (h.missed_at_least ? "+" : "") : h.missed_at_least ? "0+" : "0",

	text(h) {
		const from = Math.max(0, h.from), to = Math.min(data.end, h.to);
		return (to <= from ? "at no time complete" : `complete for ${duration(to - from)} of ${duration(data.end)}`) +
			(h.lost + h.missed ? `, ${coverage.missed(h)} missed` : "") + (h.limited ? `, ${count(h.limited)} dropped by its rate limit` : "");
	},

	/* Of all events: [number, at least]. */
	sum() {
		const of = (key) => data.histories.reduce((n, h) => n + h[key], 0);
		return [data.info.lost_records + of("missed"), data.histories.some((h) => h.missed_at_least)];
	},

	draw() {
		const all = coverage.list(), some = all.slice(0, coverage.most), g = timeline.gutter, w = timeline.width;
		const canvas = $("histories");
		canvas.hidden = !some.length;
		if (!some.length) return;
		const c = canvasOf(canvas, g + w + 10, some.length * coverage.row);
		some.forEach((h, i) => coverage.drawRow(c, h, i * coverage.row));
		c.fillStyle = colors.faint;
		c.fillText(all.length > some.length ? `${some.length} of ${all.length}` : "complete", 6, coverage.row / 2);
	},

	/* Dark on all CPUs, light on some, red where nothing is known. */
	drawRow(c, h, y) {
		const g = timeline.gutter, w = timeline.width, clip = (t) => Math.min(g + w, Math.max(g, timeline.x(t)));
		const bar = (from, to, color, alpha) => {
			const a = clip(from), b = clip(to);
			c.globalAlpha = alpha;
			c.fillStyle = color;
			if (b > a) c.fillRect(a, y + 2, b - a, coverage.row - 4);
			c.globalAlpha = 1;
		};
		const first = h.cpus.reduce((a, [, from]) => Math.min(a, from), h.from), color = eventColor(h.first);
		bar(0, data.end, colors.bad, 0.13);
		bar(first, h.to, color, 0.3);
		bar(h.from, h.to, color, 0.75);
		/* Beside the bar, if there is room. */
		const text = `${coverage.name(h)}: ${coverage.text(h)}`, left = clip(first) - g > w / 2;
		c.fillStyle = colors.text;
		c.fillText(fitted(c, text, w - 8), left || h.to <= h.from ? g + 4 : Math.min(clip(h.from) + 4, g + w - c.measureText(text).width - 4), y + coverage.row / 2 + 0.5);
	},

	tip(e) {
		const y = e.clientY - $("histories").getBoundingClientRect().top, h = coverage.list()[Math.floor(y / coverage.row)];
		if (!h) return hideTip();
		const cpus = h.cpus.slice(0, 12).map(([cpu, from]) => `CPU ${cpuName(cpu)} from ${timeText(Math.max(0, from))} s on`);
		showTip(e.clientX, e.clientY, [{ text: coverage.name(h), color: eventColor(h.first) }, coverage.text(h), ...cpus,
			...(h.cpus.length > 12 ? [`and ${h.cpus.length - 12} CPUs more`] : [])]);
	},
};

function startCoverage() {
	const redraw = coalesced(coverage.draw);
	for (const what of ["time", "looks"]) on(what, redraw);
	new ResizeObserver(redraw).observe($("lanes"));
	$("histories").addEventListener("mousemove", coverage.tip);
	$("histories").addEventListener("mouseleave", hideTip);
}
