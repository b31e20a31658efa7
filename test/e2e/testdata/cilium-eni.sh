# What Cilium 1.17 keeps in the kernel of a node with ipam.mode=eni, per-endpoint routes
# and no masquerading, by the words of ip(8). Its programs at the links, which answer the
# pods' ARP, have a permanent neighbour in their place. Run in the node's network namespace:
#
#   node                                    the node itself: ENI k in table 10+k
#   pod ADDRESS ENI NETNS                   CNI ADD
#   gone ADDRESS ENI                        CNI DEL; the link goes with the pod's namespace
#   link ADDRESS                            the name of the pod's link on the node
set -e
link() { echo lxc$(echo -n "$1" | sha1sum | cut -c1-12); }
case $1 in
link) link $2 ;;
node)
	ip rule add priority 100 lookup local protocol kernel
	ip rule del priority 0
	ip rule add priority 9 fwmark 0x200/0xf00 lookup 2004 protocol kernel
	ip link add cilium_net type veth peer name cilium_host
	ip link set cilium_net up
	ip link set cilium_host up ;;
pod)
	link=$(link $2)
	ip link add $link type veth peer name eth0 netns $4
	ip link set $link up
	mac=$(ip -o link show $link | grep -oE 'link/ether [0-9a-f:]+' | cut -d' ' -f2)
	in="nsenter --net=$4 ip"
	$in link set eth0 up
	$in addr add $2/32 dev eth0
	$in route add 169.254.42.1 dev eth0 scope link
	$in route add default via 169.254.42.1 dev eth0
	$in neigh add 169.254.42.1 lladdr $mac dev eth0 nud permanent
	ip route replace $2/32 dev $link scope link protocol kernel
	ip rule add priority 20 to $2 lookup main protocol kernel
	[ $3 = 0 ] && exit
	ip route replace 10.0.1.1 dev eth$3 scope link table $(($3 + 10)) protocol kernel
	ip route replace default via 10.0.1.1 dev eth$3 table $(($3 + 10)) protocol kernel
	ip rule add priority 111 from $2 lookup $(($3 + 10)) protocol kernel ;;
gone)
	ip rule del priority 20 to $2 lookup main
	[ $3 = 0 ] || ip rule del priority 111 from $2 lookup $(($3 + 10))
	ip route del $2/32 dev $(link $2) ;;
esac
