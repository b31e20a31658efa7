package configfile

import (
	"io"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/config/agentconf"
	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nodecache"
)

func TestAReloadRefusesRangesThatDontHoldTheNodesENIs(t *testing.T) {
	conf := agentconf.Default()
	conf.Cache = filepath.Join(t.TempDir(), "node.cache")
	r := newReload(conf, io.Discard)
	s := ipam.Settings{SNAT: true, Families: []eni.Family{eni.IPv4}, MarkMask: ipam.DefaultMarkMask, VPC: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}
	if err := r.refuseOutsideVPC(t.Context(), s); err != nil {
		t.Errorf("without a node cache nobody knows: %v", err)
	}
	cached := &ipam.State{Settings: s, ENIs: []eni.Interface{{ID: "eni-1", Device: "eth0", MTU: 1500,
		V4: eni.Net{Primary: netip.MustParsePrefix("10.0.0.5/24"), Gateway: netip.MustParseAddr("10.0.0.1")}}}}
	if err := (nodecache.Cache{Path: conf.Cache}).Replace(t.Context(), func(*ipam.State, error) (*ipam.State, error) { return cached, nil }); err != nil {
		t.Fatal(err)
	}
	if err := r.refuseOutsideVPC(t.Context(), s); err == nil || !strings.Contains(err.Error(), "does not hold 10.0.0.5") {
		t.Errorf("ranges of another VPC: %v", err)
	}
	s.VPC = append(s.VPC, netip.MustParsePrefix("10.0.0.0/16"))
	if err := r.refuseOutsideVPC(t.Context(), s); err != nil {
		t.Errorf("ranges of the VPC: %v", err)
	}
}
