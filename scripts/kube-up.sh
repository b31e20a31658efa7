#!/usr/bin/env bash
# kube-up.sh up|down FOLDER: the tests' Kubernetes, two nodes on a simulated VPC with enipool and
# its operator, kept up for people. FOLDER/in runs a command in it.
set -euo pipefail

case "$#:${1-}" in
2:up | 2:down) ;;
*)
	echo "usage: $0 up|down FOLDER" >&2
	exit 2
	;;
esac
cd "$(dirname "$0")/.."
mkdir -p "$2"
folder=$(cd "$2" && pwd)

# runs tells whether the process that keeps a cluster up is there: a number may be another's since.
runs() { [ -s "$folder/pid" ] && grep -qsa -- "-keep=$folder" "/proc/$(<"$folder/pid")/cmdline"; }

if [ "$1" = down ]; then
	if ! runs; then
		echo "no cluster is kept up in $folder"
		exit 0
	fi
	touch "$folder/stop"
	for _ in $(seq 300); do
		if ! runs; then
			rm -f "$folder"/{in,pages,pid,ready,stop}
			echo "the cluster is removed"
			exit 0
		fi
		sleep 0.2
	done
	echo "$0: the cluster has not ended within a minute; $folder/log tells why. This ends it all the same: kill $(<"$folder/pid")" >&2
	exit 1
fi

if runs; then
	echo "a cluster is up already: $folder/in kubectl get nodes; make kube-down removes it" >&2
	exit 1
fi
rm -f "$folder"/{in,pages,pid,ready,stop}
echo "starting etcd, Kubernetes with two nodes, and enipool; $folder/log tells how it goes"
go test -c -vet=off -o "$folder/cluster.test" ./test/cluster
cd test/cluster
ENIPOOL_KUBE=1 ENIPOOL_E2E=1 setsid "$folder/cluster.test" -test.v -test.timeout 0 -test.run '^TestKeptUp$' "-keep=$folder" >"$folder/log" 2>&1 </dev/null &
pid=$!
echo "$pid" >"$folder/pid"
until [ -e "$folder/ready" ]; do
	if ! kill -0 "$pid" 2>/dev/null; then
		tail -n 30 "$folder/log" >&2
		echo "$0: the cluster has not come up; all of it is in $folder/log" >&2
		exit 1
	fi
	sleep 0.5
done
cat <<TEXT
It is up. Whatever runs by $2/in is in it, as its administrator:
  $2/in kubectl get pods -o wide
  $2/in enipoolctl cluster nodes
In a browser of this machine, or by \`ssh -L\` from another one, are the pages of
$(<"$folder/pages")
An operator that does not lead says who does. make kube-down removes all of it.
TEXT
