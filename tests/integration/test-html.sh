#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# `perfctl report --html` in a headless Chromium: the page's counts equal perf's for the same file.
# The page shows names and never interprets them, makes no network requests, and reacts to mouse,
# keys and search. A damaged page says so; one with many records (at full length a million) is
# usable.
. "$(dirname "$0")/../lib.sh"
. "$ROOT/tests/chromium.sh"

command -v perf >/dev/null || skip "needs perf"

# Markup and an escape; quotes, and a character that reverses the line's direction. A name has 15
# bytes.
# shellcheck disable=SC2089,SC2090
export TURNED
# shellcheck disable=SC2089
export HOSTILE=$'</script><b>\e[1'
# shellcheck disable=SC2089
TURNED=$'ab\u202edc"\'&'

result() {
	jq -r "$1" <<<"$RESULT"
}

# test_page FILE [QUERY]: RESULT has the counts of the page's own test.
test_page() {
	local query
	query=$(jq -nr --arg q "${2-}" '$q | @uri')
	page_open "$1#test=$query"
	page_ask 'document.getElementById("test").textContent'
	RESULT=$PAGE_ANSWER
	expect_eq "$(result '.faults | join(", ")')" "" "faults of the page"
}

# perf_script FILE FIELDS: fails if perf cannot read its own file.
perf_script() {
	perf script -i "$1" --ns -F "$2" 2>"$SCRATCH/perf.err" || fail "perf script -F $2: $(<"$SCRATCH/perf.err")"
}

nothing_lost() {
	expect_eq "$(perf script -i "$1" --show-lost-events -F event 2>/dev/null | grep -c PERF_RECORD_LOST || true)" 0 \
		"losses that perf tells of in $1"
}

# Counts by perf: "KEY N" lines, sorted.
by_perf() {
	perf_script "$1" "$2" | sed 's/^ *//; s/: *$//' | grep . |
		LC_ALL=C sort | uniq -c | awk '{ print $2, $1 }' | LC_ALL=C sort
}

by_page() {
	result ".$1 | to_entries[] | select(.value > 0) | \"\(.key) \(.value)\"" | LC_ALL=C sort
}

write_page() { # FILE PAGE [OPTION…]
	expect_ok perfctl report -i "$1" --html "$2" "${@:3}"
	chmod 0644 "$2"
}

named() {
	local name=$1
	shift
	(printf %s "$name" >"/proc/$BASHPID/comm" && "$@")
}

# shellcheck disable=SC2317 # by named
calls() {
	local i
	for ((i = 0; i < 400; i++)); do echo >/dev/null; done
}

# shellcheck disable=SC2317 # by perf
workload() {
	named "$HOSTILE" calls
	named "$TURNED" calls
	find /etc -xdev >/dev/null || true
	timeout 0.4 sh -c 'while :; do :; done' || true
}
export -f workload named calls

chromium_start

# ── the same counts as perf's ────────────────────────────────────────────────────────────

# Other processes must not fill perf's buffers or keep perf from emptying them: it records only the
# workload's system calls, and runs with real-time priority. A lost record could be the name of
# find, which is searched for below.
perf record -q -a -r 1 -m 16M -o "$SCRATCH/data" -c 1 -e sched:sched_switch -e raw_syscalls:sys_enter \
	--filter 'COMM ~ "</script*" || COMM ~ "ab*" || COMM == "find" || COMM == "bash"' \
	-e cpu-clock/period=1000000,call-graph=fp,name=cpu-clock/ -- bash -c workload 2>/dev/null
nothing_lost "$SCRATCH/data"
without_ksymbols "$SCRATCH/data"
write_page "$SCRATCH/data" "$SCRATCH/page.html"
test_page "$SCRATCH/page.html" "event:sys_enter"

expect_eq "$(result .records)" "$(perf_script "$SCRATCH/data" event | grep -c .:)" records
expect_eq "$(by_page events)" "$(by_perf "$SCRATCH/data" event | sed 's/: / /')" "records of each event"
expect_eq "$(by_page cpus)" "$(by_perf "$SCRATCH/data" cpu | tr -d '[]' |
	awk '{ print $1 + 0, $2 }' | LC_ALL=C sort)" "records of each CPU"
