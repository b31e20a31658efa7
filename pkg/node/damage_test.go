package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
)

// setups are the ways in which enipool leads packets.
var setups = map[string]ipam.Settings{
	"map":             {Routing: ipam.Map, Firewall: ipam.Nftables},
	"rules":           {Routing: ipam.Rule, Firewall: ipam.Nftables},
	"rules, iptables": {Routing: ipam.Rule, Firewall: ipam.Iptables},
}

// inSetups runs the test on a node of each setup, with two ENIs.
func inSetups(t *testing.T, test func(t *testing.T, setup string, n Node)) {
	for setup, settings := range setups {
		t.Run(setup, func(t *testing.T) {
			n, initial := newNode(t, 2)
			initial.Settings.Routing, initial.Settings.Firewall = settings.Routing, settings.Firewall
			n.put(t, initial)
			if _, err := n.Sync(t.Context(), nil, nil); err != nil {
				t.Fatal(err)
			}
			test(t, setup, n)
		})
	}
}

// others runs a script of others, and another one that takes back what it did.
func others(t *testing.T, script, undo string) func() {
	t.Helper()
	if strings.Contains(script, "iptables-legacy") {
		if _, err := exec.LookPath("iptables-legacy"); err != nil {
			t.Skip("needs the legacy variant of iptables:", err)
		}
	}
	nettest.Run(t, "sh", "-ec", script)
	return func() { nettest.Run(t, "sh", "-ec", undo) }
}

const (
	everywhere = ""
	withNft    = "map,rules"
	noX        = "nft delete table ip x"
)

