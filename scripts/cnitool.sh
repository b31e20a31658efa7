#!/usr/bin/env bash
# cnitool on a node's pool: cnitool.sh VERB CACHE POD. VERB is add, check, del,
# status or gc; POD is the name of a network namespace, made by add if it is
# missing and removed by del.
set -euo pipefail

[ $# -eq 3 ] || { echo "usage: $0 add|check|del|status|gc CACHE POD" >&2; exit 2; }
verb=$1 cache=$2 pod=$3
here=$(cd "$(dirname "$0")/.." && pwd)
conf=$(mktemp -d)
trap 'rm -rf "$conf"' EXIT
cat >"$conf/10-enipool.conflist" <<JSON
{"cniVersion": "1.1.0", "name": "enipool", "plugins": [{"type": "enipool", "cachePath": "$cache"}]}
JSON

[ "$verb" != add ] || [ -e "/run/netns/$pod" ] || ip netns add "$pod"
NETCONFPATH=$conf CNI_PATH=$here/.build:$here/.build/cni "$here/.build/cni/cnitool" "$verb" enipool "/run/netns/$pod"
[ "$verb" != del ] || ip netns del "$pod"
