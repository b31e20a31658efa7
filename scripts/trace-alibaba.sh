#!/usr/bin/env bash
# Derives test/traces/alibaba-gpu-2023.csv: how many pods a cluster had over the 7
# days with the most pod starts. $1 is a CSV file with the columns scheduled_s and
# deleted_s, in seconds: scheduled_time and deletion_time of the trace named below,
# of the pods that have both.
set -euo pipefail

awk -F, -v days=7 -v day=86400 '
NR == 1 && $0 != "scheduled_s,deleted_s" { print FILENAME ": must have the columns scheduled_s,deleted_s" > "/dev/stderr"; wrong = 1; exit 1 }
NR > 1 {
	starts[int($1 / day)]++
	change[$1 + 0]++
	change[$2 + 0]--
	if ($2 + 0 > end) end = $2 + 0
}
END {
	if (wrong) exit 1
	for (d = 0; (d + days) * day <= end; d++) {
		n = 0
		for (i = 0; i < days; i++) n += starts[d + i]
		if (n > most) { most = n; first = d }
	}
	from = first * day
	for (t = 0; t <= from; t++) if (t in change) pods += change[t]
	print "# Pods of a production cluster over time, as if they were of one node."
	print "# Source: github.com/alibaba/clusterdata, cluster-trace-gpu-v2023/csv/openb_pod_list_default.csv"
	print "# Derived by scripts/trace-alibaba.sh: the " days " days with the most pod starts, days " first " to " first + days - 1
	print "# of the source counted from 0. Time 0 is the start of the first of them; after the pods"
	print "# that run by then, each line is a change of their number."
	print "time,pods"
	print "0," pods + 0
	for (t = from + 1; t < from + days * day; t++)
		if (t in change && change[t] != 0) { pods += change[t]; print t - from "," pods }
}' "${1:?must be the source file}"