clocks=$(perf_script "$SCRATCH/data" event | grep -c cpu-clock)
[ "$clocks" -gt 100 ] || fail "only $clocks samples"
expect_eq "$(result .flame)" "$clocks" "samples in the flame graph"
expect_eq "$(result .found)" "$(perf_script "$SCRATCH/data" event |
	grep -c sys_enter)" "records that a search finds"
[ "$(result .rows)" -gt 5 ] || fail "no rows are shown"
expect_eq "$(result '.times | join(" ")')" "$(perf_script "$SCRATCH/data" time |
	tr -d ' .:' | sed -n '1p;$p' | sed 's/^0*//' | tr '\n' ' ' | sed 's/ $//')" "first and last time"

# The text of a field (of timeout, which waits and so is switched to), of one program, and of all
# but one program.
for query in 'comm:find' 'comm:find event:sys_enter NR' '-comm:find event:sys_enter' 'next_comm=timeout' 'cpu:0 event:clock'; do
	case $query in
	# (A part of the name is enough, as that of unit/test-findings, which may run just now.)
	comm:find) want=$(perf_script "$SCRATCH/data" comm | grep -c find) ;;
	*NR) want=$(perf_script "$SCRATCH/data" comm,trace | grep -c '^ *find  *NR') ;;
	-comm*) want=$(perf_script "$SCRATCH/data" comm,event | grep sys_enter | grep -vc '^ *find ') ;;
	next*) want=$(perf_script "$SCRATCH/data" trace | grep -c next_comm=timeout) ;;
	cpu*) want=$(perf_script "$SCRATCH/data" cpu,event | grep -c '\[000\].*clock') ;;
	esac
	page_ask "view.query = $(jq -n --arg q "$query" '$q'); filter.start().then(() => view.matches.length)"
	[ "$want" -gt 0 ] || fail "nothing to be found for '$query'"
	expect_eq "$PAGE_ANSWER" "$want" "records found by '$query'"
done

# ── strangers' names ─────────────────────────────────────────────────────────────────────

# Blocks are base64, because a browser could read a name in the file as markup.
if grep -aqF "${HOSTILE%$'\e'*}" "$SCRATCH/page.html"; then fail "a name is in the page as it is"; fi
expect_eq "$(grep -ao '<script' "$SCRATCH/page.html" | sort | uniq -c | awk '{ print $1 }')" \
	"$(grep -ao '</script>' "$SCRATCH/page.html" | wc -l)" "scripts that begin and end"
# Another run of this test at the same time has processes of the same names.
page_ask 'clearAll(); filter.done.then(() => [...new Set(data.processes.filter((p) => p.comm.includes("<b>")).map((p) => p.comm))].join())'
# shellcheck disable=SC1003
expect_eq "$PAGE_ANSWER" '</script><b>\u001b[1' "a hostile name"
page_ask '[...new Set(data.processes.filter((p) => p.comm.startsWith("ab\\u202e")).map((p) => p.comm))].join()'
expect_eq "$PAGE_ANSWER" "ab\\u202edc\"'&" "a name that turns the line around"
page_ask 'view.query = "</script>"; filter.start().then(() => new Promise(requestAnimationFrame)).then(() =>
	[view.matches.length > 0, document.querySelectorAll("main b:not(#record b), #rows b").length,
	document.querySelector("#rows .row").textContent.includes("</script><b>")].join())'
expect_eq "$PAGE_ANSWER" "true,0,true" "a hostile name in the table"

# ── no network, no script but its own ────────────────────────────────────────────────────

expect_eq "$(page_requests | sort -u | sed 's/#.*//')" "file://$SCRATCH/page.html" "requests"
page_ask 'fetch("http://127.0.0.1:9/").then(() => "fetched", () => "refused")'
expect_eq "$PAGE_ANSWER" refused "a request"
page_ask 'new Promise((done) => {
	const s = document.createElement("script");
	addEventListener("securitypolicyviolation", (e) => done(e.effectiveDirective));
	s.textContent = "globalThis.foreign = 1";
	document.body.append(s);
}).then((what) => what + " " + typeof foreign)'
expect_eq "$PAGE_ANSWER" "script-src-elem undefined" "a script that is not its own"

