package firewall_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
)

// dockerForward is what dockerd makes of the FORWARD chain.
const dockerForward = `
%[1]s -P FORWARD DROP; for c in DOCKER-USER DOCKER-FORWARD DOCKER; do %[1]s -N $c; done
%[1]s -A FORWARD -j DOCKER-USER; %[1]s -A FORWARD -j DOCKER-FORWARD; %[1]s -A DOCKER-USER -j RETURN
%[1]s -A DOCKER-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
%[1]s -A DOCKER-FORWARD -o docker0 -j DOCKER; %[1]s -A DOCKER-FORWARD -i docker0 -j ACCEPT
%[1]s -A DOCKER ! -i docker0 -o docker0 -j DROP`

// kubeForward is what kube-proxy adds to it.
const kubeForward = `
iptables -N KUBE-FORWARD; iptables -I FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
iptables -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
iptables -A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
iptables -A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`

const firewalldForward = `nft -f - <<X
table inet firewalld {
  chain filter_FORWARD { type filter hook forward priority filter + 10; policy accept; ct state { established, related } accept; ct status dnat accept; iifname "lo" accept;
    jump filter_FORWARD_POLICIES; ct state invalid drop; reject with icmpx admin-prohibited; }
  chain filter_FORWARD_POLICIES { iifname "docker0" jump filter_FWD_trusted; iifname . oifname vmap { "eth0" . "eth7" : jump filter_FWD_trusted }; }
  chain filter_FWD_trusted { accept; }
}
X`

// forwarding is what others may have at hook forward.
var forwarding = []struct {
	name, script string
	send, get    bool   // what Blocked says is dropped
	names        string // in its line
}{
	{"nothing", "true", false, false, ""},
	{"a policy of accept", "iptables -P FORWARD ACCEPT; iptables -A FORWARD -i docker0 -j ACCEPT", false, false, ""},
	{"Docker", strings.ReplaceAll(dockerForward, "%[1]s", "iptables"), true, true, "nftables table ip filter: chain FORWARD drops what pods send and what pods get by its policy; to let it pass: iptables -I FORWARD -i eni+ -j ACCEPT; iptables -I FORWARD -o eni+ -j ACCEPT"},
	{"Docker and kube-proxy", strings.ReplaceAll(dockerForward, "%[1]s", "iptables") + kubeForward, true, true, "iptables -I FORWARD -i eni+"},
	{"Docker by legacy iptables", strings.ReplaceAll(dockerForward, "%[1]s", "iptables-legacy") + strings.ReplaceAll(kubeForward, "iptables ", "iptables-legacy "), true, true, "legacy iptables table filter: chain FORWARD drops what pods send and what pods get by its policy; to let it pass: iptables-legacy -I FORWARD -i eni+ -j ACCEPT"},
	{"firewalld", firewalldForward, true, true, "nftables table inet firewalld: chain filter_FORWARD drops what pods send and what pods get by a rule; to let it pass: firewall-cmd --permanent --zone=trusted --add-interface=eni+ && firewall-cmd --reload"},
	{"an administrator's table", `nft 'add table inet mine; add chain inet mine pass { type filter hook forward priority 0; policy drop; }
		add rule inet mine pass ct state vmap { established : accept, related : accept, invalid : drop }; add rule inet mine pass tcp dport 22 accept'`, true, true, `nft insert rule inet mine pass iifname '"eni*"' accept; nft insert rule inet mine pass oifname '"eni*"' accept`},
	{"one that lets out and not in", `nft 'add table ip mine; add chain ip mine pass { type filter hook forward priority 0; policy drop; }
		add rule ip mine pass ct state established,related accept; add rule ip mine pass iifname "eni*" ip saddr { 10.0.0.0/24, 10.9.0.0/16 } accept'`, false, true, "drops what pods get"},
	{"one that lets the subnet pass", `nft 'add table ip mine; add chain ip mine pass { type filter hook forward priority 0; policy drop; }
		add rule ip mine pass ip saddr 10.0.0.0/24 accept; add rule ip mine pass ip daddr 10.0.0.0/24 accept'`, false, false, ""},
	{"a policy engine that accepts by mark", `nft 'add table ip mine; add chain ip mine pods { meta mark set meta mark | 0x10000; }; add chain ip mine pass { type filter hook forward priority 0; policy drop; }
		add rule ip mine pass iifname "eni*" jump pods; add rule ip mine pass oifname "eni*" jump pods; add rule ip mine pass meta mark & 0x10000 == 0x10000 accept'`, false, false, ""},
	{"legacy iptables that lets pods pass", `iptables-legacy -P FORWARD DROP; iptables-legacy -A FORWARD -i eni+ -m comment --comment "pods -j DROP" -j ACCEPT
		iptables-legacy -A FORWARD ! -i lo -o eni+ -j ACCEPT`, false, false, ""},
}

