#!/usr/bin/env bash
# go test, with the flags that it is given, of the packages on its standard input: those that
# take longest come first. What only computes, in virtual time or in none, has what the other packages
# leave of the processors: those mostly wait, and wait as on a machine of their own. As many
# packages of each kind run at once as there are processors.
set -euo pipefail

computing='github.com/enipool/enipool/(test|test/explore|test/fleet|pkg/(agent|operator|order|simulate))'
mapfile -t packages < <(cat)
computes=() waits=()
for p in "${packages[@]}"; do
	if [[ $p =~ ^$computing$ ]]; then computes+=("$p"); else waits+=("$p"); fi
done
idle=(nice -n 19)
! command -v chrt >/dev/null || idle=(chrt --idle 0)
# They make garbage all the time and keep little: with the usual goal a tenth of their time is its collector's. What runs
# our programs keeps the goal that ships.
idle=(env GOGC=400 "${idle[@]}")
# make lint has go vet look at all of it, with more than go test would, which would go through all
# modules again.
run=(go test -vet=off -count=1 -p "$(nproc)" "$@")

failed=0
"${idle[@]}" "${run[@]}" "${computes[@]}" &
beside=$!
trap 'kill "$beside" 2>/dev/null || true' EXIT # what runs beside a script is not interrupted with it
echo "${run[*]}, of ${#computes[@]} packages beside ${#waits[@]}"
"${run[@]}" "${waits[@]}" || failed=1
wait "$beside" || failed=1
exit $failed