// damages are what others do to the marks and addresses of pods' packets, and what is said
// of it: nothing where it is not certain, or does no harm. In says in which setups.
var damages = []struct{ name, in, script, undo, want string }{
	{"a connection mark of others, of what comes in by an ENI", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook prerouting priority 0; }; add rule ip x p iifname "eth1" ct mark set 0x1000'`, noX,
		"pods are cut off: nftables table ip x: chain p changes the connection mark of connections that come in by eth1, by which enipool sends the answers out by the ENI of the connection; have it leave the bits 0x000000ff alone"},
	{"one of what is forwarded", everywhere,
		`nft 'add table inet x; add chain inet x p { type filter hook forward priority 10; }; add chain inet x q; add rule inet x q ct mark set 0x1000; add rule inet x p meta nfproto ipv4 jump q'`, "nft delete table inet x",
		"nftables table inet x: chain p changes the connection mark of connections that come in by eth0"},
	{"one that has a bit of ours", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook forward priority 0; }; add rule ip x p ct mark set ct mark or 0x1'`, noX, ""}, // that bit all marks here have
	{"one that has another bit of ours", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook forward priority 0; }; add rule ip x p ct mark set ct mark or 0x8'`, noX, "chain p changes the connection mark of connections that come in by eth1"},
	{"one by a chain that translates", everywhere,
		`nft 'add table ip x; add chain ip x p { type nat hook postrouting priority 90; }; add rule ip x p ct mark set 0x1000'`, noX, "chain p changes the connection mark of connections that come in by eth0"},
	{"one of answers, before ours", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook prerouting priority -150; }; add rule ip x p iifname "eni*" ct state established ct mark set 0x1000'`, noX,
		"chain p changes the connection mark of what pods answer"},
	{"the packet's mark, saved", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook postrouting priority 0; }; add rule ip x p ct mark set meta mark'`, noX, "chain p changes the connection mark of connections that come in by eth0"},
	{"the packet's mark, restored and saved", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook prerouting priority 0; }; add chain ip x q { type filter hook postrouting priority 0; };
			add rule ip x p meta mark set ct mark; add rule ip x q ct mark set meta mark'`, noX, ""},
	{"the packet's mark, restored before ours and saved", withNft, "iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark; iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark",
		"iptables -t mangle -F PREROUTING; iptables -t mangle -F POSTROUTING", "nftables table ip mangle: chain POSTROUTING changes the connection mark of connections that come in by eth0"},
	{"the packet's mark, restored behind ours and saved", "rules, iptables", "iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark; iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark",
		"iptables -t mangle -D PREROUTING -j CONNMARK --restore-mark; iptables -t mangle -F POSTROUTING", ""},
	{"other bits", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook forward priority 0; }; add rule ip x p ct mark set ct mark and 0xff or 0x1000'`, noX, ""},
	{"before ours, the first packet", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook prerouting priority -160; }; add rule ip x p ct state new ct mark set 0x1000'`, noX, ""},
	{"other connections", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook forward priority 0; }; add rule ip x p iifname "docker0" ct mark set 0x1000; add rule ip x p tcp dport 80 ct mark set 0x1000'`, noX, ""},
	{"some connections", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook forward priority 0; }; add rule ip x p ip dscp 8 ct mark set 0x1000; add rule ip x p fib saddr type local ct mark set 0x1000'`, noX, ""},
	{"what comes that far", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook forward priority 0; }; add chain ip x q; add rule ip x q ip dscp 8 accept; add rule ip x p jump q; add rule ip x p ct mark set 0x1000'`, noX, ""},
	{"connections that pods open", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook forward priority 0; }; add rule ip x p iifname "eni*" ct state new ct mark set 0x1000'`, noX, ""},
	{"CONNMARK --set-mark", everywhere, "iptables -t mangle -A POSTROUTING -o eni+ -j CONNMARK --set-mark 5", "iptables -t mangle -F POSTROUTING",
		"nftables table ip mangle: chain POSTROUTING changes the connection mark of connections that come in by eth0"},
	{"CONNMARK --set-mark behind ours", everywhere, "iptables -t mangle -A PREROUTING -i eth1 -j CONNMARK --set-mark 5", "iptables -t mangle -D PREROUTING -i eth1 -j CONNMARK --set-mark 5", "none or eth1"},
	{"CONNMARK --save-mark", everywhere, "iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark", "iptables -t mangle -F POSTROUTING",
		"nftables table ip mangle: chain POSTROUTING changes the connection mark of connections that come in by eth0"},
	{"CONNMARK --set-xmark of our bits", everywhere, "iptables -t mangle -A FORWARD -j CONNMARK --set-xmark 0x0/0xf", "iptables -t mangle -F FORWARD",
		"nftables table ip mangle: chain FORWARD changes the connection mark of connections that come in by eth0"},
	{"CONNMARK of other bits", everywhere, "iptables -t mangle -A FORWARD -j CONNMARK --set-xmark 0x1000/0xf000; iptables -t mangle -A FORWARD -j CONNMARK --save-mark --mask 0xf000", "iptables -t mangle -F FORWARD", ""},
	{"CONNMARK of legacy iptables", everywhere, "iptables-legacy -t mangle -A FORWARD -i eth1 -j CONNMARK --set-mark 5", "iptables-legacy -t mangle -F FORWARD",
		"legacy iptables table mangle: chain FORWARD changes the connection mark of connections that come in by eth1"},
	{"CONNMARK --save-mark of legacy iptables", everywhere, "iptables-legacy -t mangle -A POSTROUTING -m connmark --mark 0x1/0xff -j CONNMARK --save-mark", "iptables-legacy -t mangle -F POSTROUTING",
		"legacy iptables table mangle: chain POSTROUTING changes the connection mark of connections that come in by eth1"},
	{"CONNMARK of other bits, of legacy iptables", everywhere, "iptables-legacy -t mangle -A FORWARD -j CONNMARK --save-mark --mask 0xf000; iptables-legacy -t mangle -A FORWARD -m connmark --mark 0x2/0xff -j CONNMARK --set-mark 5",
		"iptables-legacy -t mangle -F FORWARD", ""},
	{"the mark of answers", everywhere,
		`nft 'add table ip x; add chain ip x p { type filter hook prerouting priority 0; }; add rule ip x p ct direction reply meta mark set 0x1000'`, noX,
		"pods are cut off: nftables table ip x: chain p changes the mark of what pods answer, by which enipool chooses their ENI; have it leave the bits 0x000000ff alone"},
	{"MARK of iptables, behind ours", "rules, iptables", "iptables -t mangle -A PREROUTING -i eni+ -j MARK --set-mark 5", "iptables -t mangle -D PREROUTING -i eni+ -j MARK --set-mark 5",
		"nftables table ip mangle: chain PREROUTING changes the mark of what pods answer"},
	{"MARK of iptables, before ours", withNft, "iptables -t mangle -A PREROUTING -i eni+ -j MARK --set-mark 5", "iptables -t mangle -F PREROUTING", ""},

	{"a masquerade of all that leaves", everywhere,
		`nft 'add table ip x; add chain ip x p { type nat hook postrouting priority 110; }; add rule ip x p oifname "eth1" masquerade'`, noX,
		"pods' addresses are changed: nftables table ip x: chain p gives what pods send within the VPC (as to 10.0.0.13) another source address than the pod's; have its rules leave that out"},
	{"a masquerade of what leaves the subnet", everywhere, "iptables -t nat -A POSTROUTING -s 10.0.0.0/24 ! -d 10.0.0.0/24 -j MASQUERADE", "iptables -t nat -D POSTROUTING -s 10.0.0.0/24 ! -d 10.0.0.0/24 -j MASQUERADE",
		"pods' addresses are changed: nftables table ip nat: chain POSTROUTING gives what pods send within the VPC (as to 10.0.255.242) another source address"},
	{"the same of legacy iptables", everywhere, "iptables-legacy -t nat -A POSTROUTING -s 10.0.0.0/24 ! -d 10.0.0.0/24 -j MASQUERADE", "iptables-legacy -t nat -F POSTROUTING",
		"pods' addresses are changed: legacy iptables table nat: chain POSTROUTING gives what pods send within the VPC (as to 10.0.255.242)"},
	{"a masquerade of what leaves the VPC", everywhere, "iptables -t nat -A POSTROUTING -s 10.0.0.0/16 ! -d 10.0.0.0/16 -j MASQUERADE", "iptables -t nat -D POSTROUTING -s 10.0.0.0/16 ! -d 10.0.0.0/16 -j MASQUERADE", ""},
	{"another address for the internet", everywhere,
		`nft 'add table ip x; add chain ip x p { type nat hook postrouting priority 90; }; add rule ip x p oifname "eth0" ip daddr != 10.0.0.0/8 snat to 10.0.0.99'`, noX,
		"pods' addresses are changed: nftables table ip x: chain p gives what pods send out of the VPC the source address 10.0.0.99 before enipool gives them 10.0.0.10; have its rules leave pods' addresses out"},
	{"the same address for the internet", everywhere,
		`nft 'add table ip x; add chain ip x p { type nat hook postrouting priority 90; }; add rule ip x p oifname "eth0" ip daddr != 10.0.0.0/8 snat to 10.0.0.10'`, noX, ""},
	{"another address for the internet, behind ours", everywhere,
		`nft 'add table ip x; add chain ip x p { type nat hook postrouting priority 110; }; add rule ip x p oifname "eth0" ip daddr != 10.0.0.0/8 snat to 10.0.0.99'`, noX, ""},
	{"another address for the internet, by iptables before ours", "rules, iptables",
		"iptables -t nat -I POSTROUTING -o eth0 ! -d 10.0.0.0/16 -j SNAT --to-source 10.0.0.99", "iptables -t nat -D POSTROUTING -o eth0 ! -d 10.0.0.0/16 -j SNAT --to-source 10.0.0.99",
		"pods' addresses are changed: nftables table ip nat: chain POSTROUTING gives what pods send out of the VPC the source address 10.0.0.99 before enipool gives them 10.0.0.10"},
	{"another address for the internet, by iptables behind ours", everywhere,
		"iptables -t nat -A POSTROUTING -o eth0 ! -d 10.0.0.0/16 -j SNAT --to-source 10.0.0.99", "iptables -t nat -D POSTROUTING -o eth0 ! -d 10.0.0.0/16 -j SNAT --to-source 10.0.0.99", ""},
	{"some of what leaves", everywhere,
		`nft 'add table ip x; add chain ip x p { type nat hook postrouting priority 90; }; add rule ip x p tcp dport 80 masquerade; add rule ip x p meta mark & 0x4000 == 0x4000 masquerade; add rule ip x p ip dscp 8 snat to 10.0.0.99; add rule ip x p ct mark & 0x4000 == 0x4000 snat to 10.0.0.99'`, noX, ""},

	{"answers accepted before ours", "rules, iptables", "iptables -t mangle -I PREROUTING -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT", "iptables -t mangle -D PREROUTING -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
		"pods are cut off: nftables table ip mangle: chain PREROUTING accepts what pods answer before enipool's chain ENIPODS-REPLY-"},
	{"arrivals accepted before ours, by a chain", "rules, iptables", "iptables -t mangle -N X; iptables -t mangle -A X -m mark --mark 0x80/0x80 -j RETURN; iptables -t mangle -A X -j RETURN; iptables -t mangle -I PREROUTING -i eth1 -j ACCEPT; iptables -t mangle -I PREROUTING -i eth1 -j X",
		"iptables -t mangle -D PREROUTING -i eth1 -j ACCEPT; iptables -t mangle -D PREROUTING -i eth1 -j X; iptables -t mangle -F X; iptables -t mangle -X X",
		"pods are cut off: nftables table ip mangle: chain PREROUTING accepts connections that come in by eth1 before enipool's chain ENIPOOL-MARK-"},
	{"some packets accepted before ours", everywhere, "iptables -t mangle -N X; iptables -t mangle -A X -m mark ! --mark 0x4000/0x4000 -j RETURN; iptables -t mangle -A X -j ACCEPT; iptables -t mangle -I PREROUTING -j X; iptables -t mangle -I PREROUTING -i docker0 -j ACCEPT; iptables -t mangle -I PREROUTING -p udp -j ACCEPT",
		"iptables -t mangle -D PREROUTING -j X; iptables -t mangle -F X; iptables -t mangle -X X; iptables -t mangle -D PREROUTING -i docker0 -j ACCEPT; iptables -t mangle -D PREROUTING -p udp -j ACCEPT", ""},
	{"accepted behind ours", everywhere, "iptables -t mangle -A PREROUTING -j ACCEPT; iptables -t nat -A POSTROUTING -j ACCEPT", "iptables -t mangle -D PREROUTING -j ACCEPT; iptables -t nat -D POSTROUTING -j ACCEPT", ""},
	{"what leaves, accepted before ours", "rules, iptables", "iptables -t nat -I POSTROUTING -s 10.0.0.0/24 -j ACCEPT", "iptables -t nat -D POSTROUTING -s 10.0.0.0/24 -j ACCEPT",
		"pods are cut off: nftables table ip nat: chain POSTROUTING accepts what pods send out of the VPC before enipool's chain ENIPOOL-SNAT-"},
	{"what stays in the VPC, accepted before ours", everywhere, "iptables -t nat -N X; iptables -t nat -A X -d 10.0.0.0/16 -j ACCEPT; iptables -t nat -I POSTROUTING -j X", "iptables -t nat -D POSTROUTING -j X; iptables -t nat -F X; iptables -t nat -X X", ""},
}

