/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The flame graph: the call chains of the selected records, with widths by samples or by period.
 * Chains form a tree from the outermost frame; below the root are processes, or, if not split by
 * process, the functions of all processes together.
 */

/* Joins the trees of all events; processes: with their level. `of` maps each node to its new one. A
 * frame without a file is a process, frame 0 a root. */
function joined(tree, processes) {
	const parent = [0], frame = [0], of = new Uint32Array(tree.n), known = new Map();
	for (let i = 1; i < tree.n; i++) {
		const f = tree.frame[i];
		if (!f || !processes && data.frames[f].dso === "") continue; // is the root
		const up = of[tree.parent[i]], key = up * data.frames.length + f;
		let at = known.get(key);
		if (at === undefined) {
			known.set(key, at = parent.length);
			parent.push(up);
			frame.push(f);
		}
		of[i] = at;
	}
	return { parent: Uint32Array.from(parent), frame: Uint32Array.from(frame), of, n: parent.length };
}

const flame = {
	tree: null,
	total: null, // of each node, including the nodes below
	self: null,
	children: null, // lists, the widest first; null: not computed yet
	zoomed: 0,
	focus: 0,
	boxes: [], // drawn boxes: {node, x, y, w}
	row: 18,
	samples: 0, // counted records
	has: null, // for each event: whether its samples have call chains
	event: -1, // -1: all events with chains
	choices: 200, // events
	change: null, // of each node: its share now less its share in the time before; null: not compared
	weight: "samples",

	choose() {
		const processes = $("flame-split").checked;
		flame.trees ??= {};
		flame.tree = flame.trees[processes] ??= joined(data.nodes, processes);
	},

	/* Of the records from lo to before hi; everybody: with those of processes that are not chosen. */
	sum(lo, hi) {
		const { tree } = flame, self = new Float64Array(tree.n), byPeriod = flame.weight === "period";
		let samples = 0, everybody = 0;
		for (let i = lo; i < hi; i++) {
			const node = data.node[i], weight = byPeriod ? data.period[i] : 1;
			if (!node || !flame.has[data.event[i]] || !isShown(i)) continue;
			if (flame.event >= 0 && data.event[i] !== flame.event) continue;
			everybody += weight;
			if (!isOfMine(i)) continue;
			self[tree.of[node]] += weight;
			samples++;
		}
		const total = self.slice();
		for (let i = tree.n - 1; i > 0; i--) total[tree.parent[i]] += total[i];
		return { self, total, samples, everybody };
	},

	compute() {
		flame.choose();
		const { tree } = flame, { n } = tree;
		Object.assign(flame, flame.sum(...inRange(null)));
		flame.children = flame.link(tree, flame.total);
		flame.compare();
		const { total } = flame;
		if (flame.zoomed >= n || !total[flame.zoomed]) flame.zoomed = 0;
		if (flame.focus >= n || !total[flame.focus]) flame.focus = flame.zoomed;
	},

	/* With the time before, by shares of everybody's samples. */
	compare() {
		flame.change = null;
		if (!data.against || !$("flame-differs").checked) return;
		const { total, everybody } = flame.sum(lowerBound(null, data.against.before), lowerBound(null, data.against.since));
		if (!everybody || !flame.everybody) return;
		flame.change = total.map((t, i) => flame.total[i] / flame.everybody - t / everybody);
		flame.most = flame.change.reduce((a, b) => Math.max(a, Math.abs(b)), 0.01);
	},

	color(node) {
		if (!node) return colors.line;
		return flame.change ? changeColor(flame.change[node] / flame.most) : frameColor(flame.tree.frame[node]);
	},

	link({ n, parent }, total) {
		const children = new Map();
		for (let i = 1; i < n; i++) {
			if (!total[i]) continue;
			const list = children.get(parent[i]);
			if (list) list.push(i);
			else children.set(parent[i], [i]);
		}
		for (const list of children.values()) list.sort((a, b) => total[b] - total[a] || a - b);
		return children;
	},

	name(node) {
		if (!node) return "all";
		const f = data.frames[flame.tree.frame[node]];
		return f.name;
	},

	describe(node) {
		const f = node ? data.frames[flame.tree.frame[node]] : null;
		const value = (x) => (flame.weight === "samples" ? plural(x, "sample") : flame.period(x));
		const all = flame.total[0] || 1;
		return [`${flame.name(node)}`, ...(f && f.dso ? [f.dso + (f.kernel && !f.dso.startsWith("[") ? " (kernel)" : "")] : f ? ["process"] : []),
			`${value(flame.total[node])}, ${percent(flame.total[node] / all)}`,
			`itself ${value(flame.self[node])}, ${percent(flame.self[node] / all)}`,
			...(flame.change ? [flame.describeChange(flame.total[node] / flame.everybody, flame.change[node])] : [])];
	},

	describeChange: (now, change) => `of all processes ${percent(now)}, in the time before ${percent(Math.max(0, now - change))}`,

	/* Clocks count nanoseconds. */
	period(x) {
		const of = data.events[flame.event];
		return of?.clock ? duration(x) : `${count(x)}${of ? " " + of.name : ""}`;
	},

	path(node) {
		const up = new Set();
		for (let i = node; i; i = flame.tree.parent[i]) up.add(i);
		return up.add(0);
	},

	/* The layout: the zoomed node and its callers have the full width. */
	layout(width) {
		const { total, children, tree } = flame, above = [];
		for (let i = flame.zoomed; i; i = tree.parent[i]) above.unshift(tree.parent[i]);
		flame.boxes = above.map((node, y) => ({ node, x: 0, y, w: width, above: true }));
		const stack = [[flame.zoomed, 0, above.length, width]];
		let deepest = above.length;
		while (stack.length) {
			const [node, x, y, w] = stack.pop();
			flame.boxes.push({ node, x, y, w });
			deepest = Math.max(deepest, y);
			let at = x;
			for (const child of children.get(node) ?? []) {
				const cw = w * total[child] / total[node];
				if (cw < 0.4) break; // the rest is even narrower
				stack.push([child, at, y + 1, cw]);
				at += cw;
			}
		}
		return deepest + 1;
	},

	draw() {
		if ($("flame").hidden || !data.n) return;
		const box = $("flame-box"), width = Math.max(40, box.clientWidth);
		$("flame-reset").disabled = !flame.zoomed;
		if (!flame.total || !flame.total[0]) {
			const c = canvasOf($("flame-canvas"), width, Math.max(60, box.clientHeight - 4));
			flame.boxes = [];
			c.fillStyle = colors.faint;
			c.fillText(flame.has.includes(1) ? "no call chains in what is selected" : "no record has a call chain (perfctl create -g)", 12, 22);
			$("flame-match").textContent = "";
			return;
		}
		const rows = flame.layout(width), height = Math.max(rows * flame.row, box.clientHeight - 4);
		const c = canvasOf($("flame-canvas"), width, height), icicle = $("flame-icicle").checked;
		const hit = flame.matching();
		for (const b of flame.boxes) {
			b.top = icicle ? b.y * flame.row : height - (b.y + 1) * flame.row;
			flame.drawBox(c, b, hit);
		}
		/* The root is in view until the user scrolls. */
		const edge = icicle ? 0 : height;
		if (flame.edge !== edge) box.scrollTop = flame.edge = edge;
	},

	drawBox(c, b, hit) {
		const { node, x, top, w } = b, frame = flame.tree.frame[node];
		const found = hit && node && hit[frame];
		c.globalAlpha = b.above ? 0.5 : hit && !found ? 0.45 : 1;
		c.fillStyle = found ? colors.match : flame.color(node);
		c.fillRect(x, top, Math.max(0.5, w - (w > 2 ? 0.6 : 0)), flame.row - 1);
		c.globalAlpha = b.above ? 0.8 : 1;
		const text = fitted(c, flame.name(node), w - 8);
		if (text) {
			c.fillStyle = found ? colors.ground : colors.text;
			c.fillText(text, x + 4, top + flame.row / 2);
		}
		if (node === flame.focus && document.activeElement === $("flame-box")) {
			c.strokeStyle = colors.accent;
			c.lineWidth = 2;
			c.strokeRect(x + 1, top + 1, Math.max(1, w - 2), flame.row - 3);
			c.lineWidth = 1;
		}
		c.globalAlpha = 1;
	},

	/* Frames whose names match the query, and their share; each sample counts once. */
	matching() {
		if (!view.words.length) {
			$("flame-match").textContent = "";
			return null;
		}
		const hit = data.frames.map((f) => view.words.some((has) => has(f.name) || has(f.dso)));
		const { tree, self, total } = flame, under = new Uint8Array(tree.n);
		let sum = 0;
		for (let i = 1; i < tree.n; i++) {
			under[i] = under[tree.parent[i]] || hit[tree.frame[i]] ? 1 : 0;
			if (under[i]) sum += self[i];
		}
		$("flame-match").textContent = sum ? `${percent(sum / total[0])} match` : "no match";
		flame.matched = sum;
		return hit;
	},

	zoomTo(node) {
		flame.zoomed = node;
		flame.edge = null;
		flame.setFocus(node);
	},

	setFocus(node) {
		flame.focus = node;
		$("flame-frame").textContent = flame.total?.[node] ? flame.describe(node).join("  ·  ") : "";
		flame.draw();
	},

	at(e) {
		const r = $("flame-canvas").getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
		return flame.boxes.find((b) => x >= b.x && x < b.x + b.w && y >= b.top && y < b.top + flame.row);
	},

	/* Moves towards the leaves, the root, or to the neighbours. */
	key(key) {
		const { tree, children, focus } = flame, outward = $("flame-icicle").checked ? "ArrowDown" : "ArrowUp";
		const list = children?.get(tree?.parent[focus]) ?? [], at = list.indexOf(focus);
		switch (key) {
		case "ArrowUp":
		case "ArrowDown":
			flame.setFocus(key === outward ? children.get(focus)?.[0] ?? focus : tree.parent[focus]);
			return true;
		case "ArrowLeft":
		case "ArrowRight":
			flame.setFocus(focus ? list[at + (key === "ArrowLeft" ? -1 : 1)] ?? focus : 0);
			return true;
		case "Enter": flame.zoomTo(focus); return true;
		case "Backspace": flame.zoomTo(0); return true;
		}
		return false;
	},
};

