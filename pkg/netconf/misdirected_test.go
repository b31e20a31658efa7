package netconf

import (
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

func TestFlowsThatTheVPCDropsSinceItsPrefixesChangedAreTold(t *testing.T) {
	addr := netip.MustParseAddr
	first, pod, node, second := addr("10.0.0.11"), addr("10.0.0.21"), addr("10.0.0.10"), addr("10.0.0.20")
	in, out, behind, neighbour := addr("10.0.9.9"), addr("198.51.100.1"), addr("10.0.99.9"), addr("10.0.0.22")
	on := &ipam.State{Settings: ipam.Settings{SNAT: true, VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}},
		ENIs: []eni.Interface{{Index: 0, Device: "eth0", V4: eni.Net{Primary: netip.PrefixFrom(node, 24)}},
			{Index: 1, Device: "eth1", V4: eni.Net{Primary: netip.PrefixFrom(second, 24)}}},
		Addresses: []eni.Address{{Addr: first}, {Addr: pod, ENI: 1}, {Addr: neighbour, ENI: 1}, {Addr: addr("10.0.0.23"), ENI: 1, State: eni.Held}}}
	off := on.Clone()
	off.Settings.SNAT = false
	exits := map[netip.Addr]string{in: "eth1", out: "eth0", behind: "tun0", neighbour: "enicafe"}
	exit := func(_, to netip.Addr) string { return exits[to] }
	flow := func(from, to, back netip.Addr) Flow {
		return Flow{From: from, To: to, Target: to, Back: back, Answered: true}
	}
	toService := flow(pod, addr("172.20.0.1"), node)
	toService.Target = in
	for name, c := range map[string]struct {
		state *ipam.State
		flow  Flow
		want  bool
	}{
		"into the VPC, translated":                  {on, flow(pod, in, node), true},
		"into the VPC by a service, translated":     {on, toService, true},
		"into the VPC":                              {on, flow(pod, in, pod), false},
		"into the VPC, translated by others":        {on, flow(pod, in, second), false},
		"into the VPC by a tunnel, translated":      {on, flow(pod, behind, node), false},
		"to a pod of the node, translated":          {on, flow(pod, neighbour, node), false},
		"out of the VPC":                            {on, flow(pod, out, pod), true},
		"out of the VPC, translated":                {on, flow(pod, out, node), false},
		"of the primary ENI, into, translated":      {on, flow(first, in, node), false},
		"of the primary ENI, out":                   {on, flow(first, out, first), false},
		"of an address that others hold":            {on, flow(addr("10.0.0.23"), out, addr("10.0.0.23")), false},
		"from outside to the pod":                   {on, flow(out, pod, out), false},
		"not decoded":                               {on, Flow{}, false},
		"out of the VPC, translated, SNAT went off": {off, flow(pod, out, node), true},
		"out of the VPC, SNAT is off":               {off, flow(pod, out, pod), false},
	} {
		if got := Misdirected(c.state, exit)(c.flow); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
