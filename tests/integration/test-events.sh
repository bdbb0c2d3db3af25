#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The daemon records every event of `perf list` that perf can count on this machine (`perf stat -e X
# true` succeeds), or refuses it with one of the messages below, each of which docs/accuracy.md
# explains. Then it creates the same tracepoints by globs, one for each system, which must expand to
# as many. At full length the test covers all of them; else some of each kind, at least one of each
# system of tracepoints, and the small systems.
. "$(dirname "$0")/../lib.sh"
. "$(dirname "$0")/tracepoints.sh"

# The refusals, and the words in docs/accuracy.md, "Limits", that explain them.
REFUSALS=(
	"is perf's own reading of a clock"
	"never counts anything"
	"can be counted and not sampled"
	"counts within a process only"
	"is no event of this kernel"
	"does not let programs run on"
)
BATCH=100 # events that perf counts at a time

command -v perf >/dev/null || skip "perf is not installed"

limits=$(sed -n '/^## Limits/,/^## /p' "$ROOT/docs/accuracy.md" | tr -s '\n ' ' ')
for words in "${REFUSALS[@]}"; do
	[[ $limits == *"$words"* ]] || fail "docs/accuracy.md does not explain the refusal '$words'"
done

# ── what perf knows, and what it can count ───────────────────────────────────────────────

# Names, one per line, second names too.
perf_list() {
	{
		with_tracefs perf list --raw-dump 2>/dev/null | tr ' ' '\n'
		with_tracefs perf list --no-desc 2>/dev/null | sed -nE 's/^  [^ ]+ OR ([^ ]+) .*/\1/p'
	} | awk 'NF && !seen[$0]++'
}

# some FILE: a selection of the events in it. Whole systems are those of up to three tracepoints.
some() {
	awk -F: 'NR == FNR { n[$1]++; next }
		NF != 2 || /\// { if (others++ < 20 || others % 8 == 0) print; next }
		n[$1] <= 3 || !seen[$1]++ || FNR % 50 == 0' "$1" "$1"
}

# can_count FILE: writes those events of the file that perf can count to $SCRATCH/counted. perf
# counts all or, if one of them is invalid, nothing: then this tries each half.
can_count() {
	local half file=$1 n
	n=$(wc -l <"$file")

	if with_tracefs perf stat -x ';' -o "$SCRATCH/stat" -e "$(paste -sd, "$file")" \
		true >/dev/null 2>&1; then
		awk -F ';' 'NR == FNR { wanted[$1] = 1; next }
			$3 in wanted && $1 != "<not supported>" && !seen[$3]++ { print $3 }' \
			"$file" "$SCRATCH/stat" >>"$SCRATCH/counted"
	elif [ "$n" -gt 1 ]; then
		split -l $(((n + 1) / 2)) "$file" "$file."
		for half in "$file".a?; do
			can_count "$half"
		done
	fi
}

# ── the table ────────────────────────────────────────────────────────────────────────────

# The kernel releases tracepoints one after the other, when the process that closed them ends. No
# other process can use one meanwhile.
have_ended() {
	local pid
	for pid in "$@"; do
		gone "$pid" || return
	done
}

tracepoints_lock --shared
start_daemon
cpu=$(first_cpus 1)
perf_list >"$SCRATCH/list"
if ! full; then
	mv "$SCRATCH/list" "$SCRATCH/all"
	some "$SCRATCH/all" >"$SCRATCH/list"
fi
[ "$(wc -l <"$SCRATCH/list")" -gt 50 ] || fail "perf list names hardly any events"

# Our events come first: perf can open and close a tracepoint that is already in use in no time.
"$BIN/create-all" "$INSTANCE" all "$cpu" <"$SCRATCH/list" >"$SCRATCH/answers"
expect_eq "$(wc -l <"$SCRATCH/answers")" "$(wc -l <"$SCRATCH/list")" "answers"
: >"$SCRATCH/counted"
split -l $BATCH -a 4 "$SCRATCH/list" "$SCRATCH/batch-"
for batch in "$SCRATCH"/batch-*; do
	can_count "$batch"
done
perfctl list --json | jq -r '.[] | select(.namespace == "all") | "\(.recorder)\t\(.event)"' >"$SCRATCH/recorded"

