package firewall_test

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/nettest"
)

// Felix leads each pod's packets by the pod's link, and drops those of a link that it does
// not know: at once for a pod to come, whose link nobody knows, for some seconds for a new one.
func TestBlockedKnowsCalicosDispatchByLinks(t *testing.T) {
	newWorld(t)
	const a, b = "eniaaaaaaaaaaa", "enibbbbbbbbbbb"
	asked := func(links ...string) (flows []firewall.Flow) {
		for _, l := range links {
			flows = append(flows, firewall.PodFlows(eni.IPv4, l, "eth0")...)
		}
		return flows
	}
	const dockerPolicy = "\niptables-nft -P FORWARD DROP"
	for felix, rules := range map[string]func(...string) string{"iptables": nettest.FelixIptables, "nft": nettest.FelixNft} {
		for _, tt := range []struct {
			name, script string
			flows        []firewall.Flow
			want         string // "": nothing is told
		}{
			{"pods that it knows", rules(a, b), asked(a, b), ""},
			{"no pods yet", rules(), asked(""), ""},
			{"a new pod beside those that it knows", rules(a, b), asked(""), ""},
			{"one pod of two that it does not know", rules(a), asked(b, a), ""},
			{"no pod that it knows", rules(), asked(a, b), "drops what pods send and what pods get by a rule; Calico's Felix does not know the pods' links (chain "},
			{"none of those that are asked for", rules(a), asked(b), "see the log of calico-node"},
		} {
			sh(t, "%s", tt.script)
			check := func(beside string) {
				lines, err := firewall.Blocked(t.Context(), tt.flows)
				said := strings.Join(lines, "\n")
				if err != nil || (said == "") != (tt.want == "") || !strings.Contains(said, tt.want) {
					t.Errorf("Felix by %s, %s%s: %q, %v; want %q", felix, tt.name, beside, said, err, tt.want)
				}
				if strings.Contains(said, "ACCEPT") || strings.Contains(said, "accept;") {
					t.Errorf("Felix by %s, %s%s: %q switches network policies off", felix, tt.name, beside, said)
				}
			}
			check("")
			if felix == "iptables" { // Felix by nft has a base chain of its own, so Docker's is Docker's
				sh(t, "%s", dockerPolicy)
				check(", beside Docker's policy")
			}
			sh(t, "iptables-nft -P FORWARD ACCEPT; nft delete table ip calico 2>/dev/null || true; iptables-nft -F; iptables-nft -X")
		}
	}
}

// What Calico leaves alone another may drop. To let it pass before Calico's chains would
// switch off the policies that it has.
func TestBlockedMendsBehindCalicosChains(t *testing.T) {
	newWorld(t)
	sh(t, "iptables-nft -N cali-FORWARD; iptables-nft -A cali-FORWARD -i cali+ -j DROP; iptables-nft -A FORWARD -j cali-FORWARD; iptables-nft -P FORWARD DROP")
	flows := firewall.PodFlows(eni.IPv4, "eniaaaaaaaaaaa", "eth0")
	lines, err := firewall.Blocked(t.Context(), flows)
	said := strings.Join(lines, "\n")
	if err != nil || !strings.Contains(said, "to let it pass: iptables -A FORWARD -i eni+ -j ACCEPT; iptables -A FORWARD -o eni+ -j ACCEPT") {
		t.Errorf("said %q, %v", said, err)
	}
	sh(t, "iptables-nft -P FORWARD ACCEPT; iptables-nft -A FORWARD -i eni+ -j DROP")
	lines, err = firewall.Blocked(t.Context(), flows)
	if said = strings.Join(lines, "\n"); err != nil || !strings.Contains(said, "drops what pods send by a rule; have its owner let pods pass, behind the jump to Calico's chains") {
		t.Errorf("said %q, %v", said, err)
	}
}

// With no pods yet, what is decided by the names of single links is not certain; what is
// decided for all pods is.
func TestBlockedTellsOfPodsToComeWhatHoldsForAll(t *testing.T) {
	newWorld(t)
	for rules, drops := range map[string]bool{
		`iifname "eni0123456789a" accept`:                                   false,
		`iifname "eni9*" accept`:                                            false,
		`iifname vmap { "eni0123456789a" : accept }`:                        false,
		`iifname { "eni0123456789a", "eth9" } accept`:                       false,
		`iifname @links accept`:                                             false,
		`iifname "eth9" accept`:                                             true,
		`iifname { "eth8", "eth9" } accept`:                                 true,
		`iifname . oifname vmap { "eth0" . "eth7" : accept }`:               true,
		`iifname "eni*" drop`:                                               true,
		`iifname "eni*" ct state established accept`:                        true,
		`iifname . oifname vmap { "eni0123456789a" . "eth0" : accept }`:     false,
		`ip saddr vmap { 10.9.9.9 : accept }; iifname { "lo", "x" } accept`: false, // its address is not given
	} {
		sh(t, `nft 'add table inet mine; add set inet mine links { type ifname; }; add chain inet mine pass { type filter hook forward priority 0; policy drop; }'`)
		for _, r := range strings.Split(rules, "; ") {
			sh(t, "nft 'add rule inet mine pass %s'", r)
		}
		lines, err := firewall.Blocked(t.Context(), firewall.PodFlows(eni.IPv4, "", "eth0"))
		if told := strings.Contains(strings.Join(lines, "\n"), "what pods send"); err != nil || told != drops {
			t.Errorf("%s: %q, %v; told %v expected", rules, lines, err, drops)
		}
		sh(t, "nft delete table inet mine")
	}
}