// What others do with marks and addresses is told where it breaks pods' packets for
// certain, while it is there.
func TestCheckTellsWhatOthersDoToMarksAndAddresses(t *testing.T) {
	inSetups(t, func(t *testing.T, setup string, n Node) {
		for _, tt := range damages {
			if tt.in == withNft && strings.Contains(setup, "iptables") || tt.in != withNft && tt.in != everywhere && tt.in != setup {
				continue
			}
			want := tt.want
			if want == "none or eth1" { // with nftables ours comes behind
				want = ""
				if strings.Contains(setup, "iptables") {
					want = "chain PREROUTING changes the connection mark of connections that come in by eth1"
				}
			}
			t.Run(tt.name, func(t *testing.T) {
				undo := others(t, tt.script, tt.undo)
				lines, err := n.Blocked(t.Context())
				undo()
				if err != nil || (want == "") != (len(lines) == 0) || !strings.Contains(strings.Join(lines, "\n"), want) || len(lines) > 1 {
					t.Errorf("told: %q, %v; want %q", lines, err, want)
				}
				if lines, err := n.Blocked(t.Context()); err != nil || len(lines) > 0 {
					t.Errorf("it is gone, and told: %q, %v", lines, err)
				}
			})
		}
	})
}

// So is what others do where iptables is the legacy one.
func TestCheckTellsWhatOthersAcceptBeforeLegacyChains(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"iptables", "ip6tables", "iptables-restore", "ip6tables-restore"} {
		path, err := exec.LookPath(strings.Replace(name, "tables", "tables-legacy", 1))
		if err != nil {
			t.Skip("needs the legacy variant of iptables:", err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	n, initial := newNode(t, 2)
	initial.Settings.Routing, initial.Settings.Firewall = ipam.Rule, ipam.Iptables
	n.put(t, initial)
	if _, err := n.Sync(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		nettest.Run(t, "sh", "-ec", "for t in raw mangle nat; do iptables -t $t -F; iptables -t $t -X; done")
	})
	for _, tt := range damages {
		if tt.in == withNft || strings.Contains(tt.script, "legacy") || !strings.HasPrefix(tt.script, "iptables") {
			continue
		}
		want := strings.ReplaceAll(tt.want, "nftables table ip ", "legacy iptables table ")
		if want == "none or eth1" {
			want = "legacy iptables table mangle: chain PREROUTING changes the connection mark of connections that come in by eth1"
		}
		undo := others(t, tt.script, tt.undo)
		lines, err := n.Blocked(t.Context())
		undo()
		if err != nil || (want == "") != (len(lines) == 0) || !strings.Contains(strings.Join(lines, "\n"), want) || len(lines) > 1 {
			t.Errorf("%s: told: %q, %v; want %q", tt.name, lines, err, want)
		}
	}
}