printf '%s\n' "${REFUSALS[@]}" >"$SCRATCH/refusals"
awk -F '\t' '
	FILENAME == ARGV[1] { refusal[++refusals] = $0; next }
	FILENAME == ARGV[2] { counted[$1] = 1; next }
	FILENAME == ARGV[3] { recorder[$2] = $1; next }
	$1 == "made" {
		if (!($3 in recorder)) {
			print "made, and not in the list: " $3
			bad++
		}
		made[recorder[$3]]++
		all_made++
		made_only += !($3 in counted)
		next
	}
	!($3 in counted) { neither++; next }
	{
		for (i = 1; i <= refusals && !index($5, refusal[i]); i++)
			;
		if (i > refusals) {
			print "perf counts it, and it was refused: " $3 ": " $5
			bad++
		}
		refused[i]++
		examples[i] = examples[i] " " $3
		all_refused++
	}
	END {
		for (name in counted)
			n++
		printf "%d events of perf list; perf can count %d of them\n", FNR, n
		printf "%d are persistent, %d of them although perf cannot count them\n", all_made, made_only
		for (r in made)
			printf "  recorder %-10s %5d\n", r, made[r]
		printf "%d are refused that perf can count\n", all_refused
		for (i = 1; i <= refusals; i++)
			if (refused[i])
				printf "  %5d  … %s …:%s\n", refused[i], refusal[i], substr(examples[i], 1, 200)
		printf "%d can neither perf count nor we record\n", neither
		exit bad > 0
	}
' "$SCRATCH/refusals" "$SCRATCH/counted" "$SCRATCH/recorded" "$SCRATCH/answers" ||
	fail "some events that perf can count cannot be made persistent"
[ "$(wc -l <"$SCRATCH/counted")" -gt 50 ] || fail "perf can count hardly any events"

# ── as perfctl events lists them ─────────────────────────────────────────────────────────

# It lists nothing that was refused, and all that was made.
with_tracefs "$BIN/perfctl" events --json >"$SCRATCH/events"
jq -r '.[] | select(.kind != "form") | .event' "$SCRATCH/events" | sort >"$SCRATCH/listed"
awk -F '\t' '$1 == "made" { print $3 }' "$SCRATCH/answers" | sort >"$SCRATCH/made"
awk -F '\t' '$1 != "made" { print $3 }' "$SCRATCH/answers" | sort >"$SCRATCH/not-made"
expect_eq "$(comm -12 "$SCRATCH/not-made" "$SCRATCH/listed")" "" "perfctl events lists these, and they were refused"
expect_eq "$(comm -23 "$SCRATCH/made" "$SCRATCH/listed")" "" "these were made, and perfctl events does not list them"
echo "perfctl events lists $(wc -l <"$SCRATCH/listed") events, these among them"

# ── by globs ─────────────────────────────────────────────────────────────────────────────

# SYSTEM, and how many of its tracepoints are persistent by their own names.
awk -F '\t' '$1 == "made" && $3 ~ /^[^:\/]+:[^:\/]+$/ { split($3, name, ":"); n[name[1]]++ }
	END { for (s in n) print n[s] "\t" s ":*" }' "$SCRATCH/answers" |
	sort -k 2 >"$SCRATCH/systems"
if ! full; then
	awk -F: 'NR == FNR { n[$1]++; next } n[substr($1, index($1, "\t") + 1)] <= 3' "$SCRATCH/all" "$SCRATCH/systems" \
		>"$SCRATCH/small"
	mv "$SCRATCH/small" "$SCRATCH/systems"
fi
cut -f 2 "$SCRATCH/systems" | "$BIN/create-all" "$INSTANCE" globs "$cpu" >"$SCRATCH/globbed"
grep '^refused' "$SCRATCH/globbed" && fail "a glob was refused"
diff <(awk -F '\t' '{ print $4 "\t" $3 }' "$SCRATCH/globbed" | sort -k 2) "$SCRATCH/systems" ||
	fail "a glob stands for more or less than the tracepoints of its system"
echo "$(wc -l <"$SCRATCH/systems") globs stand for the same $(awk '{ n += $1 } END { print n }' "$SCRATCH/systems") tracepoints"

# ── gone again ───────────────────────────────────────────────────────────────────────────

mapfile -t names < <(perfctl list --json | jq -r '.[] | "\(.namespace)/\(.name)"')
perfctl delete "${names[@]}" >/dev/null
mapfile -t pids < <(instance_pids)
stop_daemon
wait_until 200 have_ended "${pids[@]}" || fail "the kernel does not release the tracepoints"
