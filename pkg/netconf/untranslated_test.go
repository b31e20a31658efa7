package netconf

import (
	"net/netip"
	"testing"
)

func TestFlowsThatBeganWithoutTheirTranslationAreTold(t *testing.T) {
	addr := netip.MustParseAddr
	node, pod, other, far := addr("10.0.0.10"), addr("10.0.0.21"), addr("10.0.9.9"), addr("198.51.100.1")
	on := Firewall{SNAT: node, Pool: []netip.Addr{addr("10.0.0.11"), pod}, VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}}
	off := on
	off.SNAT = netip.Addr{}
	for name, c := range map[string]struct {
		f    Firewall
		flow Flow
		want bool
	}{
		"out of the VPC":                     {on, Flow{From: pod, Target: far, Back: pod}, true},
		"translated":                         {on, Flow{From: pod, Target: far, Back: node}, false},
		"answered":                           {on, Flow{From: pod, Target: far, Back: pod, Answered: true}, false},
		"within the VPC, by a service's too": {on, Flow{From: pod, Target: other, Back: pod}, false},
		"into the VPC":                       {on, Flow{From: far, Target: pod, Back: far}, false},
		"the node's own":                     {on, Flow{From: node, Target: far, Back: node}, false},
		"SNAT is off":                        {off, Flow{From: pod, Target: far, Back: pod}, false},
		"not decoded":                        {on, Flow{}, false},
	} {
		if got := c.f.LacksSNAT(c.flow); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
