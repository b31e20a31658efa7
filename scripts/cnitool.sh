#!/usr/bin/env bash
# cnitool on a node's pool: cnitool.sh VERB [CACHE] POD. VERB is add, check, del or
# status; CACHE is the node cache, which the environment's ENIPOOL_CACHE may name;
# POD is the name of a network namespace, made by add if it is missing and removed by
# del.
set -euo pipefail

# The network's name is not that of the kubelet's pods: libcni keeps attachments by it.
network=enipool-by-hand

[ "$#" != 2 ] || [ -z "${ENIPOOL_CACHE-}" ] || set -- "$1" "$ENIPOOL_CACHE" "$2"
case "$#:${1-}" in
3:add | 3:check | 3:del | 3:status) ;;
*:gc)
	# cnitool's gc hands libcni an empty list of what lives, which DELs all attachments it knows.
	echo "$0: there is no gc: cnitool's deletes every pod of a network, dead or alive; \`enipoolctl pool reclaim\` frees what dead pods hold" >&2
	exit 2
	;;
*)
	echo "usage: $0 add|check|del|status CACHE POD; with ENIPOOL_CACHE in the environment CACHE may be left out" >&2
	exit 2
	;;
esac
verb=$1 cache=$2 pod=$3
here=$(cd "$(dirname "$0")/.." && pwd)
conf=$(mktemp -d)
trap 'rm -rf "$conf"' EXIT
cat >"$conf/10-enipool.conflist" <<JSON
{"cniVersion": "1.1.0", "name": "$network", "plugins": [{"type": "enipool", "cachePath": "$cache"}]}
JSON

[ "$verb" != add ] || [ -e "/run/netns/$pod" ] || ip netns add "$pod"
NETCONFPATH=$conf CNI_PATH=$here/.build:$here/.build/cni "$here/.build/cni/cnitool" "$verb" "$network" "/run/netns/$pod"
[ "$verb" != del ] || ip netns del "$pod"
