package e2e

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// What Calico's Felix keeps on a node where it does policies for pods whose links
// begin with eni, with its default mask 0xffff0000: it clears and sets marks of
// pods' packets before routing, accepts known connections early, and lets pass in
// the end what its policies marked.
const felixIptables = `
iptables -t raw -N cali-PREROUTING; iptables -t raw -I PREROUTING -j cali-PREROUTING
iptables -t raw -A cali-PREROUTING -j MARK --set-xmark 0x0/0xf0000
iptables -t raw -A cali-PREROUTING -i eni+ -j MARK --set-xmark 0x40000/0x40000
iptables -t raw -A cali-PREROUTING -m mark --mark 0x40000/0x40000 -m rpfilter --validmark --invert -j DROP
iptables -t raw -A cali-PREROUTING -m mark --mark 0x10000/0x10000 -j ACCEPT
iptables -t mangle -N cali-PREROUTING; iptables -t mangle -A PREROUTING -j cali-PREROUTING
iptables -t mangle -A cali-PREROUTING -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
iptables -t mangle -A cali-PREROUTING -m mark --mark 0x10000/0x10000 -j ACCEPT
for c in FORWARD from-wl to-wl profile; do iptables -N cali-$c; done; iptables -I FORWARD -j cali-FORWARD
iptables -A cali-FORWARD -j MARK --set-xmark 0x0/0xe0000
iptables -A cali-FORWARD -i eni+ -j cali-from-wl; iptables -A cali-FORWARD -o eni+ -j cali-to-wl
iptables -A FORWARD -m mark --mark 0x10000/0x10000 -j ACCEPT; iptables -A FORWARD -j DROP
iptables -A cali-profile -j MARK --set-xmark 0x10000/0x10000
for c in from-wl to-wl; do
  iptables -A cali-$c -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
  iptables -A cali-$c -m conntrack --ctstate INVALID -j DROP
  iptables -A cali-$c -j MARK --set-xmark 0x0/0x30000
  iptables -A cali-$c -j cali-profile
  iptables -A cali-$c -m mark --mark 0x10000/0x10000 -j RETURN
  iptables -A cali-$c -j DROP
done`

const felixNft = `nft -f - <<X
table ip calico {
  chain raw { type filter hook prerouting priority raw; meta mark set meta mark & 0xfff0ffff; iifname "eni*" meta mark set meta mark | 0x40000;
    meta mark & 0x40000 == 0x40000 fib saddr . mark . iif oif missing drop; meta mark & 0x10000 == 0x10000 accept; }
  chain mangle { type filter hook prerouting priority mangle; ct state established,related accept; meta mark & 0x10000 == 0x10000 accept; }
  chain wl { ct state established,related accept; ct state invalid drop; meta mark set meta mark & 0xfffcffff; meta mark set meta mark | 0x10000; meta mark & 0x10000 == 0x10000 return; drop; }
  chain forward { type filter hook forward priority filter; meta mark set meta mark & 0xfff1ffff; iifname "eni*" jump wl; oifname "eni*" jump wl;
    meta mark & 0x10000 == 0x10000 accept; drop; }
}
X`

// What tailscaled keeps on a subnet router, with its mask 0x00ff0000: what came out
// of the tunnel is marked and masqueraded, and connections keep their mark.
const tailscaleIptables = `
iptables -N ts-forward; iptables -I FORWARD -j ts-forward
iptables -A ts-forward -i tailscale0 -j MARK --set-xmark 0x40000/0xff0000
iptables -A ts-forward -m mark --mark 0x40000/0xff0000 -j ACCEPT
iptables -A ts-forward -s 100.64.0.0/10 -o tailscale0 -j DROP
iptables -A ts-forward -o tailscale0 -j ACCEPT
iptables -t nat -N ts-postrouting; iptables -t nat -I POSTROUTING -j ts-postrouting
iptables -t nat -A ts-postrouting -m mark --mark 0x40000/0xff0000 -j MASQUERADE
iptables -t mangle -A PREROUTING -m conntrack --ctstate ESTABLISHED,RELATED -j CONNMARK --restore-mark --nfmask 0xff0000 --ctmask 0xff0000
iptables -t mangle -A OUTPUT -m conntrack --ctstate NEW -m mark ! --mark 0x0/0xff0000 -j CONNMARK --save-mark --nfmask 0xff0000 --ctmask 0xff0000`