# ── keys and mouse ───────────────────────────────────────────────────────────────────────

page_open "$SCRATCH/page.html"
expect_ask() { # EXPRESSION WANT WHAT
	page_ask "$1"
	expect_eq "$PAGE_ANSWER" "$2" "$3"
}
page_ask 'globalThis.size = () => Math.round(view.to - view.from); globalThis.all = size(); all'
page_press w w
expect_ask 'size() < all * 0.6' true "w zooms in"
page_press 0
expect_ask 'size() === all' true "0 shows all"
page_press n
expect_ask 'view.record >= 0 && view.from <= data.time[view.record] && data.time[view.record] <= view.to' true \
	"n goes to a record and shows where it is"
page_ask 'const box = document.getElementById("cpus").getBoundingClientRect();
	[box.left + 300, box.top + 10, box.left + 500].map(Math.round).join(" ")'
read -r x0 y x1 <<<"$PAGE_ANSWER"
page_press 0
for event in mousePressed:"$x0" mouseMoved:$(((x0 + x1) / 2)) mouseMoved:"$x1" mouseReleased:"$x1"; do
	_page_call Input.dispatchMouseEvent "{\"type\": \"${event%:*}\", \"x\": ${event#*:}, \"y\": $y,
		\"button\": \"left\", \"buttons\": 1, \"clickCount\": 1}"
done
page_ask 'new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame)).then(() => 1)'
expect_ask 'Math.round(timeline.x(view.range[0]) - timeline.x(view.range[1]))' -200 "a range is dragged"
expect_ask 'records.n === data.time.filter((t) => t >= view.range[0] && t <= view.range[1]).length' true \
	"the table is of the range"
expect_ask 'flame.compute(); flame.total[0] === data.time.filter((t, i) => t >= view.range[0] &&
	t <= view.range[1] && data.events[data.event[i]].name === "cpu-clock").length' true \
	"the flame graph is of the range"
page_press Enter
expect_ask 'Math.abs(size() - (view.range[1] - view.range[0])) <= 60' true "Enter zooms into it"
page_press Escape
expect_ask 'view.range === null' true "Escape takes it away"
expect_ask 'document.querySelector("#events button").click(); filter.done.then(() =>
	view.matches.length === data.n - Math.max(...data.events.map((e) => e.count)))' true "an event is hidden"
# How long things took, as in the report; a click goes there.
perfctl report -i "$SCRATCH/data" --off-cpu --json >"$SCRATCH/off-cpu"
expect_ask 'JSON.stringify(data.latencies.map((l) => [l.key, l.count, l.rows.length]))' \
	"$(jq -c '[["off_cpu", .off_cpu.count, (.off_cpu.rows | length)]]' "$SCRATCH/off-cpu")" "latencies in the page"
expect_ask 'showTab("tab-latency"); latency.draw(); document.querySelectorAll("#latency table")[1].querySelector("tbody tr").click();
	[document.querySelectorAll("#latency table")[0].tBodies[0].rows.length,
	Math.abs(view.range[1] - view.range[0] - data.latencies[0].longest[0].duration) < 2, view.from <= view.range[0]].join()' \
	"$(jq '.off_cpu.rows | length' "$SCRATCH/off-cpu"),true,true" "a click on the longest"
expect_ask 'const h = { first: 0, n: 2, from: data.end / 2, to: data.end, cpus: [[0, 0], [1, data.end / 2]], lost: 0, missed: 7,
	missed_at_least: true, limited: 0 }; data.histories = [h]; coverage.draw(); drawHead(); drawFacts();
	[$("histories").hidden, coverage.text(h).replace(/[\d.]+\u202fm?s/g, "T"), $("counts").lastChild.textContent].join()' \
	"false,complete for T of T, 7+ missed,lost or missed7+" "an event that has not all of the time"
expect_ask 'faults.join()' "" "faults of the page"

# ── the tree of processes ────────────────────────────────────────────────────────────────

