#!/usr/bin/env bash
# readme.sh WORDS: runs the block of commands of README.md that has these words, as it stands.
set -euo pipefail
cd "$(dirname "$0")/.."
block=$(awk -v RS= -v words="${1:?which words?}" '/^    / && index($0, words)' README.md)
[ -n "$block" ] || {
	echo "$0: README.md has no block of commands with: $1" >&2
	exit 1
}
set -x
# shellcheck disable=SC1090
source <(printf '%s\n' "$block")