const tailscaleNft = `nft -f - <<X
table ip tailscale {
  chain forward { type filter hook forward priority filter; iifname tailscale0 meta mark set meta mark & 0xff00ffff | 0x40000; meta mark & 0xff0000 == 0x40000 accept; }
  chain postrouting { type nat hook postrouting priority srcnat; meta mark & 0xff0000 == 0x40000 masquerade; }
}
X`

// nodePortRules lets port 30001 of the node's addresses reach pod a, 30002 pod b.
const nodePortRules = `nft "add table ip kube; add chain ip kube pre { type nat hook prerouting priority dstnat; };
	add rule ip kube pre ip daddr { 10.0.0.10, 10.0.0.20 } tcp dport 30001 dnat to 10.0.0.11:80;
	add rule ip kube pre ip daddr { 10.0.0.10, 10.0.0.20 } tcp dport 30002 dnat to 10.0.0.21:80"`

// everyWay asks on all ways that pods' packets take, SNAT off, and wants each side to
// see the other's own address.
func (v *vpc) everyWay() {
	v.t.Helper()
	for id, own := range map[string]string{"a": "10.0.0.11", "b": "10.0.0.21"} {
		if seen, err := ask(v.pods[id], internet4+":80"); err != nil || seen != own {
			v.t.Errorf("pod %s to the internet: it saw %q, %v; want %s", id, seen, err, own)
		}
	}
	for _, to := range []string{"10.0.0.11:80", "10.0.0.21:80", "10.0.0.10:30001", "10.0.0.10:30002", "10.0.0.20:30001", "10.0.0.20:30002"} {
		if seen, err := ask(v.internet, to); err != nil || seen != internet4 {
			v.t.Errorf("the internet to %s: it saw %q, %v", to, seen, err)
		}
	}
	if seen, err := ask(v.pods["b"], "10.0.0.11:80"); err != nil || seen != "10.0.0.21" {
		v.t.Errorf("pod b to pod a: it saw %q, %v", seen, err)
	}
}

// newMarked is a VPC whose node has ENIs 0 and 4, whose mark collides with others'
// in the mask that was the default before.
func newMarked(t *testing.T, s ipam.Settings) *vpc {
	t.Helper()
	v := newVPCWith(t, s, 4)
	echo(t, v.internet, "80")
	for _, id := range []string{"a", "b"} {
		echo(t, v.pods[id], "80")
	}
	v.node.Run(t, "sh", "-ec", nodePortRules)
	return v
}

func TestTrafficPassesBesideTheMarksOfCalicoAndTailscale(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4) {
		for other, script := range map[string]string{
			"Felix by iptables": felixIptables, "Felix by nft": felixNft,
			"Tailscale by iptables": tailscaleIptables, "Tailscale by nft": tailscaleNft,
		} {
			t.Run(name+", "+other, func(t *testing.T) {
				v := newMarked(t, s)
				v.everyWay()
				v.node.Run(t, "sh", "-ec", script)
				v.everyWay()
				v.reload() // ours stands first again where that matters
				v.everyWay()
				if lines := v.checkNode(); len(lines) > 0 {
					t.Errorf("told, though all is well: %q", lines)
				}
			})
		}
	}
}

// Who configured a mask that others use must not have their marks choose an ENI.
func TestMarksThatOthersSetChooseNoENI(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4) {
		s.MarkMask = 0x00ff0000
		for other, script := range map[string]string{"Felix by iptables": felixIptables, "Felix by nft": felixNft} {
			t.Run(name+", "+other, func(t *testing.T) {
				v := newMarked(t, s)
				v.node.Run(t, "sh", "-ec", script)
				v.everyWay()
			})
		}
	}
}

