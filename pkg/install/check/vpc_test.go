package check

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
)

func TestRangesOfAnotherVPCMustBeFixed(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("172.17.0.1"), netip.MustParseAddr("10.1.0.5")} // a tunnel's and the primary ENI's
	for _, tt := range []struct {
		vpc  string
		own  []netip.Addr
		want string
	}{
		{"10.1.0.0/16", own, "ok"},
		{"10.0.0.0/16", own, "must fix"},
		{"10.0.0.0/16", nil, ""},
		{"", own, ""},
	} {
		s := ipam.Settings{SNAT: true}
		if tt.vpc != "" {
			s.VPC = []netip.Prefix{netip.MustParsePrefix(tt.vpc)}
		}
		var got string
		for _, l := range wrongRanges(s, tt.own) {
			got = l.What.String()
		}
		if got != tt.want {
			t.Errorf("vpcCIDRs %q on a node with %v: %q, want %q", tt.vpc, tt.own, got, tt.want)
		}
	}
}
