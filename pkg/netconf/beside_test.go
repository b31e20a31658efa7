package netconf

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

func TestWhatAPodHoldsForAnInterfaceBesideAnother(t *testing.T) {
	p := NewPod(settings(nil), ipam.Lease{Interface: nic(1, true, true), Addresses: used(1, "10.0.1.21", "2001:db8:0:1::21")}, 0)
	var got strings.Builder
	for _, a := range p.Addrs {
		routes, rule := p.Beside(a, 3)
		writeLines(&got, "pod route ", routes)
		writeLines(&got, "pod rule ", []Rule{rule})
	}
	want := text(`
		pod route 169.254.1.1 dev eth0 proto 69 scope link metric 3
		pod route default via 169.254.1.1 dev eth0 proto 69 metric 3
		pod route default via 169.254.1.1 dev eth0 table 69003 proto 69
		pod rule 1538: from 10.0.1.21 lookup 69003 proto 69
		pod route default via fe80::1 dev eth0 proto 69 metric 1027
		pod route default via fe80::1 dev eth0 table 69003 proto 69
		pod rule 1538: from 2001:db8:0:1::21 lookup 69003 proto 69`)
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}