# The rows and numbers of the report, as nothing is selected.
perf record -q -o "$SCRATCH/tree" -e sched:sched_process_exit -- \
	bash -c 'for i in {1..40}; do /bin/true; done; (/bin/echo; /bin/echo; :) | cat; exec sleep 0' >/dev/null 2>&1
# Of a thread that is exiting the kernel gives the process alone, or not even that: these are not one thread.
ending() {
	perl "$ROOT/tests/integration/histories.pl" 1 1
	perl -e 'sub sample { pack "L< S< S< Q< L< L< Q< Q<", 9, 0, 40, 1, @_, 1 }
		print pack("L< S< S< L< L< a16 L< L< Q< Q< Q<", 3, 0, 64, 7, 7, "ending", 7, 7, 2_000_000_000, 0, 1),
			sample(0xffffffff, 0xffffffff, 2_000_001_000), sample(7, 7, 2_000_002_000), sample(7, 0xffffffff, 2_000_003_000)'
}
ending >"$SCRATCH/ending"
for file in tree data ending; do
	write_page "$SCRATCH/$file" "$SCRATCH/tree.html"
	page_open "$SCRATCH/tree.html"
	page_ask 'const own = tree.sum(summarize().procs).own; JSON.stringify(data.groups.map((g, i) =>
		[g.comm, g.n, own[i].n, data.groups[g.parent]?.comm ?? null]).filter(([, n, records]) => n > 0 || records > 0))'
	jq -c 'map(.[0] |= (gsub("\\\\u202e"; "\u202e") | gsub("\\\\u001b"; "\u001b"))) | sort[]' <<<"$PAGE_ANSWER" >"$SCRATCH/page-tree"
	perfctl report -i "$SCRATCH/$file" --json | jq -c '.process_tree as $t | [$t[] |
		[.comm, .processes, .records, if .parent == null then null else $t[.parent].comm end]] | sort[]' >"$SCRATCH/text-tree"
	grep -vxFf "$SCRATCH/page-tree" "$SCRATCH/text-tree" >"$SCRATCH/missing" || true
	expect_eq "$(<"$SCRATCH/missing")" "" "rows of the report that are not on the page of $file"
	expect_eq "$(jq -s 'map(.[2]) | add' "$SCRATCH/page-tree")" "$(jq -s 'map(.[2]) | add' "$SCRATCH/text-tree")" "records in the tree of $file"
done
write_page "$SCRATCH/tree" "$SCRATCH/tree.html"
page_open "$SCRATCH/tree.html"
expect_ask 'showTab("tab-processes"); tree.draw(); globalThis.rows = () => [...document.querySelectorAll("#processes tbody tr")].map((r) =>
	[...r.cells].map((c) => c.textContent.replace(/\u202f/g, "")));
	rows().filter((r) => r[0].endsWith("true")).map((r) => [r[1], r[3]].join()).join(";")' "▸ 40 processes,40" "40 programs are a row"
expect_ask 'globalThis.row = (end) => [...document.querySelectorAll("#processes tbody tr")].find((r) => r.cells[0].textContent.endsWith(end));
	row("true").querySelector("[aria-expanded=false]").click(); [rows().filter((r) => r[0] === "true" && r[3] === "1").length,
	rows().filter((r) => r[0] === "and 20 more").length].join()' "20,1" "each of the 40"
# Folded, a row has the sums of all below.
expect_ask 'globalThis.all = rows().length; row("true").querySelector("[aria-expanded=true]").click();
	document.querySelector("#processes tbody tr .fold").click();
	[rows().length, rows()[0][3] === String(data.n)].join()' "1,true" "the tree folded"
expect_ask 'document.querySelector("#processes tbody tr").dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
	[rows().length > 3, rows().length === all - 21].join()' "true,true" "the tree unfolded by a key"
page_ask 'row("true").click(); filter.done.then(() => [view.matches.length, view.processes.size].join())'
expect_eq "$PAGE_ANSWER" "40,40" "a click on 40 programs"
expect_ask 'document.getElementById("process").selectedOptions[0].textContent' "true (40 processes)" "the choice of 40 programs"
expect_ask 'faults.join()' "" "faults of the page"

