#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What recording costs real programs: redis, nginx, PostgreSQL, hackbench and a compile job, each with
# nothing, with the preset `flight`, and beside `perf record --overwrite` of the same events:
# tests/bench/apps.sh [BUILD]
#
# The three take turns, so that a slow minute hits all of them. A line has the median of ROUNDS (11) runs of
# SECONDS_EACH (1), with the quartiles of the change against the run with nothing of the same round; the same
# for the CPU time of an operation, of server and client together. For programs with latencies it has the
# 99th percentile, too. A server has the first half of the CPUs and its client the other: the scheduler's
# mood, which CPU it puts them on, makes more difference than any recorder. Each program gets a directory and
# ports of its own, and nothing of it is left.
#
# A virtual machine's speed changes by 10 % from one moment to the next, and each run of a client has its own.
# So servers are also measured while one run of the client goes on and recording is paused and resumed SLICES (400)
# times. Each slice of 0.05 s is compared with the one of nothing just before it, and with the one just after it (not
# with their mean: where slow slices are slower than fast ones are faster, two of a kind would differ); every second
# slice of nothing is compared with its neighbours likewise, which shows how far the measure itself is wrong.
#
# Last comes what either recorder takes by count: the time that the kernel is in it at each tracepoint.

set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
BUILD=${1:-build}
ROUNDS=${ROUNDS:-11} SECONDS_EACH=${SECONDS_EACH:-1} SLICES=${SLICES:-400}
[ -x "$BUILD/tests/bench-between" ] || { echo "bench-apps: $BUILD/tests/bench-between is not built; type: make bench-apps" >&2; exit 1; }
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || { echo "bench-apps: needs root, and there is no sudo here" >&2; exit 1; }
	exec sudo ROUNDS="$ROUNDS" SECONDS_EACH="$SECONDS_EACH" SLICES="$SLICES" APPS="${APPS-}" bash "$0" "$BUILD"
fi

