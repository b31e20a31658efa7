#!/usr/bin/env bash
# Installs the Debian packages that the named jobs need and this machine lacks.
set -euo pipefail

declare -A package=([ip]=iproute2 [ping]=iputils-ping [nft]=nftables [iptables]=iptables [strace]=strace [tc]=iproute2 [gcc]=gcc [mount]=mount
	[containerd]=containerd [ctr]=containerd [findmnt]=util-linux [sysctl]=procps [systemd-tmpfiles]=systemd [runc]=runc [busybox]=busybox-static
	[chromium]=chromium [curl]=curl [dig]=bind9-dnsutils [nc.openbsd]=netcat-openbsd [ss]=iproute2)
declare -A needs=([demo]="ip tc nft" [test]="ip tc ping nft iptables strace mount" [race]="gcc" [browser]="chromium" [conformance]="curl dig nc.openbsd ss"
	[root]="containerd ctr runc busybox findmnt sysctl systemd-tmpfiles")

export PATH=$PATH:/usr/sbin:/sbin
missing=()
for job in "$@"; do
	for tool in ${needs[$job]}; do
		command -v "$tool" >/dev/null || missing+=("${package[$tool]}")
	done
done
[ ${#missing[@]} -eq 0 ] && exit 0
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "missing: ${missing[*]} (Debian's names). Install them, or run this as root on Debian, which installs them itself." >&2
	exit 1
fi
echo "installing with apt-get: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null