# With --about, the processes have what others did to them, and a choice has it.
write_page "$SCRATCH/data" "$SCRATCH/tree.html" --about
page_open "$SCRATCH/tree.html"
pid=$(perfctl report -i "$SCRATCH/data" --about --json --top 1000000 | jq '[.processes[] | select(.pid > 0)] | max_by(.about).pid')
page_ask "const chosen = data.processes.filter((p) => p.pid === $pid), sums = summarize().procs;
	pickProcesses(chosen).then(() => [chosen.reduce((n, p) => n + sums[p.index].about, 0), view.matches.length].join())"
expect_eq "$PAGE_ANSWER" "$(perfctl report -i "$SCRATCH/data" --about --json --top 1000000 |
	jq --argjson pid "$pid" '.processes[] | select(.pid == $pid).about'),$(
	perfctl report -i "$SCRATCH/data" --pid "$pid" --about --json | jq .records)" "records about a process on the page"

# ── a moment beside the time before ──────────────────────────────────────────────────────

cp "$(command -v bash)" "$SCRATCH/pg-crasher"
cp "$(command -v bash)" "$SCRATCH/pg-burner"
chmod 0755 "$SCRATCH"/pg-*
# A signal of a fault that never came before is always the first line.
mkfifo -m 0666 "$SCRATCH/go"
# (pg-burner is there by then, however long it takes to start it.)
(cd "$SCRATCH" && ulimit -c 0 && perf record -q -a -m 8M -o moment -e cpu-clock/freq=999,call-graph=fp,name=cpu-clock/ \
	-e signal:signal_generate -- sh -c './pg-burner -c "read -r _ <go; for ((i = 0; i < 150000; i++)); do :; done" & sleep 1.5; ./pg-crasher -c "kill -SEGV \$\$"; echo >go; wait' \
	2>/dev/null) || true
without_ksymbols "$SCRATCH/moment"
# The moment begins shortly before the crash, however long all of it took, and is shorter than the time before.
crash=$(perfctl script -i "$SCRATCH/moment" --json 2>/dev/null |
	jq -r 'select(.event == "signal:signal_generate" and .comm == "pg-crasher" and .fields.sig == 11).time' | head -n 1)
# before_crash MS: that time, in seconds; or behind it, if MS is below 0.
before_crash() {
	echo "$(((crash - $1 * 1000000) / 1000000000)).$(printf '%09d' $(((crash - $1 * 1000000) % 1000000000)))"
}
moment=(--since "$(before_crash 100)" --until "$(before_crash -800)" --against 1s)
write_page "$SCRATCH/moment" "$SCRATCH/moment.html" "${moment[@]}"
perfctl report -i "$SCRATCH/moment" "${moment[@]}" --json >"$SCRATCH/changes"
page_open "$SCRATCH/moment.html"
expect_ask 'JSON.stringify(data.against.lines.map((l) => [l.kind, l.comm ?? "", l.what ?? ""]))' \
	"$(jq -c '[.changes[] | select(.is_line) | [.kind, .comm // "", .what // ""]][:20]' "$SCRATCH/changes")" "lines on the page"
expect_ask "[data.n, data.base + BigInt(Math.round(view.range[0])),
	view.range[1] === Math.min(Number($(grep -oP '"until":\K\d+' "$SCRATCH/changes")n - data.base), data.end)].join()" \
	"$(perfctl report -i "$SCRATCH/moment" --since "$(before_crash 1100)" --until "$(before_crash -800)" --json |
		jq .records),$(grep -oP '"since":\K\d+' "$SCRATCH/changes"),true" "records of both times, and the moment that is selected"
expect_ask '[document.getElementById("tab-changes").getAttribute("aria-selected"), document.querySelectorAll("#changes tbody tr").length === data.against.lines.length].join()' \
	"true,true" "the table of changes"
