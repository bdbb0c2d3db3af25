/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Selects records: by enabled events and CPUs, one process, and the query. It runs in slices, so
 * that typing stays smooth with millions of records; a new run ends an older one.
 *
 * A query is a list of words that must all match; "…" keeps spaces, a leading - negates. comm:,
 * pid:, tid:, cpu:, event: search only there, any other word searches process, event and text.
 * Upper case in a word makes it case-sensitive.
 */

function parseQuery(text) {
	const words = [];
	for (const [, not, key, quoted, plain] of
		text.matchAll(/(-?)(?:(comm|pid|tid|cpu|event):)?(?:"([^"]*)"?|(\S+))/g)) {
		const word = quoted ?? plain;
		if (word) words.push({ not: !!not, key, word });
	}
	return words;
}

function matcher(word) {
	const cased = /[A-Z]/.test(word), small = word.toLowerCase();
	return (text) => (cased ? text.includes(word) : text.toLowerCase().includes(small));
}

/* "0-3,8" */
function numberSet(text) {
	const set = text.split(",").map((part) => part.split("-").map(Number));
	return (n) => set.some(([a, b = a]) => n >= a && n <= b);
}

/* Which tasks, events and lanes a word matches; null: none. */
function compile({ not, key, word }) {
	const has = matcher(word), among = numberSet(word);
	const mark = (list, f) => Uint8Array.from(list, (x) => (f(x) ? 1 : 0));

	switch (key) {
	case "comm": return { not, tasks: mark(data.tasks, (t) => has(t.comm)) };
	case "pid": return { not, tasks: mark(data.tasks, (t) => among(t.pid)) };
	case "tid": return { not, tasks: mark(data.tasks, (t) => among(t.tid)) };
	case "cpu": return { not, lanes: mark(data.cpus, (c) => among(c)) };
	case "event": return { not, events: mark(data.events, (e) => has(e.name)) };
	}
	return {
		not, text: word,
		tasks: mark(data.tasks, (t) => has(t.comm) || String(t.pid) === word || String(t.tid) === word),
		events: mark(data.events, (e) => has(e.name)),
	};
}

/* Which texts of a chunk contain word. */
function textsWith(chunk, word) {
	const found = new Uint8Array(chunk.ends.length), ends = chunk.ends;
	const pattern = new RegExp(word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), /[A-Z]/.test(word) ? "g" : "gi");
	let k = 0;

	for (let m; (m = pattern.exec(chunk.texts)); pattern.lastIndex = ends[k] + 1) {
		let lo = k, hi = ends.length - 1;
		while (lo < hi) {
			const middle = (lo + hi) >>> 1;
			if (ends[middle] <= m.index) lo = middle + 1;
			else hi = middle;
		}
		k = lo;
		found[k] = 1;
	}
	return found;
}

const filter = {
	running: 0,
	done: Promise.resolve(),

	active() {
		return view.processes || view.query || view.events.includes(0) || view.lanes.includes(0);
	},

	/* Starts again; done resolves when the newest run has finished. */
	start() {
		const me = ++filter.running;
		filter.done = filter.run(me);
		return filter.done;
	},

	async run(me) {
		const words = parseQuery(view.query).map(compile);
		view.words = words.filter((w) => w.text && !w.not).map((w) => matcher(w.text));
		if (!filter.active()) {
			view.matches = null;
			changed("filter");
			return;
		}
		let found = new Uint32Array(4096), n = 0, since = performance.now();
		for (const chunk of data.chunks) {
			const texts = words.map((w) => (w.text ? textsWith(chunk, w.text) : null));
			if (n + chunk.n > found.length) {
				const more = new Uint32Array(Math.min(data.n, (n + chunk.n) * 2));
				more.set(found.subarray(0, n));
				found = more;
			}
			n = filter.pass(chunk, words, texts, found, n);
			if (performance.now() - since > 12) {
				$("matches").textContent = `searching… ${percent((chunk.first + chunk.n) / data.n)}`;
				await pause();
				if (me !== filter.running) return filter.done;
				since = performance.now();
			}
		}
		view.matches = found.slice(0, n);
		changed("filter");
	},

	pass(chunk, words, texts, found, n) {
		const { event, lane, task, text } = data;
	next:
		for (let i = chunk.first, end = i + chunk.n; i < end; i++) {
			if (!view.events[event[i]] || !view.lanes[lane[i]]) continue;
			if (!isOfMine(i)) continue;
			for (let k = 0; k < words.length; k++) {
				const w = words[k];
				const fits = w.tasks?.[task[i]] || w.events?.[event[i]] || w.lanes?.[lane[i]] ||
					texts[k]?.[text[i]];
				if (!fits === !w.not) continue next;
			}
			found[n++] = i;
		}
		return n;
	},
};

/* Whether the switches let a record through, regardless of the query; isShown: of any process. */
const isShown = (i) => view.events[data.event[i]] && view.lanes[data.lane[i]];
const isOn = (i) => isShown(i) && isOfMine(i);
