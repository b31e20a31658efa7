package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/status"
)

// othersRules are rules of others that break what pods send and answer, each with the rules
// that take them back.
var othersRules = []struct {
	name, script, undo string
	harms              func(s ipam.Settings) bool // where it does harm
	told               string
	breaks             func(v *vpc, patience time.Duration) string // what is wrong now, "" if all is well
}{
	{"a connection mark of others in nftables",
		`nft 'add table ip x; add chain ip x p { type filter hook forward priority 0; }; add rule ip x p iifname "eth1" ct mark set 0x1000'`, "nft delete table ip x", translating,
		"nftables table ip x: chain p changes the connection mark of connections that come in by eth1", arrivalsOfSecond},
	{"CONNMARK --set-mark", "iptables -t mangle -A POSTROUTING -o eni+ -j CONNMARK --set-mark 5", "iptables -t mangle -D POSTROUTING -o eni+ -j CONNMARK --set-mark 5", translating,
		"nftables table ip mangle: chain POSTROUTING changes the connection mark of connections that come in by eth", arrivalsOfSecond},
	{"CONNMARK --save-mark of legacy iptables", "iptables-legacy -t mangle -A POSTROUTING -j CONNMARK --save-mark", "iptables-legacy -t mangle -F POSTROUTING", translating,
		"legacy iptables table mangle: chain POSTROUTING changes the connection mark of connections that come in by eth", arrivalsOfSecond},
	{"the packet's mark, restored before ours and saved", "iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark; iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark",
		"iptables -t mangle -F PREROUTING; iptables -t mangle -F POSTROUTING", nftablesOnly, "nftables table ip mangle: chain POSTROUTING changes the connection mark of connections that come in by eth", arrivalsOfSecond},
	{"the mark of answers", `nft 'add table ip x; add chain ip x p { type filter hook prerouting priority 0; }; add rule ip x p ct direction reply meta mark set 0x1000'`, "nft delete table ip x", translating,
		"nftables table ip x: chain p changes the mark of what pods answer", arrivalsOfSecond},
	{"a masquerade of what leaves the subnet", "iptables -t nat -A POSTROUTING -s 10.0.0.0/24 ! -d 10.0.0.0/24 -j MASQUERADE", "iptables -t nat -D POSTROUTING -s 10.0.0.0/24 ! -d 10.0.0.0/24 -j MASQUERADE", everywhere,
		"pods' addresses are changed: nftables table ip nat: chain POSTROUTING gives what pods send within the VPC (as to 10.0.255.242) another source address", vpcSeesPod},
	{"another address for the internet", `nft 'add table ip x; add chain ip x p { type nat hook postrouting priority 90; }; add rule ip x p ip daddr != 10.0.0.0/8 snat to 10.0.0.99'`, "nft delete table ip x", translating,
		"chain p gives what pods send out of the VPC the source address 10.0.0.99 before enipool gives them 10.0.0.10", internetAnswers},
	{"answers accepted before ours", "iptables -t mangle -I PREROUTING -m conntrack --ctstate ESTABLISHED -j ACCEPT", "iptables -t mangle -D PREROUTING -m conntrack --ctstate ESTABLISHED -j ACCEPT", iptablesOnly,
		"nftables table ip mangle: chain PREROUTING accepts what pods answer before enipool's chain ENIPODS-REPLY-", arrivalsOfSecond},
	{"what leaves accepted before ours", "iptables -t nat -I POSTROUTING -s 10.0.0.0/24 -j ACCEPT", "iptables -t nat -D POSTROUTING -s 10.0.0.0/24 -j ACCEPT", iptablesOnly,
		"nftables table ip nat: chain POSTROUTING accepts what pods send out of the VPC before enipool's chain ENIPOOL-SNAT-", internetAnswers},
}

func everywhere(ipam.Settings) bool     { return true }
func translating(s ipam.Settings) bool  { return s.SNAT }
func nftablesOnly(s ipam.Settings) bool { return s.SNAT && s.Firewall == ipam.Nftables }
func iptablesOnly(s ipam.Settings) bool { return s.SNAT && s.Firewall == ipam.Iptables }

