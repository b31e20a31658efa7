package netconf

import (
	"net/netip"
	"testing"
)

func TestFlowsThatBeganWithoutTheirTranslationAreTold(t *testing.T) {
	addr := netip.MustParseAddr
	node, second, pod, other, far := addr("10.0.0.10"), addr("10.0.0.20"), addr("10.0.0.21"), addr("10.0.9.9"), addr("198.51.100.1")
	node6, far6 := addr("2001:db8::10"), addr("2001:db8:9::1")
	off := Firewall{Ports: []PodPorts{
		{Pod: pod, Ports: []HostPort{{UDP, netip.Addr{}, 8080, 80}, {TCP, netip.Addr{}, 9090, 90}, {UDP, second, 53, 53}}},
		{Pod: addr("2001:db8::21"), Ports: []HostPort{{UDP, node6, 6060, 60}}},
	}}
	on := off
	on.SNAT, on.OutDevice, on.Pool, on.VPC = node, "eth0", []netip.Addr{addr("10.0.0.11"), pod}, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
	toPort := func(to netip.Addr, transport Transport, port uint16) Flow {
		from := far
		if to.Is6() {
			from = far6
		}
		return Flow{From: from, To: to, Transport: transport, Port: port, Target: to, Back: from}
	}
	led, answered, leaves := toPort(node, UDP, 8080), toPort(node, UDP, 8080), toPort(far, UDP, 8080)
	led.Target, answered.Answered = pod, true
	leaves.From, leaves.Back = other, other
	self, selfService, selfReturns, loop, loopReturns := led, led, led, led, led
	self.From, self.Back = pod, pod
	selfService.From, selfService.To, selfService.Back = pod, addr("10.96.0.50"), pod
	selfReturns.From = pod
	selfReturns.Back, loopReturns.Back = node, node
	loop.From, loop.To, loop.Back = addr("127.0.0.1"), addr("127.0.0.1"), addr("127.0.0.1")
	loopReturns.From, loopReturns.To = loop.From, loop.To
	selfAnswered, loopElsewhere := self, loop
	selfAnswered.Answered, loopElsewhere.Target = true, other
	self6 := Flow{From: addr("2001:db8::21"), To: node6, Transport: UDP, Port: 6060, Target: addr("2001:db8::21"), Back: addr("2001:db8::21")}
	behind, service := addr("192.168.0.9"), addr("10.96.0.50")
	exit := func(from, to netip.Addr) string {
		if to == behind {
			return "tun0"
		}
		return "eth0"
	}
	for name, c := range map[string]struct {
		f    Firewall
		flow Flow
		want bool
	}{
		"out of the VPC":                     {on, Flow{From: pod, To: far, Target: far, Back: pod}, true},
		"by a tunnel":                        {on, Flow{From: pod, To: behind, Target: behind, Back: pod}, false},
		"to a service behind a tunnel":       {on, Flow{From: pod, To: service, Target: behind, Back: pod}, false},
		"to a service out of the VPC":        {on, Flow{From: pod, To: service, Target: far, Back: pod}, true},
		"translated":                         {on, Flow{From: pod, To: far, Target: far, Back: node}, false},
		"answered":                           {on, Flow{From: pod, To: far, Target: far, Back: pod, Answered: true}, false},
		"within the VPC, by a service's too": {on, Flow{From: pod, To: far, Target: other, Back: pod}, false},
		"into the VPC":                       {on, Flow{From: far, To: pod, Target: pod, Back: far}, false},
		"the node's own":                     {on, Flow{From: node, To: far, Target: far, Back: node}, false},
		"SNAT is off":                        {off, Flow{From: pod, To: far, Target: far, Back: pod}, false},
		"not decoded":                        {on, Flow{}, false},

		"to a host port":                           {on, toPort(node, UDP, 8080), true},
		"to a host port, SNAT is off":              {off, toPort(node, UDP, 8080), true},
		"to a host port, by the second ENI":        {off, toPort(second, UDP, 8080), true},
		"to a host port, by the loopback":          {off, toPort(addr("127.0.0.5"), UDP, 8080), true},
		"to a host port of TCP":                    {off, toPort(node, TCP, 9090), true},
		"to a host port of one address":            {off, toPort(second, UDP, 53), true},
		"to a host port of one address, IPv6":      {off, toPort(node6, UDP, 6060), true},
		"to another address than the host port is": {off, toPort(node, UDP, 53), false},
		"to a host port, led to a pod":             {off, led, false},
		"to a host port, answered":                 {off, answered, false},
		"to another port":                          {off, toPort(node, UDP, 8081), false},
		"to a host port's number by TCP":           {off, toPort(node, TCP, 8080), false},
		"to a host port's number by IPv6":          {off, toPort(node6, UDP, 8080), false},
		"to a host port's number elsewhere":        {off, leaves, false},

		"a pod's to its own host port":                          {off, self, true},
		"a pod's to its own host port, IPv6":                    {off, self6, true},
		"a pod's to itself by a service":                        {off, selfService, true},
		"a pod's to its own host port, with the node's address": {off, selfReturns, false},
		"a pod's to its own host port, answered":                {off, selfAnswered, false},
		"the node's to a host port by the loopback":             {off, loop, true},
		"the same with the node's address":                      {off, loopReturns, false},
		"the node's by the loopback to others' pods":            {off, loopElsewhere, false},
	} {
		if got := c.f.Untranslated([]netip.Addr{node, second, node6}, exit)(c.flow); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
