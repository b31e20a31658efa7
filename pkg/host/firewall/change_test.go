package firewall_test

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// What began without the rules that translate has to be forgotten, which takes long where
// there are many connections: growth must not count as such a repair.
func TestApplyTellsWhetherItPutBackWhatTranslates(t *testing.T) {
	joins := func(s *ipam.State) {
		s.Addresses = append(s.Addresses, eni.Address{Addr: netip.MustParseAddr("10.0.0.23"), ENI: 1})
	}
	attached := func(s *ipam.State) { s.ENIs = append(s.ENIs, eni.Interface{Index: 2, Device: "eth2"}) }
	none := func(*ipam.State) {}
	const neither, translates, admits = 0, 1, 2
	for _, tt := range []struct {
		name    string
		backend ipam.Firewall
		change  func(*ipam.State)
		damage  string
		want    int
	}{
		{"an address joins", ipam.Nftables, joins, "true", admits},
		{"an address joins", ipam.Iptables, joins, "true", neither},
		{"an ENI is attached", ipam.Nftables, attached, "true", neither},
		{"an ENI is attached", ipam.Iptables, attached, "true", neither},
		{"all is gone", ipam.Nftables, none, "nft flush ruleset", translates},
		{"all is gone", ipam.Iptables, none, "nft flush ruleset", translates},
		{"SNAT is gone", ipam.Nftables, none, "nft flush chain inet enipool snat4", translates},
		{"SNAT is gone", ipam.Iptables, none, "iptables -t nat -F POSTROUTING", translates},
		{"marks are gone", ipam.Nftables, none, "nft flush chain inet enipool marks", neither},
		{"marks are gone", ipam.Iptables, none, "iptables -t mangle -F PREROUTING", neither},
		{"addresses are gone", ipam.Nftables, none, "nft flush set inet enipool pool4", admits},
		{"host ports are gone", ipam.Nftables, none, "nft flush map inet enipool-pods hostport4", translates},
		{"what leads to host ports is gone", ipam.Nftables, none, "nft flush chain inet enipool-pods hostports", translates},
		{"host ports are gone", ipam.Iptables, none, "iptables -t nat -F ENIPODS-ports", translates},
	} {
		t.Run(tt.name+", "+tt.backend.String(), func(t *testing.T) {
			newNode(t)
			state := nodeState(tt.backend, eni.IPv4)
			apply(t, withPorts(state))
			tt.change(state)
			sh(t, "%s", tt.damage)
			did, err := firewall.Apply(t.Context(), withPorts(state))
			if err != nil {
				t.Fatal(err)
			}
			if did.Translates != (tt.want == translates) || (len(did.Admits) > 0) != (tt.want == admits) && !did.Translates {
				t.Errorf("translates %v, admits %v: %q", did.Translates, did.Admits, did.Lines)
			}
		})
	}
}

// Whose packets leave by which ENI hangs on what is inside the VPC: flows that began before
// have to be looked at, which takes long where there are many. Only such a change tells.
func TestApplyTellsWhetherOtherDestinationsAreInsideTheVPC(t *testing.T) {
	vpc := func(prefixes ...string) func(*ipam.State) {
		return func(s *ipam.State) {
			s.Settings.VPC = nil
			for _, p := range prefixes {
				s.Settings.VPC = append(s.Settings.VPC, netip.MustParsePrefix(p))
			}
		}
	}
	for _, tt := range []struct {
		name        string
		was, is     func(*ipam.State)
		wantRedrawn bool
	}{
		{"it grows", vpc("10.0.0.0/16"), vpc("10.0.0.0/16", "100.64.0.0/10"), true},
		{"it shrinks", vpc("10.0.0.0/16", "100.64.0.0/10"), vpc("10.0.0.0/16"), true},
		{"SNAT goes on", func(s *ipam.State) { s.Settings.SNAT = false }, func(s *ipam.State) { s.Settings.SNAT = true }, true},
		{"SNAT goes off", func(*ipam.State) {}, func(s *ipam.State) { s.Settings.SNAT = false }, true},
		{"nothing changes", func(*ipam.State) {}, func(*ipam.State) {}, false},
		{"an ENI and an address join", func(*ipam.State) {}, func(s *ipam.State) {
			s.ENIs = append(s.ENIs, eni.Interface{Index: 2, Device: "eth2"})
			s.Addresses = append(s.Addresses, eni.Address{Addr: netip.MustParseAddr("10.0.0.23"), ENI: 1})
		}, false},
	} {
		for _, backend := range []ipam.Firewall{ipam.Nftables, ipam.Iptables} {
			t.Run(tt.name+", "+backend.String(), func(t *testing.T) {
				newNode(t)
				state := nodeState(backend, eni.IPv4)
				tt.was(state)
				apply(t, netconf.NewFirewall(state))
				tt.is(state)
				did, err := firewall.Apply(t.Context(), netconf.NewFirewall(state))
				if err != nil || did.Redraws != tt.wantRedrawn {
					t.Errorf("redraws %v, %v: %q", did.Redraws, err, did.Lines)
				}
			})
		}
	}
}

func withPorts(s *ipam.State) netconf.Firewall {
	f := netconf.NewFirewall(s)
	f.Ports = somePorts()[:1]
	return f
}
