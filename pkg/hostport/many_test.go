package hostport_test

import (
	"runtime"
	"testing"

	"github.com/enipool/enipool/pkg/host/nfset"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
	"golang.org/x/sys/unix"
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
	// nft would read the whole map for each of these.
	table := nfset.Table{Family: unix.NFPROTO_INET, Name: netconf.NftPodsName}
	leads := func(t netconf.Transport, port uint16) nfset.Element {
		p := netconf.PodPorts{Pod: at("10.0.0.9"), Ports: []netconf.HostPort{{Transport: t, Port: port, PodPort: port}}}
		m := p.Members()[1].Element
		return nfset.Element{Key: m.Key.(netconf.NftPort).Bytes(), Value: m.Value.(netconf.NftPodPort).Bytes()}
	}
	of9, first, last := leads(netconf.TCP, 300), leads(netconf.TCP, 1), leads(netconf.UDP, 65535)
	n.must(nil, table.Commit(nfset.Change{Op: nfset.Delete, Set: "hostport4", Element: first}, nfset.Change{Op: nfset.Delete, Set: "hostport4", Element: last},
		nfset.Change{Op: nfset.Delete, Set: "hostport4", Element: of9}, nfset.Change{Op: nfset.AddNew, Set: "hostport4", Element: of9}))
	check("nftables map hostport4 lacks tcp . 1 : 10.0.0.5 . 1", "nftables map hostport4 leads tcp . 300 elsewhere, want 10.0.0.5 . 300",
		"nftables map hostport4 lacks udp . 65535 : 10.0.0.5 . 65535")
	n.close(big)
	left, err := table.List("hostport4")
	if err != nil || len(left) != 1 || !left[0].Equal(of9) {
		t.Errorf("left of the map are %d elements, %v; want another's one", len(left), err)
	}
}

// The plugin collects no garbage: what each port costs it has until it ends.
func TestThousandsOfPortsAreClosedInLittleMemory(t *testing.T) {
	n := newFiltered(t, ipam.Nftables)
	big := n.open(tcp(network("big", "pods", at("10.0.0.5")), 10000, 3000))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n.close(big)
	runtime.ReadMemStats(&after)
	if got := n.leads(10000) + n.leads(12999); got != "" {
		t.Errorf("left over: %s", got)
	}
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 60 {
		t.Errorf("%d MB for 3000 ports", took)
	}
}

// What leads to nobody is found in the way of many ports, and replaced.
func TestThousandsOfPortsReplaceWhatLeadsToNobody(t *testing.T) {
	n := newFiltered(t, ipam.Nftables)
	old := n.open(tcp(network("old", "pods", at("10.0.0.5")), 10000, 3000))
	n.must(nil, n.Records.Remove(old.Key))
	pod := n.open(tcp(network("new", "pods", at("10.0.0.7")), 11000, 3000))
	if lines, err := n.Check(pod); err != nil || len(lines) > 0 {
		t.Errorf("check: %d lines, %v", len(lines), err)
	}
	if a, b := n.leads(11000), n.leads(13999); a != "10.0.0.7:80" || a != b {
		t.Errorf("the first port leads to %s, the last to %s", a, b)
	}
}
