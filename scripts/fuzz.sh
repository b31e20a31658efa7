#!/usr/bin/env bash
# Runs every fuzz target of the repository for the time in $1.
set -euo pipefail

grep -rl --include='*_test.go' '^func Fuzz' pkg plugins test | while read -r file; do
	for target in $(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p' "$file"); do
		echo "fuzz $(dirname "$file") $target"
		go test -vet=off "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "$1" -fuzzminimizetime 10x
	done
done
