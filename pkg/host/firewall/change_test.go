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
			state := book(tt.backend, eni.IPv4)
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

func withPorts(s *ipam.State) netconf.Firewall {
	f := netconf.NewFirewall(s)
	f.Ports = somePorts()[:1]
	return f
}