page_ask 'document.querySelector("#changes tbody tr").click(); filter.done.then(() => [...view.processes].map((p) => p.comm).join())'
expect_eq "$PAGE_ANSWER" pg-crasher "a click on a crash"
# Its own function: the first that has a name and a share of more than half.
page_ask 'clearAll(); pickProcesses(null).then(() => { flame.compute();
	const shares = (from, to) => { const of = {}; let all = 0;
		for (let i = lowerBound(null, from); i < lowerBound(null, to + 0.5); i++) {
			if (!flame.has[data.event[i]] || data.event[i] !== flame.event) continue;
			const comm = data.tasks[data.task[i]].comm; of[comm] = (of[comm] ?? 0) + 1; all++; }
		return (comm) => (of[comm] ?? 0) / all; };
	const now = shares(...changes.moment()), before = shares(data.against.before, data.against.since - 1);
	select(changes.moment()); flame.compute();
	return flame.children.get(0).every((n) => Math.abs(flame.change[n] - now(flame.name(n)) + before(flame.name(n))) < 1e-9); })'
expect_eq "$PAGE_ANSWER" true "the change of each process in the flame graph"
page_ask 'const deep = [...flame.total.keys()].find((i) => i && flame.self[i] && flame.name(flame.tree.parent[i]) !== flame.name(i));
	changes.pick({ kind: "cpu_time", comm: "pg-burner", function: flame.name(deep) }).then(() =>
	[[...view.processes].map((p) => p.comm).join(), document.getElementById("flame").hidden, flame.name(flame.zoomed) === flame.name(deep) || !flame.zoomed,
	flame.change[flame.children.get(0)[0]] > 0].join())'
expect_eq "$PAGE_ANSWER" "pg-burner,false,true,true" "a click on time in a function"
page_ask 'changes.pick({ kind: "event", what: "signal:signal_generate" }).then(() => [view.processes, ...data.events.filter((e) => view.events[e.index]).map((e) => e.name)].join())'
expect_eq "$PAGE_ANSWER" ",signal:signal_generate" "a click on an event"
expect_ask 'faults.join()' "" "faults of the page"

# A narrow window stacks the parts, and draws only the visible rows.
_page_call Emulation.setDeviceMetricsOverride '{"width": 700, "height": 900, "deviceScaleFactor": 1, "mobile": false}'
page_open "$SCRATCH/page.html"
expect_ask 'records.count(); records.shown > 0 && records.shown < 60' true "rows in a narrow window"
_page_call Emulation.clearDeviceMetricsOverride
page_open "$SCRATCH/page.html"

# Switches tell which task ran: the page's sums for both CPUs equal the elapsed time.
expect_ask 'clearAll(); data.runs.filter(Boolean).every((r) => r.start[0] === 0 && r.start[r.n] === data.end &&
	r.busy[r.n] <= data.end)' true "who ran"

# ── what is not well ─────────────────────────────────────────────────────────────────────

sed 's/\(class="records">....................\)..../\1AAAA/' "$SCRATCH/page.html" >"$SCRATCH/damaged.html"
chmod 0644 "$SCRATCH/damaged.html"
page_open "$SCRATCH/damaged.html"
page_ask 'document.getElementById("progress").textContent'
expect_match "$PAGE_ANSWER" '^This page cannot be shown: ' "a damaged page"

# Any number of histories, and of CPUs in one: their lists are short, and the sums are of all.
events=$(length 100000 300000)
for size in "$events 1" "2 300000"; do
	# shellcheck disable=SC2086 # two numbers
	perl "$ROOT/tests/integration/histories.pl" $size >"$SCRATCH/histories"
	write_page "$SCRATCH/histories" "$SCRATCH/histories.html"
	page_open "$SCRATCH/histories.html"
	n=${size% *}
	page_ask 'showTab("tab-counts"); drawCounts(); showTab("tab-flame"); flame.compute(); timeline.draw(); coverage.draw();
		[data.n, data.histories.length, $("histories").hidden, $("facts").children.length < 80, coverage.sum().join(), faults.join(), data.histories[0].cpus.length].join()'
	expect_eq "$PAGE_ANSWER" "$n,$n,false,true,$n,false,,${size#* }" "a page of $size histories"
