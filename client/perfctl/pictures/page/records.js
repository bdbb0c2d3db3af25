/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of records: only visible rows exist, out of any number. Browsers limit heights to some
 * tens of millions of pixels, so the scrollbar is scaled, and the wheel moves by rows.
 */

const records = {
	row: 22,
	limit: 8e6, // pixels
	top: 0, // the first visible row; may have a fraction
	lo: 0,
	n: 0,
	pool: [],

	at: (k) => (view.matches ? view.matches[records.lo + k] : records.lo + k),

	count() {
		const [lo, hi] = inRange(view.matches);
		records.lo = lo;
		records.n = Math.max(0, hi - lo);
		const box = $("rows");
		$("rows-size").style.height = Math.min(records.limit, records.n * records.row) + "px";
		box.setAttribute("aria-rowcount", records.n);
		records.scrollTo(Math.min(records.top, records.last()));
	},

	seen: () => $("rows").clientHeight / records.row,
	last: () => Math.max(0, records.n - records.seen()),

	/* scrollTop in rows, at any scale. */
	scale() {
		const way = Math.max(1, $("rows-size").offsetHeight - $("rows").clientHeight);
		return records.last() / way;
	},

	scrollTo(top) {
		records.top = Math.max(0, Math.min(records.last(), top));
		records.expected = Math.round(records.top / (records.scale() || 1));
		$("rows").scrollTop = records.expected;
		records.draw();
	},

	scrolled() {
		const top = $("rows").scrollTop;
		if (Math.abs(top - records.expected) > 1.5) {
			records.expected = top;
			records.top = Math.min(records.last(), top * records.scale());
		}
		records.draw();
	},

	/* The row of record i, or where it would be. */
	rowOf(i) {
		if (!view.matches) return i - records.lo;
		let lo = 0, hi = view.matches.length;
		while (lo < hi) {
			const m = (lo + hi) >>> 1;
			if (view.matches[m] < i) lo = m + 1;
			else hi = m;
		}
		return lo - records.lo;
	},

	show(i) {
		const k = records.rowOf(i);
		if (k < records.top + 1 || k > records.top + records.seen() - 2)
			records.scrollTo(k - records.seen() / 2);
		else records.draw();
	},

	newRow() {
		const row = document.createElement("div");
		row.className = "row";
		row.setAttribute("role", "row");
		for (let i = 0; i < 6; i++) {
			const cell = document.createElement("span");
			cell.setAttribute("role", "gridcell");
			row.append(cell);
		}
		$("rows-view").append(row);
		return row;
	},

	fill(row, k) {
		const i = records.at(k), task = data.tasks[data.task[i]], cells = row.children, e = data.event[i];
		const texts = [timeText(data.time[i]), cpuName(data.cpus[data.lane[i]]), task.comm, task.tid | 0,
			data.events[e].short, textOf(i)];
		texts.forEach((t, n) => { cells[n].textContent = t; });
		cells[4].style.setProperty("--dot", eventColor(e));
		row.dataset.record = i;
		row.id = "row" + k;
		row.setAttribute("aria-rowindex", k + 1);
		row.setAttribute("aria-selected", i === view.record);
		row.classList.toggle("odd", k % 2 === 1);
	},

	draw() {
		if (!data.n) return;
		const first = Math.floor(records.top), want = Math.min(records.n - first, Math.ceil(records.seen()) + 1, 500);
		const v = $("rows-view");
		while (records.pool.length < want) records.pool.push(records.newRow());
		records.pool.forEach((row, k) => {
			row.hidden = k >= want;
			if (!row.hidden) records.fill(row, first + k);
		});
		v.style.transform = `translateY(${$("rows").scrollTop - (records.top - first) * records.row}px)`;
		records.shown = Math.max(0, want);
	},
};

/* centre: the timeline moves there too. */
function pickRecord(i, centre) {
	view.record = i;
	if (centre) {
		const t = data.time[i], half = (view.to - view.from) / 2;
		if (t < view.from + half * 0.1 || t > view.to - half * 0.1 || half > data.end * 0.4) {
			const small = half > data.end * 0.4 ? Math.max(data.end / 40, 500) : half;
			look(t - small, t + small);
		}
	}
	const task = data.tasks[data.task[i]], text = textOf(i);
	$("record").replaceChildren();
	const title = document.createElement("b");
	title.textContent = data.events[data.event[i]].name;
	$("record").append(title, `  ${timeText(data.time[i])}  CPU ${cpuName(data.cpus[data.lane[i]])}  ${taskName(task)}  `, text, chainText(data.node[i]));
	records.show(i);
	changed("record");
}

/* The innermost frames, on one line. */
function chainText(node) {
	const names = [];
	for (let i = node; i && data.frames[data.nodes.frame[i]].dso !== ""; i = data.nodes.parent[i]) names.push(data.frames[data.nodes.frame[i]].name);
	if (!names.length) return "";
	return `  ← ${names.slice(0, 12).join(" ← ")}${names.length > 12 ? ` ← … ${names.length - 12} more` : ""}`;
}

/* The neighbour of the picked record, or the first visible one. */
function step(by) {
	if (!records.n) return;
	const now = view.record < 0 ? Math.floor(records.top) - (by > 0 ? 1 : 0) : records.rowOf(view.record);
	const there = view.record >= 0 && records.at(now) === view.record;
	const k = there || by < 0 || view.record < 0 ? now + by : now;
	pickRecord(records.at(Math.max(0, Math.min(records.n - 1, k))), true);
}

function startRecords() {
	const recount = coalesced(() => {
		records.count();
		const sum = view.matches ? view.matches.length : data.n;
		$("matches").textContent = filter.active() || view.range
			? `${count(records.n)} of ${plural(data.n, "record")}` : "";
		$("clear").disabled = !filter.active() && !view.range;
		records.found = sum;
	});
	on("range", recount);
	on("filter", recount);
	on("looks", () => records.draw());
	on("record", () => records.draw());
	const box = $("rows");
	new ResizeObserver(recount).observe(box);
	box.addEventListener("scroll", () => records.scrolled());
	box.addEventListener("wheel", (e) => {
		if (e.ctrlKey) return;
		e.preventDefault();
		records.scrollTo(records.top + e.deltaY * (e.deltaMode === 1 ? 1 : 1 / records.row));
	}, { passive: false });
	box.addEventListener("click", (e) => {
		const row = e.target.closest(".row");
		if (row && getSelection().isCollapsed) pickRecord(Number(row.dataset.record), true);
	});
	box.addEventListener("keydown", (e) => {
		const page = Math.max(1, Math.floor(records.seen()) - 1);
		const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -records.n, End: records.n }[e.key];
		if (!by || e.ctrlKey || e.altKey || e.metaKey) return;
		e.preventDefault();
		e.stopPropagation();
		step(by);
	});
}
