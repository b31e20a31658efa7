#!/usr/bin/env bash
# What makes a process a node: node.sh enter NAME DIR BIN CGROUP in fresh mount,
# PID, UTS and IPC namespaces; node.sh run COMMAND... for its programs afterwards;
# node.sh remove PATTERN in a fresh mount namespace once it is gone.
set -euo pipefail

# Either there is one hierarchy, of version 2, or each line names one of version 1.
# A version 2 without controllers beside those is of no use to a runtime.
unified() { [ "$(cut -d: -f1,2 /proc/self/cgroup)" = 0: ]; }

mount_cgroups() {
	if unified; then
		mount -t cgroup2 cgroup2 /sys/fs/cgroup
		return
	fi
	mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
	local names folder
	while IFS=: read -r _ names _; do
		[ -n "$names" ] || continue
		folder=/sys/fs/cgroup/${names#name=}
		mkdir "$folder"
		mount -t cgroup -o "$names" cgroup "$folder"
	done </proc/self/cgroup
}

hierarchies() { if unified; then echo /sys/fs/cgroup; else echo /sys/fs/cgroup/*; fi; }

# join CGROUP moves this shell to a child of every hierarchy's root.
join() {
	local root
	for root in $(hierarchies); do
		mkdir -p "$root/$1"
		unified || [ ! -e "$root/cpuset.cpus" ] || copy_cpuset "$root" "$root/$1"
		echo $$ >"$root/$1/cgroup.procs"
		! unified || delegate "$root"
	done
}

# copy_cpuset PARENT CHILD: a child of version 1 starts with no processor.
copy_cpuset() {
	cat "$1/cpuset.cpus" >"$2/cpuset.cpus"
	cat "$1/cpuset.mems" >"$2/cpuset.mems"
}

# delegate lets the children of a version 2 cgroup have its controllers. It must
# have no processes of its own then, unless it is the root.
delegate() {
	local controller
	for controller in $(cat "$1/cgroup.controllers"); do
		echo "+$controller" >"$1/cgroup.subtree_control" || true # some are for the root alone
	done
}

enter() {
	mount --make-rprivate /
	mount -t proc proc /proc
	while mountpoint -q /sys; do umount -lR /sys; done # tests put one above another
	mount -t sysfs sysfs /sys
	mount_cgroups
	join "$4"
	exec unshare --cgroup bash "$2/node.sh" inside "$@"
}

# inside gives the node files of its own where programs of a node write.
inside() {
	local name=$1 dir=$2 bin=$3 path
	umount -R /sys/fs/cgroup
	mount_cgroups
	join node
	hostname "$name"
	mkdir -p "$dir"/{bin,etc,etc.work,opt,lib,log}
	[ ! -e "$bin" ] || mount --bind "$bin" "$dir/bin" # a node without kubelet needs none
	leave_namespaces
	mount -t tmpfs -o mode=755 tmpfs /run
	mkdir -p /run/kube /run/lock /run/netns
	mount --rbind "$dir" /run/kube
	mount -t overlay overlay -o "lowerdir=/etc,upperdir=$dir/etc,workdir=$dir/etc.work" /etc
	for path in opt:/opt lib:/var/lib log:/var/log; do
		mount --bind "$dir/${path%%:*}" "${path#*:}"
	done
	[ -e "$dir/etc/machine-id" ] || first_boot "$name"
	own_sysctls
	mount --make-rshared /
	touch /run/kube/up
	exec /run/kube/pause
}

# leave_namespaces keeps the node from keeping others' network namespaces alive. One
# that its owner removes at the same time is no mount any more when its turn comes.
leave_namespaces() {
	local path
	for path in $(findmnt -rno TARGET | grep ^/run/netns/); do
		umount -l "$path" || ! mountpoint -q "$path"
	done
}

# first_boot makes what is the machine's not the node's.
first_boot() {
	rm -rf /etc/cni /etc/resolv.conf
	mkdir -p /etc/cni/net.d /opt/cni/bin
	touch /etc/resolv.conf
	echo "127.0.0.1 localhost $1" >/etc/hosts
	tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
}

# own_sysctls lets the kubelet write those that are the whole machine's.
own_sysctls() {
	local key copy
	mkdir -p /run/sysctl
	for key in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
		copy=/run/sysctl/${key//\//.}
		cat "/proc/sys/$key" >"$copy"
		mount --bind "$copy" "/proc/sys/$key"
	done
	[ ! -e /run/kube/boot_id ] || mount --bind /run/kube/boot_id /proc/sys/kernel/random/boot_id
}

run() {
	join node
	exec "$@"
}

# remove takes away the cgroups that the pattern names; their processes have ended.
remove() {
	mount --make-rprivate /
	mount -t tmpfs tmpfs /sys # what was there is of no use: tests hide the cgroups
	mkdir -p /sys/fs/cgroup
	mount_cgroups
	local root cgroup
	for root in $(hierarchies); do
		for cgroup in "$root"/$1; do
			[ ! -d "$cgroup" ] || find "$cgroup" -depth -type d -exec rmdir {} +
		done
	done
}

"$@"
