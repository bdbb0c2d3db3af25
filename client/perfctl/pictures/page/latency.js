/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How long things took, as `perfctl report` has it: for each kind a table of who and what, and the
 * longest, which lead to their time. Of all of the recording, whatever is selected.
 */

const latency = {
	rows: (kind) => kind.rows.map((r) => ({
		cells: [shown(r[kind.label]), ...(kind.of_processes ? [shown(r.comm), r.pid | 0] : []), count(r.count),
			...[r.sum, r.p50, r.p90, r.p99, r.p999, r.max].map(duration)],
		part: r.sum / Math.max(1, kind.sum), color: colors.faint, pick() {},
	})),

	/* Times of the page. */
	begin: (one) => Number(BigInt(Math.round(one.begin)) - data.base),

	show(one) {
		const from = latency.begin(one), to = from + one.duration;
		select([Math.max(0, from), Math.min(data.end, Math.max(to, from + 1))]);
		look(from - one.duration * 0.2, to + one.duration * 0.2);
	},

	list: (kind, list) => list.map((one) => ({
		cells: [shown(one[kind.label]), `${shown(one.comm)} ${one.tid | 0}`, one.cpu === undefined ? "" : one.cpu, duration(one.duration),
			timeText(latency.begin(one)), one.waker ? `woken by ${shown(one.waker.comm)} ${one.waker.tid | 0}` : ""],
		part: one.duration / Math.max(1, list[0].duration), color: colors.accent, pick: () => latency.show(one),
	})),

	table(heads, rows, more) {
		const box = element("div");
		drawTable(box, heads, rows, more);
		return box;
	},

	parts(kind) {
		const h = kind.history, who = kind.of_processes ? [["process"], ["pid", true]] : [];
		const note = [`${plural(kind.count, "interval")}, ${duration(kind.sum)}`,
			kind.begun_before && `${count(kind.begun_before)} began before the records`, kind.missing && `${count(kind.missing)} have missing records`,
			h && h.missed && `${count(h.missed)}${h.missed_at_least ? "+" : ""} records were missed`].filter(Boolean).join("; ");
		const numbers = ["count", "sum", "p50", "p90", "p99", "p99.9", "max"].map((name) => [name, true]);
		const heads = [[kind.label], ["thread"], ["CPU", true], ["time", true], ["from", true], [""]];
		const parts = [element("h3", kind.title), element("p", note), latency.table([[kind.label], ...who, ...numbers], latency.rows(kind),
			kind.different_rows > kind.rows.length ? `and ${count(kind.different_rows - kind.rows.length)} more` : "")];
		if (kind.longest.length) parts.push(element("h4", "The longest"), latency.table(heads, latency.list(kind, kind.longest)));
		if (kind.open.length) parts.push(element("h4", "Not ended"), latency.table(heads, latency.list(kind, kind.open),
			kind.not_ended > kind.open.length ? `and ${count(kind.not_ended - kind.open.length)} more` : ""));
		return parts;
	},

	draw() {
		$("latency").replaceChildren(...data.latencies.flatMap(latency.parts));
	},
};
