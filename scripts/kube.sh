#!/usr/bin/env bash
# Real Kubernetes for the tests, built from its Go modules: kube.sh build | assets.
# It lies below $ENIPOOL_KUBE_CACHE (.build/kube), in a folder named by the versions.
set -euo pipefail

kubernetes=1.36.3 etcd=3.6.16
programs=(kube-apiserver kube-scheduler kube-controller-manager kubelet kubectl)

cd "$(dirname "$0")/.."
cache=$(realpath -m "${ENIPOOL_KUBE_CACHE:-.build/kube}")
bin=$cache/kubernetes-$kubernetes-etcd-$etcd
export CGO_ENABLED=0 GOWORK=off GOFLAGS="-mod=mod -trimpath -buildvcs=false -gcflags=all=-dwarf=false"

complete() {
	for program in etcd "${programs[@]}"; do
		[ -x "$bin/$program" ] || return 1
	done
}

# module FOLDER LINE... starts a module that asks for what the lines say; the go
# command completes it.
module() {
	mkdir -p "$1"
	rm -f "$1/go.mod"
	(cd "$1" && go mod init testbed 2>/dev/null && printf '%s\n' "${@:2}" >>go.mod)
}

# Kubernetes names its parts k8s.io/api and so on by their folders in its own tree,
# which a module does not carry; they are published under v0 with the same numbers.
build_kubernetes() {
	local source=$cache/src/kubernetes its
	its=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
	module "$source" "require k8s.io/kubernetes v$kubernetes" "$(grep '^godebug ' "$its")" \
		"$(sed -nE "s,^\s*(k8s.io/\S+) => \./staging/.*,replace \1 => \1 v0.${kubernetes#*.},p" "$its")"
	local version=k8s.io/component-base/version minor=${kubernetes#*.}
	(cd "$source" && go build -o "$1/" -ldflags "-s -w -X $version.gitVersion=v$kubernetes \
		-X $version.gitMajor=${kubernetes%%.*} -X $version.gitMinor=${minor%%.*}" "${programs[@]/#/k8s.io/kubernetes/cmd/}")
}

build_etcd() {
	module "$cache/src/etcd" "require go.etcd.io/etcd/server/v3 v$etcd"
	(cd "$cache/src/etcd" && go build -ldflags "-s -w" -o "$1/etcd" go.etcd.io/etcd/server/v3)
}

build() {
	! complete || return 0
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
	! complete || return 0 # another run was faster
	echo "building Kubernetes $kubernetes and etcd $etcd into $bin; on 2 cores this takes 5 to 10 minutes and 4 GB of disk, or under a minute when Go has it in its cache"
	local part=$bin.part
	rm -rf "$part"
	mkdir -p "$part"
	build_etcd "$part"
	build_kubernetes "$part"
	rm -rf "$bin"
	mv "$part" "$bin"
	echo "built in $SECONDS s"
}

case ${1:-} in
build) build ;;
assets) echo "$bin" ;;
*)
	echo "usage: $0 build|assets" >&2
	exit 2
	;;
esac
