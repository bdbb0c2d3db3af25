/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of processes: a tree, in which processes of one name and one parent are a row, as in
 * `perfctl report`. A row has its own sums; if it is folded, those of all rows below, too.
 */

const tree = {
	most: 150, // rows of groups
	mostOf: 20, // processes of one group
	folded: new Set(), // groups
	opened: new Set(), // groups whose processes are rows, too

	build() {
		for (const g of data.groups) Object.assign(g, { children: [], processes: [], threads: new Set() });
		data.groups.forEach((g, i) => {
			g.depth = g.parent < 0 ? 0 : data.groups[g.parent].depth + 1;
			if (g.parent >= 0) data.groups[g.parent].children.push(i);
		});
		for (const p of data.processes) data.groups[p.group].processes.push(p);
		for (const t of data.tasks) data.groups[t.process.group].threads.add(t.tid);
	},

	/* Of each group: its own, and with all below. */
	sum(procs) {
		const none = () => data.groups.map(() => ({ n: 0, about: 0, samples: 0, ran: 0 })), own = none(), all = none();
		const add = (to, { n, about, samples, ran }) => {
			to.n += n;
			to.about += about;
			to.samples += samples;
			to.ran += ran;
		};
		data.processes.forEach((p, i) => add(own[p.group], procs[i]));
		for (let i = data.groups.length - 1; i >= 0; i--) {
			add(all[i], own[i]);
			if (data.groups[i].parent >= 0) add(all[data.groups[i].parent], all[i]);
		}
		return { own, all };
	},

	/* The heaviest that are not below a folded one, in the order of the tree; and how many there are. */
	visible(all) {
		const heavier = (a, b) => all[b].ran - all[a].ran || all[b].n - all[a].n || all[b].about - all[a].about || a - b, list = [];
		const stack = [...data.groups.keys()].filter((i) => data.groups[i].parent < 0);
		const open = (some) => some.filter((i) => all[i].n || all[i].about || all[i].ran).sort((a, b) => heavier(b, a));
		for (let todo = open(stack); todo.length;) {
			const i = todo.pop();
			list.push(i);
			if (!tree.folded.has(i)) for (const child of open(data.groups[i].children)) todo.push(child);
		}
		const some = new Set([...list].sort(heavier).slice(0, tree.most));
		return { list: list.filter((i) => some.has(i)), n: list.length };
	},

	/* A group and all below it. */
	under(i) {
		const list = [i];
		for (let k = 0; k < list.length; k++) for (const child of data.groups[list[k]].children) list.push(child);
		return list;
	},

	flip(set, i, on = !set.has(i)) {
		const at = [...$("processes").querySelectorAll("tbody tr")].findIndex((row) => row.contains(document.activeElement));
		if (on) set.add(i);
		else set.delete(i);
		tree.draw();
		$("processes").querySelectorAll("tbody tr")[at]?.focus();
	},

	/* A button that shows what is hidden, or hides it. */
	handle(set, i, on, title, text = "") {
		const b = element("button", `${on ? "▾" : "▸"}${text}`, { type: "button", class: "fold", "aria-expanded": on, title });
		b.onclick = (e) => {
			e.stopPropagation();
			tree.flip(set, i);
		};
		return b;
	},

	name(i, text) {
		const box = document.createDocumentFragment();
		box.append(i >= 0 && data.groups[i].children.length ? tree.handle(tree.folded, i, !tree.folded.has(i), "The processes that it began")
			: element("span", "", { class: "fold" }), text);
		return box;
	},

	/* of: {n, about, samples, ran} */
	row(s, name, who, threads, of, list, color) {
		const { n, span, runs, chains } = s, chosen = view.processes && list.length && list.every((p) => view.processes.has(p));
		return {
			cells: [name, who, count(threads), count(of.n), n ? percent(of.n / n) : "", ...(data.about ? [count(of.about)] : []),
				...(chains ? [count(of.samples)] : []), ...(runs ? [duration(of.ran), percent(of.ran / span / runs)] : [])],
			part: runs ? of.ran / span / runs : of.n / Math.max(1, n), color, picked: chosen,
		};
	},

	group(s, i) {
		const g = data.groups[i], folded = tree.folded.has(i), groups = folded ? tree.under(i) : [i], many = g.n > 1;
		const list = groups.flatMap((k) => data.groups[k].processes), threads = groups.reduce((n, k) => n + data.groups[k].threads.size, 0);
		const who = many ? tree.handle(tree.opened, i, tree.opened.has(i), "Each of these processes", ` ${plural(g.n, "process", "processes")}`)
			: g.processes.length ? g.processes[0].pid | 0 : "";
		const row = tree.row(s, tree.name(i, g.comm), who, threads, (folded ? s.all : s.own)[i], list,
			g.processes.length ? processColor(g.processes[0]) : colors.faint);
		const pick = () => pickProcesses(row.picked || !list.length ? null : list, g.comm);
		return Object.assign(row, { depth: g.depth, pick, fold: (shut) => tree.flip(tree.folded, i, shut) });
	},

	/* A row for each process of a group: one that had several names is one. */
	members(s, i) {
		const byPid = new Map();
		for (const p of data.groups[i].processes) {
			const m = byPid.get(p.pid) ?? { list: [], threads: 0, n: 0, about: 0, samples: 0, ran: 0 }, { n, about, samples, ran } = s.procs[p.index];
			m.list.push(p);
			byPid.set(p.pid, Object.assign(m, { threads: m.threads + p.tasks, n: m.n + n, about: m.about + about, samples: m.samples + samples, ran: m.ran + ran }));
		}
		const all = [...byPid.values()].filter((m) => m.n || m.about || m.ran).sort((a, b) => b.ran - a.ran || b.n - a.n), depth = data.groups[i].depth + 1;
		const rows = all.slice(0, tree.mostOf).map((m) => {
			const row = tree.row(s, tree.name(-1, m.list.at(-1).comm), m.list[0].pid | 0, m.threads, m, m.list, processColor(m.list[0]));
			return Object.assign(row, { depth, pick: () => pickProcesses(row.picked ? null : m.list) });
		});
		if (all.length > rows.length) rows.push({ cells: [`and ${count(all.length - rows.length)} more`], part: 0, color: "transparent", depth, pick() {} });
		return rows;
	},

	draw() {
		const { procs, n, span } = summarize(), runs = data.runs.filter(Boolean).length, chains = flame.has.includes(1);
		const s = { procs, n, span, runs, chains, ...tree.sum(procs) }, seen = tree.visible(s.all);
		const heads = [["process, below its parent"], ["pid", true], ["threads", true], ["records", true], ["", true]];
		if (data.about) heads.push(["about", true]);
		if (chains) heads.push(["samples", true]);
		if (runs) heads.push(["on CPU", true], ["", true]);
		drawTable($("processes"), heads, seen.list.flatMap((i) => [tree.group(s, i), ...(tree.opened.has(i) ? tree.members(s, i) : [])]),
			seen.n > seen.list.length ? `and ${count(seen.n - seen.list.length)} more` : "");
	},
};
