# What aws-vpc-cni 1.20 keeps in the kernel of a node, by the words of ip(8), with
# AWS_VPC_K8S_CNI_EXTERNALSNAT=true. Run in the node's network namespace:
#
#   node                                    the node itself: VPC 10.0.0.0/16, ENI k in table k+1
#   pod ADDRESS ENI NETNS                   CNI ADD
#   gone ADDRESS ENI                        CNI DEL; the link goes with the pod's namespace
#   detached                                what the node did for ENIs that it has no more is undone
#   link ADDRESS                            the name of the pod's link on the node
set -e
link() { echo eni$(echo -n "default.$1" | sha1sum | cut -c1-11); }
case $1 in
link) link $2 ;;
node)
	iptables -t mangle -A PREROUTING -i eth0 -m comment --comment "AWS, primary ENI" -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-xmark 0x80/0x80
	iptables -t mangle -A PREROUTING -i eni+ -m comment --comment "AWS, primary ENI" -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80
	ip rule add priority 1024 fwmark 0x80/0x80 lookup main
	for k in 1 2 3; do
		ip link show eth$k >/dev/null 2>&1 || continue
		primary=$(ip -4 -o addr show dev eth$k | awk '{ sub("/.*", "", $4); print $4; exit }')
		ip route add 10.0.1.1 dev eth$k scope link table $((k + 1))
		ip route add default via 10.0.1.1 dev eth$k table $((k + 1))
		ip rule add priority 32765 from $primary lookup $((k + 1))
	done ;;
detached)
	ip rule show priority 32765 | awk '{ print $3, $5 }' | while read -r primary table; do
		ip -4 -o addr show to $primary/32 | grep -q . || ip rule del priority 32765 from $primary lookup $table
	done ;;
pod)
	link=$(link $2)
	ip link add $link type veth peer name eth0 netns $4
	ip link set $link up
	mac=$(cat /sys/class/net/$link/address 2>/dev/null || ip -o link show $link | grep -oE 'link/ether [0-9a-f:]+' | cut -d' ' -f2)
	in="nsenter --net=$4 ip"
	$in link set eth0 up
	$in route add 169.254.1.1 dev eth0 scope link
	$in route add default via 169.254.1.1 dev eth0
	$in addr add $2/32 dev eth0
	$in neigh add 169.254.1.1 lladdr $mac dev eth0 nud permanent
	ip route replace $2/32 dev $link scope link
	ip rule add priority 512 to $2 lookup main
	[ $3 = 0 ] || ip rule add priority 1536 from $2 lookup $(($3 + 1)) ;;
gone)
	ip rule del priority 512 to $2 lookup main
	[ $3 = 0 ] || ip rule del priority 1536 from $2 lookup $(($3 + 1))
	ip route del $2/32 dev $(link $2) ;;
esac