// udpEcho sends back what comes to a port of the namespace.
func udpEcho(t *testing.T, ns nettest.Netns, port int) {
	t.Helper()
	var c *net.UDPConn
	if err := ns.Do(func() (err error) { c, err = net.ListenUDP("udp4", &net.UDPAddr{Port: port}); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		b := make([]byte, 64)
		for {
			n, from, err := c.ReadFromUDP(b)
			if err != nil {
				return
			}
			_, _ = c.WriteToUDP(b[:n], from)
		}
	}()
}

// The kernel tracks a connection for a while after its last packet, with the mark of
// the ENI it came in by. If the address comes back on another ENI meanwhile, and the
// same client asks again from the same port, the answer must not leave by the old one.
func TestAnAddressThatComesBackOnAnotherENIAnswersByThat(t *testing.T) {
	for name, s := range variantsWithoutSNAT(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			var client *net.UDPConn
			v.must(v.internet.Do(func() (err error) {
				client, err = net.DialUDP("udp4", &net.UDPAddr{Port: 5555}, &net.UDPAddr{IP: net.ParseIP("10.0.0.21"), Port: 53})
				return err
			}))
			t.Cleanup(func() { client.Close() })
			asks := func(when string) {
				t.Helper()
				v.must(client.SetDeadline(time.Now().Add(10 * time.Second)))
				if _, err := client.Write([]byte("x")); err != nil {
					t.Fatal(err)
				}
				if _, err := client.Read(make([]byte, 8)); err != nil {
					t.Errorf("%s: %v", when, err)
				}
			}
			udpEcho(t, v.pods["b"], 53)
			asks("on ENI 1")

			b := v.addr(eni.IPv4, 1)
			v.plugin("DEL", "b")
			without, moved := v.inv, v.inv
			without.Addresses = slices.DeleteFunc(slices.Clone(v.inv.Addresses), func(a eni.Address) bool { return a.Addr == b })
			moved.Addresses = append(slices.Clone(without.Addresses), eni.Address{Addr: b, ENI: 0})
			v.load(without)
			v.must(v.net.Unassign("eni-1", b))
			v.must(v.net.Assign("eni-0", b))
			v.load(moved)
			v.pods["again"] = nettest.NewNetns(t, "pod-again")
			v.plugin("ADD", "again")
			t.Cleanup(func() { v.plugin("DEL", "again") })
			if got := v.pods["again"].Run(t, "ip", "-4", "-o", "addr", "show", "dev", "eth0"); !strings.Contains(got, b.String()) {
				t.Fatalf("the pod has another address: %s", got)
			}
			udpEcho(t, v.pods["again"], 53)
			asks("on ENI 0")
		})
	}
}

// Who gives a running node another mask, there and back, loses no packet of the
// connections that came in by an ENI which is not the pod's, in either family.
func TestConnectionsKeepTheirENIWhileTheMaskChanges(t *testing.T) {
	for name, s := range variants(eni.IPv4, eni.IPv6) {
		if !s.SNAT {
			continue
		}
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			v.node.Run(t, "sh", "-ec", nodePortRules)
			v.node.Run(t, "nft", "add table ip6 kube; add chain ip6 kube pre { type nat hook prerouting priority dstnat; };"+
				"add rule ip6 kube pre ip6 daddr 2001:db8::20 tcp dport 30001 dnat to [2001:db8::11]:81")
			talks := flows{t: t}
			talks.connect("ENI 1 to pod a", v.internet, "10.0.0.20:30001", v.pods["a"], "0.0.0.0:80")
			talks.connect("ENI 0 to pod b", v.internet, "10.0.0.10:30002", v.pods["b"], "0.0.0.0:80")
			talks.connect("ENI 1 to pod a, IPv6", v.internet, "[2001:db8::20]:30001", v.pods["a"], "[::]:81")
			talks.connect("ENI 1 to a socket of the node", v.internet, "10.0.0.20:8080", v.node, "0.0.0.0:8080")
			talks.connect("pod b to the internet", v.pods["b"], internet4+":90", v.internet, "0.0.0.0:90")
			talks.ping("the internet to pod b", v.internet, "10.0.0.21")
			talks.ping("pod b to the internet", v.pods["b"], internet4)
			was := v.inv.Settings.MarkMask
			masks := []uint32{0x00ff0000, was}
			if s.Routing == ipam.Map { // the slow ones go there and back once
				masks = append(masks, 0xff000000, was)
			}
			for _, mask := range masks {
				inv := v.inv
				inv.Settings.MarkMask = mask
				lines := v.load(inv)
				if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "connections to mask") }) {
					t.Errorf("mask %#08x: no mark was moved: %q", mask, lines)
				}
				talks.alive(fmt.Sprintf("mask %#08x", mask))
				if again := v.load(inv); len(again) > 0 {
					t.Errorf("mask %#08x: a second time: %q", mask, again)
				}
				if left := v.node.Run(t, "ip", "rule") + v.node.Run(t, "ip", "-6", "rule"); strings.Count(left, fmt.Sprintf("/%#x", mask)) != 4 || strings.Count(left, "fwmark") != 4 {
					t.Errorf("mask %#08x: rules\n%s", mask, left)
				}
			}
			talks.unbroken()
		})
	}
}