function flameChoices() {
	flame.has = Uint8Array.from(data.events, (e) => (e.count && (e.chains || !e.tracepoint) ? 1 : 0));
	const all = data.events.filter((e) => flame.has[e.index]), events = [...all].sort((a, b) => b.count - a.count).slice(0, flame.choices);
	const option = (value, text) => Object.assign(document.createElement("option"), { value, textContent: text });

	/* Different events do not add up: take the first sampling one, else the first. */
	flame.event = (all.find((e) => !e.tracepoint) ?? all[0])?.index ?? -1;
	$("flame-event").replaceChildren(...(all.length > flame.choices ? events : all).map((e) => option(e.index, e.name)),
		...(events.length > 1 ? [option(-1, "all events")] : []));
	$("flame-event").value = flame.event;
	$("flame-weight").replaceChildren(option("samples", "samples"), option("period", "period"));
	for (const id of ["flame-event", "flame-weight"]) $(id).disabled = !events.length;
	$("flame-event").onchange = (e) => {
		flame.event = Number(e.target.value);
		flame.again();
	};
	$("flame-weight").onchange = (e) => {
		flame.weight = e.target.value;
		flame.again();
	};
}

function startFlame() {
	flame.again = coalesced(() => {
		if ($("flame").hidden) return;
		flame.compute();
		flame.draw();
	});
	const redraw = coalesced(() => flame.draw());
	flameChoices();
	$("flame-against").hidden = !data.against;
	$("flame-differs").onchange = flame.again;
	on("range", flame.again);
	on("filter", flame.again);
	on("looks", redraw);
	new ResizeObserver(redraw).observe($("flame-box"));
	$("flame-split").onchange = () => {
		flame.zoomed = flame.focus = 0;
		flame.again();
	};
	$("flame-icicle").onchange = redraw;
	$("flame-reset").onclick = () => flame.zoomTo(0);
	const box = $("flame-box");
	box.addEventListener("mousemove", (e) => {
		const b = flame.at(e);
		if (b) showTip(e.clientX, e.clientY, flame.describe(b.node));
		else hideTip();
	});
	box.addEventListener("mouseleave", hideTip);
	box.addEventListener("click", (e) => {
		const b = flame.at(e);
		if (b) flame.zoomTo(b.node);
	});
	box.addEventListener("focus", redraw);
	box.addEventListener("blur", redraw);
	box.addEventListener("keydown", (e) => {
		if (!e.ctrlKey && !e.altKey && !e.metaKey && flame.key(e.key)) {
			e.preventDefault();
			e.stopPropagation();
		}
	});
}