export BUILD PP_TEST_INSTANCE=apps$$
. tests/lib.sh
PATH=$PATH:$(echo /usr/lib/postgresql/*/bin)
for program in redis-server redis-benchmark nginx wrk pgbench initdb hackbench perf gcc; do
	command -v $program >/dev/null || skip "there is no $program (these packages have all: redis-server redis-tools nginx wrk postgresql rt-tests linux-perf gcc)"
done
chmod 0755 "$SCRATCH"
PORT=$((20000 + $$ % 10000 * 3))

# ── where they run ──

CPUS=$(nproc)
SERVER_CPUS=0-$(((CPUS + 1) / 2 - 1)) CLIENT_CPUS=$((CPUS / 2))-$((CPUS - 1))
_serve() {
	[ -z "$GROUP" ] || echo "$BASHPID" >"$GROUP/cgroup.procs"
	exec taskset -c "$SERVER_CPUS" "$@"
}
serve() {
	spawn _serve "$@"
}
client() {
	taskset -c "$CLIENT_CPUS" "$@"
}

# A cgroup counts the CPU time of all of them, also of those that have ended.
hierarchy=$(sed -n 's/^[0-9]* [0-9]* [^ ]* [^ ]* \([^ ]*\) .* - cgroup2 .*/\1/p' /proc/self/mountinfo | head -n 1)
GROUP=
if [ -n "$hierarchy" ] && mkdir "$hierarchy/$PP_TEST_INSTANCE" 2>/dev/null; then
	GROUP=$hierarchy/$PP_TEST_INSTANCE
fi
at_end() {
	[ -z "$GROUP" ] || wait_until 20 rmdir "$GROUP"
}
# inside CMD…: in a shell of its own, with all that it starts.
inside() (
	[ -z "$GROUP" ] || echo "$BASHPID" >"$GROUP/cgroup.procs"
	"$@"
)
cpu_time() { # µs
	if [ -n "$GROUP" ]; then
		sed -n 's/^usage_usec //p' "$GROUP/cpu.stat"
	else
		echo 0
	fi
}

# ── programs: begin_X once; run_X prints throughput, (or -) the 99th percentile in µs, and how many ──
#
# Of servers: load_X runs the client without end, as $SPAWNED; count_X sets `count`, the operations so far, and `now`,
# the time of that in µs.

tell_time() {
	now=${EPOCHREALTIME/[.,]/}
}

begin_redis() {
	serve redis-server --port $PORT --bind 127.0.0.1 --save '' --appendonly no --dir "$SCRATCH" >/dev/null
	wait_until 20 redis-cli -p $PORT ping
}
run_redis() {
	local n=${requests_redis:-}
	# As many requests as take the time; each round does the same.
	if [ -z "$n" ]; then
		n=$(client redis-benchmark -p $PORT -t get -n 50000 --csv | awk -F '"' 'END { print int($4) }')
		requests_redis=$((n * SECONDS_EACH))
		n=$requests_redis
	fi
	client redis-benchmark -p $PORT -t get -n "$n" --csv | awk -F '"' -v n="$n" 'END { print $4, $14 * 1000, n }'
}
load_redis() {
	spawn taskset -c "$CLIENT_CPUS" redis-benchmark -p $PORT -t get -n 1000000000 -q >/dev/null 2>&1
}
count_redis() {
	count=$(redis-cli -p $PORT info stats | sed -n 's/^total_commands_processed:\([0-9]*\).*/\1/p')
	tell_time
}

begin_nginx() {
	mkdir -p "$SCRATCH/www"
	head -c 4096 /dev/zero >"$SCRATCH/www/page"
	cat >"$SCRATCH/nginx.conf" <<-EOF
		daemon off; worker_processes 1; pid $SCRATCH/nginx.pid; error_log stderr crit; user root;
		events { worker_connections 256; }
		http { access_log off; client_body_temp_path $SCRATCH; proxy_temp_path $SCRATCH; fastcgi_temp_path $SCRATCH;
		uwsgi_temp_path $SCRATCH; scgi_temp_path $SCRATCH;
		server { listen 127.0.0.1:$((PORT + 1)); root $SCRATCH/www; location /status { stub_status; } } }
	EOF
	serve nginx -p "$SCRATCH" -c "$SCRATCH/nginx.conf" 2>/dev/null
	wait_until 20 wrk -t 1 -c 1 -d 1 http://127.0.0.1:$((PORT + 1))/page
}
run_nginx() {
	client wrk -t 1 -c 16 -d "$SECONDS_EACH" --latency http://127.0.0.1:$((PORT + 1))/page | awk '
		$1 == "99%" { p = $2; unit = p ~ /us$/ ? 1 : p ~ /ms$/ ? 1000 : 1000000; p = (p + 0) * unit }
		/ requests in / { n = $1 }
		$1 == "Requests/sec:" { rate = $2 }
		END { print rate, p, n }'
}
load_nginx() {
	spawn taskset -c "$CLIENT_CPUS" wrk -t 1 -c 16 -d 100000 http://127.0.0.1:$((PORT + 1))/page >/dev/null
}
count_nginx() {
	local server
	exec {server}<>"/dev/tcp/127.0.0.1/$((PORT + 1))"
	printf 'GET /status HTTP/1.0\r\n\r\n' >&"$server"
	count=$(awk '/^server accepts/ { getline; print $3 }' <&"$server")
	exec {server}>&-
	tell_time
}

begin_postgres() {
	install -d -o nobody "$SCRATCH/pg"
	setpriv --reuid nobody --clear-groups initdb -D "$SCRATCH/pg" -A trust -U bench >/dev/null 2>&1
	serve setpriv --reuid nobody --clear-groups postgres -D "$SCRATCH/pg" -p $((PORT + 2)) -k "$SCRATCH/pg" \
		-c listen_addresses= -c fsync=off 2>/dev/null >/dev/null
	wait_until 30 psql -h "$SCRATCH/pg" -p $((PORT + 2)) -U bench -c 'select 1' postgres
	pgbench -h "$SCRATCH/pg" -p $((PORT + 2)) -U bench -i -s 5 postgres >/dev/null 2>&1
}
run_postgres() {
	rm -f "$SCRATCH"/pgbench_log.*
	(cd "$SCRATCH" && client pgbench -h "$SCRATCH/pg" -p $((PORT + 2)) -U bench -c 4 -j 1 -S -T "$SECONDS_EACH" -l postgres 2>/dev/null) |
		awk '$1 == "tps" { printf "%s ", $3; exit }'
	cat "$SCRATCH"/pgbench_log.* | cut -d ' ' -f 3 | sort -n |
		awk '{ all[NR] = $1 } END { print all[int((NR * 99 + 99) / 100)], NR }'
}
# The client writes down when each transaction was done, which count_all_postgres counts afterwards.
load_postgres() {
	rm -f "$SCRATCH"/pgbench_log.*
	spawn env -C "$SCRATCH" taskset -c "$CLIENT_CPUS" pgbench -h "$SCRATCH/pg" -p $((PORT + 2)) -U bench -c 4 -j 1 -S -T 100000 -l postgres \
		>/dev/null 2>&1
}
count_postgres() {
	count=0
	tell_time
}
count_all_postgres() {
	awk 'NR == FNR { how[NR] = $1; from[NR] = $2; to[NR] = $3; n = NR; i = 1; next }
		{ now = $5 * 1000000 + $6 }
		i <= n && now >= to[i] { print how[i], from[i], to[i], done; done = 0; i++ }
		i <= n && now >= from[i] { done++ }' "$1" "$SCRATCH"/pgbench_log.* >"$1.counted"
	mv "$1.counted" "$1"
}

# Runs that end by themselves: throughput is runs per second.
begin_hackbench() { :; }
run_hackbench() {
	local from=$EPOCHREALTIME
	hackbench -g 2 -f 10 -l $((SECONDS_EACH * 600)) >/dev/null
	awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { print 1 / (b - a), "-", 1 }'
}

# Compiles many small files with a compiler process for each, as a kernel's build does.
begin_compile() {
	local i
	mkdir -p "$SCRATCH/compile"
	for ((i = 0; i < SECONDS_EACH * 20; i++)); do
		printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f%d(char *s) { return atoi(s) + (int)strlen(s); }\n' $i >"$SCRATCH/compile/$i.c"
	done
	printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n%%.o: %%.c\n\t@gcc -O2 -c -o $@ $<\n' >"$SCRATCH/compile/Makefile"
}
run_compile() {
	local from
	rm -f "$SCRATCH"/compile/*.o
	from=$EPOCHREALTIME
	env -u MAKEFLAGS make -s -C "$SCRATCH/compile" -j"$(nproc)" all
	awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { print 1 / (b - a), "-", 1 }'
}

# ── recorders ──

# The preset's events, as perf's, in buffers of as many bytes: 58.5 MiB of each CPU, in a power of two.
PERF_BUFFER=64M
FLIGHT=conf/presets/flight.conf
perf_events=()
while IFS= read -r event; do
	case $event in
	cpu-clock) perf_events+=(-e "cpu-clock/freq=99,call-graph=fp/") ;;
	*) perf_events+=(-e "$event") ;;
	esac
done < <(sed -n 's/^Event=//p' $FLIGHT | tr ',' '\n')

begin_off() { :; }
end_off() { :; }
# What is measured is not the beginning: 110 MiB of buffers, and who runs.
begin_flight() {
	install -D -m 0644 $FLIGHT "$CONF.d/flight.conf"
	perfctl reload >/dev/null
	sleep 1
}
end_flight() {
	rm "$CONF.d/flight.conf"
	perfctl reload >/dev/null
	sleep 1
}
begin_perf() {
	spawn perf record -q -a --overwrite -m $PERF_BUFFER "${perf_events[@]}" -o "$SCRATCH/perf.data" 2>/dev/null >/dev/null
	perf_pid=$SPAWNED
	sleep 1
}
end_perf() {
	# It would write all buffers to a file now; that is not what is measured.
	kill -KILL "$perf_pid"
	wait "$perf_pid" 2>/dev/null || true
}

# ── slices ──

# What is compared begins and ends with these; before_X and after_X are about all of it. Both recorders have their
# buffers all the time: what is compared is recording, not how memory is given and freed.
SLICE=0.05 SETTLE=0.05 # s, of each slice and before it
before_flight() { begin_flight && off_flight; }
after_flight() { end_flight; }
on_flight() { perfctl resume flight/ >/dev/null && sleep $SETTLE; }
off_flight() { perfctl pause flight/ >/dev/null && sleep $SETTLE; }

# perf opens its events once; then it is told to begin and to pause.
before_perf() {
	rm -f "$SCRATCH/ctl" "$SCRATCH/ack"
	mkfifo "$SCRATCH/ctl" "$SCRATCH/ack"
	exec {ctl}<>"$SCRATCH/ctl" {ack}<>"$SCRATCH/ack"
	spawn perf record -q -a --overwrite -m $PERF_BUFFER -D -1 --control "fifo:$SCRATCH/ctl,$SCRATCH/ack" "${perf_events[@]}" \
		-o "$SCRATCH/perf.data" 2>/dev/null >/dev/null
	perf_pid=$SPAWNED
	off_perf # has an answer when it is ready
}
after_perf() {
	end_perf
	exec {ctl}>&- {ack}>&-
}
tell_perf() {
	echo "$1" >&"$ctl"
	read -r -t 30 -u "$ack" || fail "perf does not answer"
}
on_perf() { tell_perf enable && sleep $SETTLE; }
off_perf() { tell_perf disable && sleep $SETTLE; }

# slice APP HOW: one, which is written to the file of slices with what was done in it.
slice() {
	local from before
	"count_$1"
	from=$now before=$count
	sleep $SLICE
	"count_$1"
	echo "$2 $from $now $((count - before))" >>"$SCRATCH/slices"
}

# slices APP HOW
slices() {
	local app=$1 how=$2 round load
	[ "$(type -t "load_$app")" = function ] || return 0
	"load_$app"
	load=$SPAWNED
	"before_$how"
	sleep 1
	: >"$SCRATCH/slices"
	for ((round = 0; round < SLICES; round++)); do
		slice "$app" off
		"on_$how"
		slice "$app" "$how"
		"off_$how"
	done
	slice "$app" off
	sleep 0.5 # what the client has written down reaches the disk
	"after_$how"
	kill "$load"
	wait "$load" 2>/dev/null || true
	[ "$(type -t "count_all_$app")" != function ] || "count_all_$app" "$SCRATCH/slices"
	awk -v app="$app" -v with="$how" '
		{ how[NR] = $1; rate[NR] = $4 / ($3 - $2) }
		function compare(i, what, distance) {
			change[what, ++n[what]] = rate[i - distance] ? (rate[i] / rate[i - distance] - 1) * 100 : 1e9
			change[what, ++n[what]] = rate[i + distance] ? (rate[i] / rate[i + distance] - 1) * 100 : 1e9
		}
		END {
			for (i = 2; i < NR; i++)
				if (how[i] != "off")
					compare(i, how[i], 1)
				else if (i % 4 == 3 && i < NR - 1)
					compare(i, how[i], 2)
			split("off " with, all, " ")
			for (h = 1; h <= 2; h++) {
				m = n[all[h]]
				for (i = 1; i <= m; i++) {
					for (j = i; j > 1 && v[j - 1] > change[all[h], i]; j--)
						v[j] = v[j - 1]
					v[j] = change[all[h], i]
				}
				low = v[int(1 + (m - 1) * 0.25 + 0.5)]; high = v[int(1 + (m - 1) * 0.75 + 0.5)]
				# The standard error of a median, the spread of one value being that of the quartiles; a
				# slice has two values.
				printf "%-10s %-7s throughput in %d slices: %+5.2f %% (%+.1f to %+.1f), standard error %.2f %%\n", app, all[h], m / 2,
					v[int(1 + (m - 1) * 0.5 + 0.5)], low, high, 1.2533 * (high - low) / 1.349 / sqrt(m / 2)
			}
		}' "$SCRATCH/slices"
}

# ── what each recorder takes ──

# The tracepoints of the preset that have no glob and that this kernel has.
tracepoints=()
for event in $(sed -n 's/^Event=//p' $FLIGHT | tr ',' ' '); do
	case $event in
	*[*?]*) ;;
	*:*) if "$BUILD/perfctl" events "$event" >/dev/null 2>&1; then tracepoints+=("${event#*:}"); fi ;;
	esac
done

# CPU time so far of the recorder's own processes, in ns.
own_time() {
	local pid
	for pid in $(case $1 in flight) instance_pids ;; perf) echo "$perf_pid" ;; esac); do
		cut -d ' ' -f 1 /proc/"$pid"/task/*/schedstat 2>/dev/null
	done | awk '{ s += $1 } END { printf "%.0f\n", s }'
}

# between APP HOW ROUND: one run, with the time in the kernel between two programs at each tracepoint, one attached before
# the recorder and one after it. So it is measured where it is spent, with the caches as APP leaves them.
between() {
	local line marks used own n
	coproc MARKS { exec "$BUILD/tests/bench-between" "${tracepoints[@]}"; }
	marks=$MARKS_PID
	read -r -u "${MARKS[0]}" line || fail "bench-between does not begin"
	"begin_$2"
	echo >&"${MARKS[1]}"
	read -r -u "${MARKS[0]}" line || fail "bench-between does not attach its second programs"
	own=$(own_time "$2") used=$(cpu_time)
	n=$(inside "run_$1" | cut -d ' ' -f 3)
	used=$(($(cpu_time) - used)) own=$(($(own_time "$2") - own))
	echo >&"${MARKS[1]}"
	echo "$3 $2 $n $used - 1 $own"
	while read -r -u "${MARKS[0]}" line; do
		echo "$3 $2 $n $used $line"
	done
	wait "$marks"
	"end_$2"
}

# account APP: what each recorder takes of an operation, less what a run without any has between the programs. Of the
# samples, 99 a second from both, nothing is counted.
account() {
	local order=(off flight perf) round i
	for ((round = 0; round < ROUNDS; round++)); do
		for ((i = 0; i < 3; i++)); do
			between "$1" "${order[(i + round) % 3]}" $round
		done
	done >"$SCRATCH/between"
	awk -v app="$1" '
		function at(n, share,   i, j, t) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && v[j - 1] > v[j]; j--) {
					t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
				}
			return v[int(1 + (n - 1) * share + 0.5)]
		}
		{
			round = $1; how = $2; done[round, how] = $3; used[round, how] = $4
			times[round, how, $5] = $6; ns[round, how, $5] = $7
			all_times[how, $5] += $6; all_ns[how, $5] += $7; all_done[how] += how == was && round == last ? 0 : $3
			was = how; last = round; what[$5]; n = round + 1
		}
		function bare(t) { return t != "-" && all_times["off", t] ? all_ns["off", t] / all_times["off", t] : 0 }
		END {
			split("flight perf", hows, " ")
			for (h = 1; h <= 2; h++) {
				how = hows[h]
				for (r = 0; r < n; r++) {
					taken[r, how] = 0
					for (t in what)
						taken[r, how] += ns[r, how, t] - times[r, how, t] * bare(t)
					taken[r, how] /= done[r, how]
					v[r + 1] = taken[r, how] / 1000
				}
				printf "%-10s %-7s takes %.2f us of an operation (%.2f to %.2f)", app, how, at(n, 0.5), at(n, 0.25), at(n, 0.75)
				for (r = 0; r < n; r++)
					v[r + 1] = used[r, how] ? taken[r, how] * done[r, how] / used[r, how] / 10 : 0
				if (v[1])
					printf ", %.2f %% of its CPU time", at(n, 0.5)
				for (t in what)
					if (t != "-" && all_times[how, t] >= all_done[how] / 100)
						printf "; %s %.2f times %.0f ns", t, all_times[how, t] / all_done[how], all_ns[how, t] / all_times[how, t] - bare(t)
				print ""
			}
			for (r = 0; r < n; r++)
				v[r + 1] = taken[r, "flight"] / taken[r, "perf"]
			printf "%-10s flight takes %.2f of what perf takes (%.2f to %.2f)\n", app, at(n, 0.5), at(n, 0.25), at(n, 0.75)
		}' "$SCRATCH/between"
}