done
perl "$ROOT/tests/integration/histories.pl" 100 1 >"$SCRATCH/histories"
expect_ok perfctl report -i "$SCRATCH/histories" --top 7
expect_eq "$(grep -c '^cpu-clock: complete for ' <<<"$OUT")" 7 "lines for 100 histories"
expect_match "$OUT" $'\n\\(93 more; all together missed 100\\)\n' "those that have no line"

# The file is complete, or does not exist.
expect_exit 1 perfctl report -i "$SCRATCH/data" --html "$SCRATCH/nowhere/page.html"
expect_match "$OUT" "nowhere"
expect_exit 1 perfctl report -i /etc/passwd --html "$SCRATCH/none.html"
[ ! -e "$SCRATCH/none.html" ] || fail "a page was left behind"

# ── many records ─────────────────────────────────────────────────────────────────────────

# Four records for each block. Records all processes, because perf 6.1 crashes on some files of a
# single one, but only dd's system calls.
blocks=$(length 25000 260000)
perf record -q -a -r 1 -m 16M -o "$SCRATCH/many" -c 1 -e raw_syscalls:sys_enter --filter 'COMM == "dd"' \
	-e raw_syscalls:sys_exit --filter 'COMM == "dd"' -- \
	dd if=/dev/zero of=/dev/null bs=1 count="$blocks" status=none
nothing_lost "$SCRATCH/many"
without_ksymbols "$SCRATCH/many"
many=$(perf_script "$SCRATCH/many" event | grep -c .:)
[ "$many" -gt $((4 * blocks)) ] || fail "only $many records"
started=$EPOCHREALTIME
write_page "$SCRATCH/many" "$SCRATCH/many.html"
written=$EPOCHREALTIME
test_page "$SCRATCH/many.html" '"NR 1 = 1"'
expect_eq "$(result .records)" "$many" "records of many"
expect_eq "$(result .found)" "$(perf_script "$SCRATCH/many" trace | grep -c 'NR 1 = 1')" \
	"found among many"
page_ask 'const t0 = performance.now(); let frames = 0;
	for (let s = data.end; s > data.end / 1000; s *= 0.8, frames++) { look(data.end / 2 - s / 2, data.end / 2 + s / 2); timeline.draw(); }
	Math.round((performance.now() - t0) / frames * 10) / 10'
awk -v a="$started" -v b="$written" -v n="$many" -v size="$(stat -c %s "$SCRATCH/many.html")" \
	-v ready="$(result .ready)" -v search="$(result .search)" -v draw="$PAGE_ANSWER" 'BEGIN {
	printf "%d records: written in %.1f s, %.1f MB; opened in %.1f s, searched in %.2f s, a picture in %.1f ms\n",
		n, b - a, size / 1e6, ready / 1000, search / 1000, draw }'

chromium_stop

# ── of events that record just now ───────────────────────────────────────────────────────

start_daemon
# A buffer that others cannot fill.
expect_ok perfctl create h/switches -e sched:sched_switch --filter 'prev_comm == "sleep" || next_comm == "sleep"'
sleep 0.01
expect_ok perfctl report h/switches --html "$SCRATCH/live.html"
grep -q 'id="info"' "$SCRATCH/live.html" || fail "no page of an event"

# From when on a small buffer has all records.
expect_ok perfctl create h/small -e raw_syscalls:sys_enter -m 4K
dd if=/dev/zero of=/dev/null bs=1 count=5000 status=none
expect_ok perfctl report h/switches h/small --html "$SCRATCH/live.html"
sed -n 's/.*id="info">\(.*\)<\/script>.*/\1/p' "$SCRATCH/live.html" | base64 -d |
	perl -MCompress::Zlib -e 'undef $/; print uncompress(<>)' >"$SCRATCH/info"
expect_eq "$(jq -c '.events as $e | [.histories[] | [$e[.first].name, .from > 0, (.cpus | length > 0), .missed_at_least]]' "$SCRATCH/info")" \
	'[["sched:sched_switch",false,true,false],["raw_syscalls:sys_enter",true,true,false]]' "histories in the page"
expect_ok perfctl report h/switches h/small
expect_match "$OUT" 'raw_syscalls:sys_enter: (complete for 0\.[0-9]* of|at no time complete)' "a history in the report"
expect_ok perfctl delete h/switches h/small