// A packet that should be lost is waited for no longer than silence: an answer takes no
// time. One that should come may take as long as a busy machine needs.
const (
	silence = 300 * time.Millisecond
	busy    = 10 * time.Second
)

func arrivalsOfSecond(v *vpc, patience time.Duration) string {
	return v.sees(patience, v.internet.Name, "10.0.0.21:80", internet4)
}

func internetAnswers(v *vpc, patience time.Duration) string {
	return v.sees(patience, "b", internet4+":80", "10.0.0.10")
}

func vpcSeesPod(v *vpc, patience time.Duration) string {
	return v.sees(patience, "b", "10.0.7.7:80", "10.0.0.21")
}

// sees says what is wrong with a connection whose other side should see the source.
func (v *vpc) sees(patience time.Duration, from, to, source string) string {
	ns, isPod := v.pods[from]
	if !isPod {
		ns = v.internet
	}
	if seen := queryWithin(patience, ns, "tcp4", to); seen != source {
		return fmt.Sprintf("%s to %s: %s, want %s", from, to, seen, source)
	}
	return ""
}

// What others do to marks and addresses is told where pods' packets suffer from it, for as
// long as they do.
func TestRulesOfOthersThatBreakPodsPacketsAreTold(t *testing.T) {
	for name, s := range variants(eni.IPv4) {
		t.Run(name, func(t *testing.T) {
			v := newVPC(t, s)
			echo(t, v.internet, "80")
			echo(t, v.pods["b"], "80")
			v.addFar("10.0.7.7")
			if lines := v.checkNode(); len(lines) > 0 {
				t.Fatalf("all is well: %q", lines)
			}
			for _, tt := range othersRules {
				if !tt.harms(s) {
					continue
				}
				if wrong := tt.breaks(v, busy); wrong != "" {
					t.Fatalf("before %s: %s", tt.name, wrong)
				}
				v.node.Run(t, "sh", "-ec", tt.script)
				if wrong := tt.breaks(v, silence); wrong == "" {
					t.Errorf("%s does no harm", tt.name)
				}
				if lines := v.checkNode(); len(lines) != 1 || !strings.Contains(lines[0], tt.told) {
					t.Errorf("%s: told %q, want %q", tt.name, lines, tt.told)
				}
				v.node.Run(t, "sh", "-ec", tt.undo)
				if wrong := tt.breaks(v, busy); wrong != "" {
					t.Errorf("after %s: %s", tt.name, wrong)
				}
				if lines := v.checkNode(); len(lines) > 0 {
					t.Errorf("%s is gone, and told: %q", tt.name, lines)
				}
			}
		})
	}
}

// addFar gives the internet's host an address within the VPC too.
func (v *vpc) addFar(address string) {
	v.t.Helper()
	v.internet.Run(v.t, "ip", "addr", "add", address+"/32", "dev", "lo")
	named(v.net.Router().Name).Run(v.t, "ip", "route", "add", address, "via", internet4)
}

// The agent tells such a rule while it is there, and not any more afterwards.
func TestTheAgentTellsAConnectionMarkOfOthersWhileItIsThere(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "ctmark", limits: tiny})
	s.configure("pool.batch: 2")
	s.start()
	s.poolOf(2)
	s.add("pod0", "pod1", "pod2") // on two ENIs
	const told = "pods are cut off: nftables table ip x: chain p changes the connection mark of connections that come in by eth"
	s.node.Run(t, "nft", "add table ip x; add chain ip x p { type filter hook forward priority 0; }; add rule ip x p ct mark set 0x1000")
	s.told("the chain", func(st status.Status) bool { return len(st.Blocked) == 1 && strings.HasPrefix(st.Blocked[0], told) })
	if said, err := s.ctl("pool", "check"); err == nil || !strings.Contains(said, told) {
		t.Errorf("pool check: %v\n%s", err, said)
	}
	s.node.Run(t, "nft", "delete", "table", "ip", "x")
	s.told("the chain is gone", func(st status.Status) bool { return len(st.Blocked) == 0 && st.Problem == "" })
	if said, err := s.ctl("pool", "check"); err != nil {
		t.Errorf("pool check: %v\n%s", err, said)
	}
}