# ── rounds ──

start_daemon
results=$SCRATCH/results
printf 'perfpersist on Linux %s, %d CPUs, %s\n' "$(uname -r)" "$(nproc)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
printf '%d rounds of %s s of each; change against the run with nothing, median (quartiles)\n\n' "$ROUNDS" "$SECONDS_EACH"

read -r -a apps <<<"${APPS:-redis nginx postgres hackbench compile}"
for app in "${apps[@]}"; do
	"begin_$app"
	"run_$app" >/dev/null # warm
	for ((round = 0; round < ROUNDS; round++)); do
		order=(off flight perf)
		for ((i = 0; i < 3; i++)); do
			how=${order[(i + round) % 3]}
			"begin_$how"
			before=$(cpu_time)
			result=$(inside "run_$app")
			echo "$app $round $how $result $(($(cpu_time) - before))" >>"$results"
			"end_$how"
		done
	done
	awk -v app="$app" '
		function sorted(values, n,   i, j, t) {
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && values[j - 1] > values[j]; j--) {
					t = values[j]; values[j] = values[j - 1]; values[j - 1] = t
				}
		}
		function at(values, n, share) { return values[int(1 + (n - 1) * share + 0.5)] }
		function at_quartiles(values, n) {
			sorted(values, n)
			return sprintf("%+6.1f %% (%+.1f to %+.1f)", at(values, n, 0.5), at(values, n, 0.25), at(values, n, 0.75))
		}
		$1 != app { next }
		{ rate[$2, $3] = $4; late[$2, $3] = $5; cpu[$2, $3] = $7 / $6; n = $2 + 1 }
		END {
			split("off flight perf", how, " ")
			for (h = 1; h <= 3; h++) {
				for (r = 0; r < n; r++) {
					all[r + 1] = rate[r, how[h]]
					change[r + 1] = (rate[r, how[h]] / rate[r, "off"] - 1) * 100
					p[r + 1] = late[r, how[h]] + 0
					used[r + 1] = cpu[r, how[h]]
					more[r + 1] = cpu[r, "off"] ? (cpu[r, how[h]] / cpu[r, "off"] - 1) * 100 : 0
				}
				sorted(all, n); sorted(p, n); sorted(used, n)
				slower = h > 1 ? at_quartiles(change, n) : ""
				dearer = h > 1 ? at_quartiles(more, n) : ""
				printf "%-10s %-7s %12.2f/s  %27s", app, how[h], at(all, n, 0.5), slower
				if (cpu[0, "off"])
					printf "   CPU %9.1f us  %27s", at(used, n, 0.5), dearer
				if (late[0, "off"] != "-")
					printf "   p99 %8.0f us", at(p, n, 0.5)
				print ""
			}
		}' "$results"
	slices "$app" flight
	slices "$app" perf
	account "$app"
done
