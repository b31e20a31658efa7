#!/usr/bin/env bash
# Builds the programs of the previous release from this repository's own history into
# $1, for the tests that upgrade and downgrade a node. Exits with 3 where there is no
# history that reaches back that far: a shallow clone, or no clone at all.
set -euo pipefail

release=9295a34
out=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
[ "$(cat "$out/release" 2>/dev/null)" = "$release" ] && exit 0
if ! git cat-file -e "$release^{commit}" 2>/dev/null; then
	if [ "$(git rev-parse --is-shallow-repository 2>/dev/null)" = false ]; then
		echo "commit $release, the previous release, is not in this repository's history" >&2
		exit 1
	fi
	echo "this clone does not have commit $release, the previous release: git fetch --unshallow" >&2
	exit 3
fi
rm -rf "$out/src"
mkdir "$out/src"
trap 'rm -rf "$out/src"' EXIT
git archive "$release" go.mod go.sum conf pkg plugins | tar -x -C "$out/src"
cd "$out/src"
CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.release=$release" -o "$out/" ./plugins/{enipool,enipoolctl,enipool-agent}
echo "$release" >"$out/release"
