#!/usr/bin/env bash
# Builds the reference plugins and cnitool, at the versions of go.mod, into $1.
set -euo pipefail

out=$1
reference=github.com/containernetworking/plugins/plugins
mkdir -p "$out"
CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$out/" \
	github.com/containernetworking/cni/cnitool \
	$reference/main/{ptp,bridge,macvlan,loopback} $reference/meta/{portmap,bandwidth,tuning,sbr} $reference/ipam/host-local
