# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Prints a report beside its peer, row by row, and fails if they differ. Reads three files of columns
# that tabs separate:
#
#   both         ROW BEGIN NS of each interval of the peer, ROW BEGIN NS of the same one in the report
#   theirs.hist  ROW MIN MAX COUNT of each bucket of the peer's histograms, in us, ascending
#   ours.rows    ROW COUNT P50 P90 P99 P99.9 of the report, in ns

# The bucket's number: bpftrace has one for each power of two.
function bucket(ns, n) {
	for (n = 0; ns >= 1000; ns /= 2)
		n++
	return n
}

function wrong(text) {
	print "failed: " report " " row ": " text
	status = 1
}

# The bucket that has this share (per 1000) of the row's n intervals up to it: its limits are LOW and
# HIGH, in ns.
function find(row, n, share, rank, i) {
	rank = int((n * share + 999) / 1000)
	for (i = 1; i < buckets[row] && upto[row, i] < rank; i++)
		;
	LOW = low[row, i] * 1000
	HIGH = (high[row, i] + 1) * 1000
}

FNR == 1 {
	file++
}

file == 1 {
	row = $1
	if ($1 != $4)
		wrong("not the same intervals as " $4)
	d = $3 > $6 ? $3 - $6 : $6 - $3
	if (d > apart[row])
		apart[row] = d
	d = bucket($3) - bucket($6)
	all++
	far += d > 1 || d < -1
	next
}

file == 2 {
	i = ++buckets[$1]
	low[$1, i] = $2
	high[$1, i] = $3
	upto[$1, i] = upto[$1, i - 1] + $4
	next
}

FNR == 1 {
	printf "%s beside %s; counts, and percentiles in us beside the buckets of the histogram\n", report, peer
	printf "%6s %6s  %8s %-14s %8s %-14s %8s %-14s %8s %-14s %6s  %s\n", "COUNT", "PEER", "P50", "PEER",
		"P90", "PEER", "P99", "PEER", "P99.9", "PEER", "APART", "OF"
}

{
	row = $1
	line = sprintf("%6d %6d ", $2, upto[row, buckets[row]])
	n = split("500 900 990 999", shares, " ")
	for (s = 1; s <= n; s++) {
		find(row, $2, shares[s])
		line = line sprintf(" %8.1f %-14s", $(s + 2) / 1000, "[" LOW / 1000 ", " HIGH / 1000 ")")
		if ($(s + 2) < LOW - apart[row] || $(s + 2) >= HIGH + apart[row])
			wrong("percentile " shares[s] / 10 " is " $(s + 2) " ns, and in the peer at least " LOW \
				" and less than " HIGH)
	}
	printf "%s %6.1f  %s\n", line, apart[row] / 1000, row
}

# A hypervisor can take the CPU between the two, but not each time.
END {
	if (far * 100 > all) {
		print "failed: " report ": " far " of " all " intervals are more than a bucket apart"
		status = 1
	}
	exit status
}
