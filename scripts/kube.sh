#!/usr/bin/env bash
# Real Kubernetes for the tests, built from its Go modules: kube.sh build | assets. And what its own
# specs need to run: kube.sh build-specs | specs. Each lies in a folder named by the versions, which
# assets and specs print, below $ENIPOOL_KUBE_CACHE (.build/kube).
set -euo pipefail

kubernetes=1.36.3 etcd=3.6.16
coredns=1.14.2 # that of this Kubernetes' build/dependencies.yaml
programs=(kube-apiserver kube-scheduler kube-controller-manager kubelet kubectl)

cd "$(dirname "$0")/.."
cache=$(realpath -m "${ENIPOOL_KUBE_CACHE:-.build/kube}")
bin=$cache/kubernetes-$kubernetes-etcd-$etcd
specs=$cache/specs-$kubernetes-coredns-$coredns
export CGO_ENABLED=0 GOWORK=off GOFLAGS="-mod=mod -trimpath -buildvcs=false -gcflags=all=-dwarf=false"

# complete FOLDER PROGRAM... tells whether they are all there.
complete() {
	local program
	for program in "${@:2}"; do
		[ -x "$1/$program" ] || return 1
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
kubernetes_module() {
	local its
	its=$(go mod download -json "k8s.io/kubernetes@v$kubernetes" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
	module "$1" "require k8s.io/kubernetes v$kubernetes" "$(grep '^godebug ' "$its")" \
		"$(sed -nE "s,^\s*(k8s.io/\S+) => \./staging/.*,replace \1 => \1 v0.${kubernetes#*.},p" "$its")"
}

# stamp is what tells a program its version.
stamp() {
	local version=k8s.io/component-base/version minor=${kubernetes#*.}
	echo "-s -w -X $version.gitVersion=v$kubernetes -X $version.gitMajor=${kubernetes%%.*} -X $version.gitMinor=${minor%%.*}"
}

build_kubernetes() {
	local source=$cache/src/kubernetes
	kubernetes_module "$source"
	(cd "$source" && go build -o "$1/" -ldflags "$(stamp)" "${programs[@]/#/k8s.io/kubernetes/cmd/}")
}

build_etcd() {
	module "$cache/src/etcd" "require go.etcd.io/etcd/server/v3 v$etcd"
	(cd "$cache/src/etcd" && go build -ldflags "-s -w" -o "$1/etcd" go.etcd.io/etcd/server/v3)
}

# build_coredns has the plugins that the cluster's Corefile names (test/cluster). All of them would bring in the clients
# of three clouds.
build_coredns() {
	local source=$cache/src/coredns plugin
	module "$source" "require github.com/coredns/coredns v$coredns"
	{
		printf 'package main\n\nimport (\n\t"github.com/coredns/coredns/coremain"\n'
		for plugin in cache errors health kubernetes ready; do
			printf '\t_ "github.com/coredns/coredns/plugin/%s"\n' "$plugin"
		done
		printf ')\n\nfunc main() { coremain.Run() }\n'
	} >"$source/main.go"
	(cd "$source" && go build -ldflags "-s -w" -o "$1/coredns" .)
}

# build_suite has ginkgo of the version that the suite is written for: its module asks for that.
build_suite() {
	local source=$cache/src/suite
	kubernetes_module "$source"
	# agnhost's image has files that it serves.
	(cd "$source" && install -m 644 "$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)"/test/images/agnhost/porter/localhost.{crt,key} "$1/" &&
		go build -ldflags "$(stamp)" -o "$1/" k8s.io/kubernetes/cmd/kube-proxy \
		k8s.io/kubernetes/test/images/agnhost github.com/onsi/ginkgo/v2/ginkgo &&
		go test -c -vet=off -ldflags "$(stamp)" -o "$1/e2e.test" k8s.io/kubernetes/test/e2e)
}

# build FOLDER TEXT PROGRAMS STEP... makes the folder by the steps, unless the programs are there.
build() {
	local folder=$1 text=$2 wanted=($3) step
	! complete "$folder" "${wanted[@]}" || return 0
	mkdir -p "$cache"
	exec 9>"$cache/lock"
	flock 9
	! complete "$folder" "${wanted[@]}" || return 0 # another run was faster
	echo "building $text into $folder; on 2 cores this takes 5 to 10 minutes and 4 GB of disk, or under a minute when Go has it in its cache"
	rm -rf "$folder.part"
	mkdir -p "$folder.part"
	for step in "${@:4}"; do "$step" "$folder.part"; done
	rm -rf "$folder"
	mv "$folder.part" "$folder"
	echo "built in $SECONDS s"
}

case ${1:-} in
build) build "$bin" "Kubernetes $kubernetes and etcd $etcd" "etcd ${programs[*]}" build_etcd build_kubernetes ;;
build-specs) build "$specs" "the specs of Kubernetes $kubernetes and CoreDNS $coredns" "e2e.test ginkgo agnhost kube-proxy coredns" build_coredns build_suite ;;
assets) echo "$bin" ;;
specs) echo "$specs" ;;
*)
	echo "usage: $0 build|build-specs|assets|specs" >&2
	exit 2
	;;
esac
