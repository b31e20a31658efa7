# A node in the current network namespace, with ENIs eth0 and eth1 in a VPC whose
# router drops what leaves by another ENI than its source's, pods pA on ENI 0 and
# pB on ENI 1, another pod of the VPC (far), the internet, and somebody else's
# DNAT and marks.
sysctl -qw net.ipv6.conf.default.accept_dad=0
for n in vpc pA pB far inet; do
  ip netns add $n; ip -n $n link set lo up; ip netns exec $n sysctl -qw net.ipv6.conf.default.accept_dad=0
done
vpc="ip netns exec vpc"
$vpc sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
$vpc nft "add table inet check; add chain inet check ports { type filter hook prerouting priority raw; };
  add rule inet check ports iifname { e0, e1 } fib saddr . iif oif missing drop"
mac() { ip link show $1 | sed -n 's/.*ether \([^ ]*\).*/\1/p'; }
for k in 0 1; do
  ip link add eth$k type veth peer name e$k netns vpc
  ip link set eth$k up; ip -n vpc link set e$k up
  ip -n vpc addr add 10.0.0.1/32 dev e$k; ip -n vpc addr add fd00::1/128 dev e$k nodad
  for a in $((k+1))0 $((k+1))1; do
    ip -n vpc route add 10.0.0.$a/32 dev e$k; ip -n vpc neigh add 10.0.0.$a lladdr $(mac eth$k) dev e$k nud permanent
    ip -n vpc route add fd00::$a/128 dev e$k; ip -n vpc neigh add fd00::$a lladdr $(mac eth$k) dev e$k nud permanent
  done
done
ip addr add 10.0.0.10/24 dev eth0; ip addr add fd00::10/64 dev eth0 nodad
ip route add default via 10.0.0.1; ip -6 route add default via fd00::1 dev eth0
ip addr add 10.0.0.20/24 dev eth1 noprefixroute; ip addr add fd00::20/64 dev eth1 noprefixroute nodad
ip route add 10.0.0.1 dev eth1 scope link table 101; ip route add default via 10.0.0.1 dev eth1 table 101
ip -6 route add fd00::1 dev eth1 table 101; ip -6 route add default via fd00::1 dev eth1 table 101
ip rule add prio 512 lookup 100 suppress_prefixlength 31; ip -6 rule add prio 512 lookup 100 suppress_prefixlength 127
for f in -4 -6; do
  ip $f rule add prio 1536 fwmark 0xff/0xff lookup main; ip $f rule add prio 1536 fwmark 0x1/0xff lookup 101
done
ip rule add prio 1537 from 10.0.0.20 lookup 101; ip -6 rule add prio 1537 from fd00::20 lookup 101
peer() { # namespace link IPv4 IPv6
  ip link add $2 type veth peer name eth0 netns $1; ip link set $2 up; ip -n $1 link set eth0 up
  ip -n $1 addr add $3/32 dev eth0; ip -n $1 addr add $4/128 dev eth0 nodad
  ip -n $1 route add 169.254.1.1 dev eth0 scope link; ip -n $1 route add default via 169.254.1.1
  ip -n $1 -6 route add default via fe80::1 dev eth0
  ip -n $1 neigh add 169.254.1.1 lladdr $(mac $2) dev eth0 nud permanent; ip -n $1 neigh add fe80::1 lladdr $(mac $2) dev eth0 nud permanent
}
pod() { # a peer of the node
  peer $1 $2 $3 $4; m=$(ip -n $1 link show eth0 | sed -n 's/.*ether \([^ ]*\).*/\1/p')
  ip route add $3/32 dev $2 scope link table 100; ip -6 route add $4/128 dev $2 table 100
  ip neigh add $3 lladdr $m dev $2 nud permanent; ip neigh add $4 lladdr $m dev $2 nud permanent
}
pod pA eniaaaaaaaaaaa 10.0.0.11 fd00::11; pod pB enibbbbbbbbbbb 10.0.0.21 fd00::21
for p in "far 10.0.5.5 fd00:5::5" "inet 203.0.113.2 2001:db8::2"; do
  set -- $p; peer $1 $1 $2 $3; m=$(ip -n $1 link show eth0 | sed -n 's/.*ether \([^ ]*\).*/\1/p'); r=$(mac $1)
  ip link set $1 netns vpc; ip -n vpc link set $1 address $r; ip -n vpc link set $1 up
  ip -n vpc route add $2/32 dev $1; ip -n vpc -6 route add $3/128 dev $1
  ip -n vpc neigh add $2 lladdr $m dev $1 nud permanent; ip -n vpc neigh add $3 lladdr $m dev $1 nud permanent
done
nft -f - <<X
table inet other {
  counter both4 { }; counter both6 { }
  chain services { type nat hook prerouting priority dstnat;
    ip daddr 10.0.0.20 tcp dport 30080 dnat ip to 10.0.0.11:80; ip6 daddr fd00::20 tcp dport 30080 dnat ip6 to [fd00::11]:80
    ip daddr 10.0.0.10 tcp dport 30081 dnat ip to 10.0.0.21:80; ip6 daddr fd00::10 tcp dport 30081 dnat ip6 to [fd00::21]:80
    ip daddr 10.0.0.20 tcp dport 30082 dnat ip to 10.0.0.10:80; ip6 daddr fd00::20 tcp dport 30082 dnat ip6 to [fd00::10]:80
    ip daddr 10.0.0.10 tcp dport 30083 dnat ip to 10.0.0.20:80; ip6 daddr fd00::10 tcp dport 30083 dnat ip6 to [fd00::20]:80
    ip daddr 10.96.0.10 tcp dport 80 dnat ip to 10.0.5.5:80; ip6 daddr fd96::10 tcp dport 80 dnat ip6 to [fd00:5::5]:80
    ip daddr 10.96.0.11 tcp dport 80 dnat ip to 203.0.113.2:80
  }
  chain early { type filter hook prerouting priority -160; meta mark set meta mark | 0x4000; }
  chain late { type filter hook postrouting priority 0; oifname eth1 meta mark 0x00004001 meta nfproto vmap { ipv4 : jump four, ipv6 : jump six }; }
  chain four { counter name both4; }
  chain six { counter name both6; }
}
X
