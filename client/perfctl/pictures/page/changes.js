/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What was different in a moment, as `perfctl report --against` prints it: the page covers the moment and
 * the time before, which are marked below the axis, and begins with the moment selected. A click on a
 * change leads to what it is about.
 */

const changes = {
	band: 13, // height, below the axis

	moment: () => [Math.max(0, data.against.since), Math.min(data.end, data.against.until)],
	before: () => [Math.max(0, data.against.before), Math.max(0, data.against.since)],

	drawTimes(c) {
		if (!data.against) return;
		const g = timeline.gutter, w = timeline.width, y = timeline.axis - changes.band;
		const bar = ([from, to], color, text) => {
			const a = Math.min(g + w, Math.max(g, timeline.x(from))), b = Math.min(g + w, Math.max(g, timeline.x(to)));
			c.fillStyle = color;
			c.globalAlpha = 0.35;
			c.fillRect(a, y + 1, b - a, changes.band - 2);
			c.globalAlpha = 1;
			c.fillStyle = colors.text;
			c.fillText(fitted(c, text, b - a - 8), a + 4, y + changes.band / 2 + 0.5);
		};
		bar(changes.before(), colors.faint, "the time before");
		bar(changes.moment(), colors.select, "the moment");
	},

	/* A command of the report can be several processes, or threads: "kworker" is all of them, and
	 * "java/GC Thread#" is those threads of java. */
	processes(comm) {
		const thread = comm.slice(comm.indexOf("/") + 1);
		const of = (wanted, cut) => data.processes.filter((p) => p.comm === wanted || p.comm.replace(cut, "") === wanted);
		const whole = of(comm, /(?<=.)\/[\du].*$/);
		return whole.length ? whole : of(thread, /\d+$/);
	},

	/* The widest node of a function in the flame graph, or 0. */
	node(name) {
		const { tree, total } = flame;
		let best = 0;
		for (let i = 1; i < tree.n; i++) {
			const f = data.frames[tree.frame[i]];
			if (f.dso !== "" && f.name === name && total[i] > (best ? total[best] : 0)) best = i;
		}
		return best;
	},

	async pick(line) {
		const list = line.comm === undefined ? [] : changes.processes(shown(line.comm));
		const event = /^(event|records)$/.test(line.kind) && data.events.find((e) => e.name === shown(line.what));
		view.events.fill(event ? 0 : 1);
		if (event) view.events[event.index] = 1;
		select(changes.moment());
		await pickProcesses(list.length ? list : null, shown(line.comm ?? ""));
		if (line.function !== undefined && flame.has.includes(1)) {
			showTab("tab-flame");
			flame.compute();
			flame.zoomTo(changes.node(shown(line.function)));
		} else if (!event && !list.length && data.latencies.length) {
			showTab("tab-latency");
		}
	},

	/* What it is stands first here, so that it is beside the bar. */
	row: (line, most) => ({
		cells: [line.cells.at(-1), ...line.cells.slice(0, -1)].map(shown),
		part: line.is_new && !line.excess ? 1 : Math.min(1, Math.abs(line.excess) / most),
		color: line.excess < 0 ? colors.select : colors.bad, pick: () => changes.pick(line),
	}),

	draw() {
		if (!data.against) return;
		const { head, findings, columns, lines, more, gaps } = data.against, tools = element("div", undefined, { class: "tools" }), table = element("div");
		const most = lines.reduce((a, l) => Math.max(a, Math.abs(l.excess)), 1);
		for (const [text, range] of [["the moment", changes.moment()], ["the time before", changes.before()]]) {
			const b = element("button", text, { type: "button" });
			b.onclick = () => select(range);
			tools.append(b);
		}
		drawTable(table, [columns.at(-1), ...columns.slice(0, -1)].map(([title, right], i) => [title.toLowerCase(), i && right]),
			lines.map((line) => changes.row(line, most)), more ? `and ${count(more)} more` : "");
		const text = (printed) => element("p", printed.trimEnd().split("\n").map(shown).join("\n"));
		const none = findings ? [] : [element("p", "nothing unusual")];
		$("changes").replaceChildren(text(head), tools, ...(findings ? [text(findings)] : []), ...(lines.length ? [table] : none), text(gaps));
	},
};

function startChanges() {
	if (!data.against) return;
	timeline.axis += changes.band;
	select(changes.moment());
}
