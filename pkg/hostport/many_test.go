package hostport_test

import (
	"runtime"
	"testing"

	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/pkg/podrecord"
)

// allPorts asks for each port that there is.
func allPorts(r podrecord.Record) podrecord.Record {
	for _, t := range []netconf.Transport{netconf.TCP, netconf.UDP} {
		for p := 1; p <= 65535; p++ {
			r.Ports = append(r.Ports, netconf.HostPort{Transport: t, Port: uint16(p), PodPort: uint16(p)})
		}
	}
	return r
}

// The kernel is asked for many ports at once, and what leads elsewhere or nowhere is found
// among them.
func TestAPodHasAllPortsOfTheNode(t *testing.T) {
	n := newFiltered(t, ipam.Nftables)
	big := n.open(allPorts(network("big", "pods", at("10.0.0.5"))))
	check := func(want ...string) {
		t.Helper()
		lines, err := n.Check(big)
		if err != nil || len(lines) != len(want) {
			t.Fatalf("check: %d lines, %v; want %q", len(lines), err, want)
		}
		for i := range want {
			if lines[i] != want[i] {
				t.Errorf("check says %q, want %q", lines[i], want[i])
			}
		}
	}
	check()
	if _, err := n.Reserve(tcp(network("small", "pods", at("10.0.0.6")), 65535, 1)); err == nil {
		t.Error("the last port of the other pod is free")
	}
	six := n.open(tcp(network("six", "pods", at("fd00::6")), 80, 1))
	nettest.Run(t, "nft", "delete element inet "+netconf.NftPodsName+" hostport4 { tcp . 1, udp . 65535 }; "+
		"delete element inet "+netconf.NftPodsName+" hostport4 { tcp . 300 }; add element inet "+netconf.NftPodsName+" hostport4 { tcp . 300 : 10.0.0.9 . 300 }")
	check("nftables map hostport4 lacks tcp . 1 : 10.0.0.5 . 1", "nftables map hostport4 leads tcp . 300 elsewhere, want 10.0.0.5 . 300",
		"nftables map hostport4 lacks udp . 65535 : 10.0.0.5 . 65535")
	n.close(big)
	if got := n.leads(65534); got != "" {
		t.Errorf("left over: %s", got)
	}
	if got := n.leads(300); got != "10.0.0.9:300" {
		t.Errorf("another's port leads to %s", got)
	}
	// What leads to nobody is in the way of none of them.
	n.close(six)
	big = n.open(allPorts(network("big", "pods", at("10.0.0.5"))))
	n.must(nil, n.Records.Remove(big.Key))
	big = n.open(allPorts(network("next", "pods", at("10.0.0.7"))))
	check()
	n.close(big)
}

// The plugin collects no garbage: what each port costs it has until it ends.
func TestThousandsOfPortsAreClosedInLittleMemory(t *testing.T) {
	n := newFiltered(t, ipam.Nftables)
	big := n.open(tcp(network("big", "pods", at("10.0.0.5")), 10000, 3000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n.close(big)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 60 {
		t.Errorf("%d MB for 3000 ports", took)
	}
}
