package node

import (
	"strings"
	"testing"
)

// neighbours are what programs that work beside enipool put into the packet filter, in the
// words of their rules.
var neighbours = map[string]string{
	"kube-proxy, iptables": `
iptables -t nat -N KUBE-SERVICES; iptables -t nat -N KUBE-POSTROUTING; iptables -t nat -N KUBE-MARK-MASQ; iptables -t nat -N KUBE-SVC-A; iptables -t nat -N KUBE-SEP-A; iptables -t nat -N KUBE-NODEPORTS
iptables -t nat -I PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES; iptables -t nat -I OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
iptables -t nat -I POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
iptables -t nat -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN; iptables -t nat -A KUBE-POSTROUTING -j MARK --xor-mark 0x4000
iptables -t nat -A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
iptables -t nat -A KUBE-MARK-MASQ -j MARK --or-mark 0x4000
iptables -t nat -A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j KUBE-SVC-A; iptables -t nat -A KUBE-SERVICES -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
iptables -t nat -A KUBE-SVC-A ! -s 10.0.0.0/16 -d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j KUBE-MARK-MASQ; iptables -t nat -A KUBE-SVC-A -j KUBE-SEP-A
iptables -t nat -A KUBE-SEP-A -s 10.0.0.5/32 -j KUBE-MARK-MASQ; iptables -t nat -A KUBE-SEP-A -p tcp -m tcp -j DNAT --to-destination 10.0.0.5:6443
iptables -t mangle -N KUBE-IPTABLES-HINT; iptables -t mangle -N KUBE-KUBELET-CANARY; iptables -N KUBE-FORWARD; iptables -N KUBE-PROXY-FIREWALL
iptables -I FORWARD -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL; iptables -I FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
iptables -A KUBE-FORWARD -m conntrack --ctstate INVALID -m nfacct --nfacct-name ct_state_invalid_dropped_pkts -j DROP 2>/dev/null || iptables -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
iptables -A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -j ACCEPT; iptables -A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,

	"kube-proxy, nftables": `nft -f - <<X
table ip kube-proxy {
  map service-ips { type ipv4_addr . inet_proto . inet_service : verdict; elements = { 10.96.0.1 . tcp . 443 : goto service-A }; }
  chain mark-for-masquerade { meta mark set meta mark or 0x4000; }
  chain masquerading { meta mark and 0x4000 == 0 return; meta mark set meta mark xor 0x4000; masquerade fully-random; }
  chain service-A { ip saddr != 10.0.0.0/16 jump mark-for-masquerade; numgen random mod 1 vmap { 0 : goto endpoint-A }; }
  chain endpoint-A { ip saddr 10.0.0.5 jump mark-for-masquerade; meta l4proto tcp dnat to 10.0.0.5:6443; }
  chain services { ip daddr . meta l4proto . th dport vmap @service-ips; }
  chain filter-forward { type filter hook forward priority -110; ct state new jump firewall-check; }
  chain firewall-check { }
  chain nat-prerouting { type nat hook prerouting priority dstnat; jump services; }
  chain nat-postrouting { type nat hook postrouting priority srcnat; jump masquerading; }
}
X`,

	"Docker": `
iptables -t nat -N DOCKER; iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER; iptables -t nat -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
iptables -t nat -A POSTROUTING -s 172.17.0.2/32 -d 172.17.0.2/32 -p tcp -m tcp --dport 80 -j MASQUERADE; iptables -t nat -A DOCKER -i docker0 -j RETURN
iptables -N DOCKER-USER; iptables -A FORWARD -j DOCKER-USER; iptables -A DOCKER-USER -j RETURN; iptables -A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; iptables -A FORWARD -i docker0 -j ACCEPT`,

	"Docker, swarm": `
iptables -t mangle -A PREROUTING -d 192.0.2.5/32 -p tcp -m tcp --dport 80 -j MARK --set-mark 0x101; iptables -t mangle -A POSTROUTING -d 10.255.0.0/16 -o docker0 -j CONNMARK --save-mark
iptables -t nat -A POSTROUTING -o docker_gwbridge -m addrtype --src-type LOCAL -j MASQUERADE; iptables -t nat -A POSTROUTING -s 172.18.0.0/16 ! -o docker_gwbridge -j MASQUERADE`,

	"Calico, nftables": `nft -f - <<X
table ip calico {
  set cali40masq-ipam-pools { type ipv4_addr; flags interval; elements = { 192.168.0.0/16 }; }
  set cali40all-ipam-pools { type ipv4_addr; flags interval; elements = { 192.168.0.0/16 }; }
  chain mangle-PREROUTING { type filter hook prerouting priority mangle; ct state established,related accept; meta mark & 0x10000 == 0x10000 accept; jump from-host-endpoint; }
  chain from-host-endpoint { meta mark set mark and 0xfffeffff; meta mark & 0x20000 == 0x20000 meta mark set mark or 0x10000; }
  chain filter-FORWARD { type filter hook forward priority 0; meta mark set mark and 0xff00ffff; iifname "cali*" jump wl; }
  chain wl { ct state established,related accept; meta mark & 0x10000 == 0x10000 return; drop; }
  chain nat-POSTROUTING { type nat hook postrouting priority srcnat; jump nat-outgoing; oifname "tunl0" fib saddr . oif type != local fib saddr type local masquerade; }
  chain nat-outgoing { ip saddr @cali40masq-ipam-pools ip daddr != @cali40all-ipam-pools masquerade; }
}
X`,

	"Calico, iptables": `
for c in cali-POSTROUTING cali-nat-outgoing cali-fip-snat; do iptables -t nat -N $c; done; iptables -t nat -I POSTROUTING -m comment --comment "cali:O3lYWMrLQYEMJtB5" -j cali-POSTROUTING
iptables -t nat -A cali-POSTROUTING -j cali-fip-snat; iptables -t nat -A cali-POSTROUTING -j cali-nat-outgoing; iptables -t nat -A cali-POSTROUTING -o tunl0 -m addrtype ! --src-type LOCAL --limit-iface-out -m addrtype --src-type LOCAL -j MASQUERADE
for c in cali-PREROUTING cali-from-host-endpoint; do iptables -t mangle -N $c; done; iptables -t mangle -I PREROUTING -m comment --comment "cali:6gwbT8clXdHdC1b1" -j cali-PREROUTING
iptables -t mangle -A cali-PREROUTING -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN; iptables -t mangle -A cali-PREROUTING -m mark --mark 0x10000/0x10000 -j RETURN
iptables -t mangle -A cali-PREROUTING -j cali-from-host-endpoint; iptables -t mangle -A cali-PREROUTING -m comment --comment "Host endpoint policy accepted packet." -m mark --mark 0x10000/0x10000 -j ACCEPT
iptables -N cali-FORWARD; iptables -I FORWARD -j cali-FORWARD; iptables -A cali-FORWARD -j MARK --set-xmark 0x0/0xe0000; iptables -A FORWARD -m mark --mark 0x10000/0x10000 -j ACCEPT; iptables -A FORWARD -j MARK --set-xmark 0x10000/0x10000`,

	"Tailscale": `
iptables -N ts-forward; iptables -I FORWARD -j ts-forward; iptables -A ts-forward -i tailscale0 -j MARK --set-xmark 0x40000/0xff0000; iptables -A ts-forward -m mark --mark 0x40000/0xff0000 -j ACCEPT
iptables -A ts-forward -s 100.64.0.0/10 -o tailscale0 -j DROP; iptables -A ts-forward -o tailscale0 -j ACCEPT
iptables -t nat -N ts-postrouting; iptables -t nat -I POSTROUTING -j ts-postrouting; iptables -t nat -A ts-postrouting -m mark --mark 0x40000/0xff0000 -j MASQUERADE
iptables -t mangle -A PREROUTING -m conntrack --ctstate RELATED,ESTABLISHED -j CONNMARK --restore-mark --nfmask 0xff0000 --ctmask 0xff0000
iptables -t mangle -A OUTPUT -m conntrack --ctstate NEW -m mark ! --mark 0x0/0xff0000 -j CONNMARK --save-mark --nfmask 0xff0000 --ctmask 0xff0000`,

	"firewalld": `nft -f - <<X
table inet firewalld {
  chain mangle_PREROUTING { type filter hook prerouting priority -140; jump mangle_PREROUTING_POLICIES; }
  chain mangle_PREROUTING_POLICIES { iifname "eth0" jump mangle_PRE_policy; iifname "eth0" jump mangle_PRE_public; iifname "eth0" return; jump mangle_PRE_public; return; }
  chain mangle_PRE_policy { }
  chain mangle_PRE_public { }
  chain nat_POSTROUTING { type nat hook postrouting priority 110; jump nat_POSTROUTING_POLICIES; }
  chain nat_POSTROUTING_POLICIES { iifname "docker0" oifname "eth0" jump nat_POST_masq; iifname "docker0" oifname "eth0" return; oifname "eth0" jump nat_POST_public; oifname "eth0" return; jump nat_POST_public; return; }
  chain nat_POST_masq { meta nfproto ipv4 oifname != "lo" masquerade; }
  chain nat_POST_public { }
  chain filter_FORWARD { type filter hook forward priority 10; ct state { established, related } accept; ct status dnat accept; iifname "lo" accept; ct state invalid drop;
    iifname "eni*" jump trusted; oifname "eni*" jump trusted; reject with icmpx admin-prohibited; }
  chain trusted { accept; }
}
X`,

	"ufw": `
for c in ufw-before-forward ufw-user-forward ufw-after-forward ufw-reject-forward ufw-track-forward; do iptables -N $c; iptables -A FORWARD -j $c; done
iptables -A ufw-before-forward -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; iptables -A ufw-before-forward -p icmp -m icmp --icmp-type 8 -j ACCEPT; iptables -A ufw-before-forward -j ufw-user-forward
iptables -A ufw-track-forward -p tcp -m conntrack --ctstate NEW -j ACCEPT`,

	"portmap": `
iptables -t nat -N CNI-HOSTPORT-MASQ; iptables -t nat -N CNI-HOSTPORT-SETMARK; iptables -t nat -A CNI-HOSTPORT-SETMARK -j MARK --or-mark 0x2000
iptables -t nat -A CNI-HOSTPORT-MASQ -m mark --mark 0x2000/0x2000 -j MASQUERADE; iptables -t nat -I POSTROUTING -m comment --comment "CNI portfwd requiring masquerade" -j CNI-HOSTPORT-MASQ`,

	"aws-vpc-cni": `
iptables -t nat -N AWS-SNAT-CHAIN-0; iptables -t nat -A POSTROUTING -j AWS-SNAT-CHAIN-0; iptables -t nat -A AWS-SNAT-CHAIN-0 -d 10.0.0.0/16 -j RETURN
iptables -t nat -A AWS-SNAT-CHAIN-0 ! -o vlan+ -m addrtype ! --dst-type LOCAL -j SNAT --to-source 10.0.0.10 --random-fully
iptables -t mangle -A PREROUTING -i eth0 -m addrtype --dst-type LOCAL --limit-iface-in -j CONNMARK --set-xmark 0x80/0x80; iptables -t mangle -A PREROUTING -i eni+ -j CONNMARK --restore-mark --nfmask 0x80 --ctmask 0x80`,
}

// What depends on marks, sets and addresses of others' own is no damage: a check that warns
// of what each node has is read by nobody.
func TestCheckTellsNothingOfNeighboursThatLeavePodsAlone(t *testing.T) {
	inSetups(t, func(t *testing.T, setup string, n Node) {
		for name, script := range neighbours {
			for _, tool := range []string{"iptables", "iptables-legacy"} {
				if tool != "iptables" && (!strings.Contains(script, "iptables -") || setup != "rules, iptables") {
					continue
				}
				t.Run(name+" by "+tool, func(t *testing.T) {
					undo := others(t, strings.ReplaceAll(script, "iptables -", tool+" -"), undoNeighbours)
					defer undo()
					if lines, err := n.Blocked(t.Context()); err != nil || len(lines) > 0 {
						t.Errorf("told: %q, %v", lines, err)
					}
				})
			}
		}
	})
}

// undoNeighbours leaves what is enipool's.
const undoNeighbours = `
for f in "ip kube-proxy" "ip calico" "inet firewalld"; do nft delete table $f 2>/dev/null || true; done
for i in iptables iptables-legacy; do for t in nat mangle filter; do
  $i -t $t -S 2>/dev/null | grep -v ENIPO | sed -n 's/^-A/-D/p' | xargs -rL1 $i -t $t || true
  $i -t $t -S 2>/dev/null | grep -v ENIPO | sed -n 's/^-N/-X/p' | xargs -rL1 $i -t $t || true
done; done`