// TestBlockedFindsWhatTheKernelDrops compares what is said of the rules with what
// becomes of packets.
func TestBlockedFindsWhatTheKernelDrops(t *testing.T) {
	newWorld(t)
	sh(t, "nft flush chain inet other early") // its mark is that of packets which kube-proxy accepts
	pod := netip.MustParseAddr("10.0.0.11")
	flows := []firewall.Flow{
		{What: "what pods send", Family: eni.IPv4, In: "eniaaaaaaaaaaa", Out: "eth0", Src: pod},
		{What: "what pods get", Family: eni.IPv4, In: "eth0", Out: "eniaaaaaaaaaaa", Dst: pod},
	}
	for _, tt := range forwarding {
		if strings.Contains(tt.script, "legacy") {
			if _, err := try("iptables-legacy --version"); err != nil {
				continue
			}
		}
		sh(t, "%s", tt.script)
		lines, err := firewall.Blocked(t.Context(), flows)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		said := strings.Join(lines, "\n")
		if send, get := strings.Contains(said, flows[0].What), strings.Contains(said, flows[1].What); send != tt.send || get != tt.get || !strings.Contains(said, tt.names) {
			t.Errorf("%s: %q, want it to name %q", tt.name, said, tt.names)
		}
		for _, way := range []struct {
			from, to string
			drops    bool
		}{{"pA", "10.0.5.5:80", tt.send}, {"far", "10.0.0.11:80", tt.get}} {
			patience := 10 * time.Second
			if way.drops {
				patience = 300 * time.Millisecond
			}
			if _, err := ask(way.from, way.to, patience); (err != nil) != way.drops {
				t.Errorf("%s: %s to %s: %v; dropped %v expected", tt.name, way.from, way.to, err, way.drops)
			}
		}
		if tt.send {
			mends(t, tt.name, said, flows)
		}
		sh(t, `nft delete table inet firewalld 2>/dev/null || true; nft delete table inet mine 2>/dev/null || true; nft delete table ip mine 2>/dev/null || true
			for t in iptables iptables-legacy; do $t -P FORWARD ACCEPT; $t -F; $t -X; done 2>/dev/null || true`)
	}
}

// mends runs the command that the line ends with, where it is one that works here.
func mends(t *testing.T, name, said string, flows []firewall.Flow) {
	t.Helper()
	_, command, _ := strings.Cut(said, "to let it pass: ")
	if strings.HasPrefix(command, "firewall-cmd") {
		return
	}
	sh(t, "%s", command)
	if lines, err := firewall.Blocked(t.Context(), flows); err != nil || len(lines) > 0 {
		t.Errorf("%s: after %s: %q, %v", name, command, lines, err)
	}
	for from, to := range map[string]string{"pA": "10.0.5.5:80", "far": "10.0.0.11:80"} {
		if _, err := ask(from, to, 10*time.Second); err != nil {
			t.Errorf("%s: after %s: %s to %s: %v", name, command, from, to, err)
		}
	}
}
