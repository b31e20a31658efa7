package ipam

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
)

func TestRangesOfTheVPCThatDoNotHoldAnENIAreTold(t *testing.T) {
	enis := []eni.Interface{
		{ID: "eni-1", Device: "eth0", V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0.5/24")}},
		{ID: "eni-2", Device: "eth1", V4: eni.Net{Primary: netip.MustParsePrefix("10.1.0.5/24")}},
		{ID: "eni-3", Device: "eth2", V6: eni.Net{Primary: netip.MustParsePrefix("2001:db8::5/64")}},
	}
	enis[0].Pods = []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24"), netip.MustParsePrefix("2001:db8:2::/64")}
	four, six := []eni.Family{eni.IPv4}, []eni.Family{eni.IPv6}
	for _, tt := range []struct {
		name     string
		snat     bool
		families []eni.Family
		vpc      []string
		want     string // "" for nothing
	}{
		{"all inside", true, four, []string{"10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"}, ""},
		{"none with a range for pods", true, four, []string{"10.0.0.0/16", "10.1.0.0/16"}, "does not hold 10.2.0.0/24, the range for pods of the ENI eni-1 (eth0)"},
		{"one range too few", true, four, []string{"10.0.0.0/16", "10.2.0.0/16"}, "does not hold 10.1.0.5, the address of the ENI eni-2 (eth1)"},
		{"another VPC's", true, four, []string{"192.168.0.0/16", "10.2.0.0/16"}, "the one with 10.0.0.0/24 among them"},
		{"no SNAT, which alone asks for them", false, four, nil, ""},
		{"no IPv4", true, six, []string{"192.168.0.0/16"}, ""},
	} {
		s := Settings{SNAT: tt.snat, Families: tt.families}
		for _, cidr := range tt.vpc {
			s.VPC = append(s.VPC, netip.MustParsePrefix(cidr))
		}
		if got := OutsideVPC(s, enis); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
