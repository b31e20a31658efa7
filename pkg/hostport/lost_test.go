package hostport_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/hostport"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/podrecord"
)

func key(container string) eni.Key {
	return eni.Key{Network: "pods", Container: container, IfName: "eth0"}
}

func used(container string, addrs ...string) (list []eni.Address) {
	for _, a := range addrs {
		list = append(list, eni.Address{Addr: at(a), State: eni.Used, Owner: &eni.Owner{Key: key(container), Pod: container}})
	}
	return list
}

func TestWhatIsOpenForALivingPodWithoutARecordIsItsRecord(t *testing.T) {
	port := func(host string, number uint16) netconf.HostPort {
		p := netconf.HostPort{Transport: netconf.TCP, Port: number, PodPort: 80}
		if host != "" {
			p.Host = at(host)
		}
		return p
	}
	have := []netconf.PodPorts{
		{Pod: at("10.0.0.5"), Ports: []netconf.HostPort{port("0.0.0.0", 8080), port("0.0.0.0", 8081), port("10.0.0.1", 8082)}},
		{Pod: at("fd00::5"), Ports: []netconf.HostPort{port("::", 8080)}},
		{Pod: at("10.0.0.6"), Ports: []netconf.HostPort{port("0.0.0.0", 9090), port("0.0.0.0", 9091)}},
		{Pod: at("10.0.0.99"), Ports: []netconf.HostPort{port("0.0.0.0", 7070)}}, // nobody's address
	}
	limits := map[eni.Key]netconf.Limits{key("limited"): {Egress: netconf.Limit{Rate: 8e6, Burst: 8e6}}}
	living := append(used("a", "10.0.0.5", "fd00::5"), used("b", "10.0.0.6")...)
	living = append(append(living, used("limited", "10.0.0.7")...), used("plain", "10.0.0.8")...)
	pods := hostport.Pods(living, ipam.Nftables)
	whole := podrecord.Record{Key: key("c"), Addrs: []netip.Addr{at("10.0.0.9")}, Extras: netconf.Extras{Ports: []netconf.HostPort{port("", 9091)}}}

	var got []string
	for _, r := range hostport.Lost(pods, []podrecord.Record{whole}, have, limits) {
		got = append(got, fmt.Sprint(r.Pod, r.Addrs, r.Ports, r.Limits.Egress.Rate))
	}
	want := []string{"a[10.0.0.5 fd00::5] [tcp port 8080 tcp port 8081 of 0.0.0.0 tcp port 8082 of 10.0.0.1] 0",
		"b[10.0.0.6] [tcp port 9090] 0", // another's record has 9091
		"limited[10.0.0.7] [] 8000000"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	recorded := []podrecord.Record{{Key: key("a")}, {Key: key("b")}, {Key: key("limited")}}
	if lost := hostport.Lost(pods, recorded, have, limits); len(lost) > 0 {
		t.Errorf("pods with records: %v", lost)
	}
}

// Both packet filters tell what was opened, so that the rebuilt record is the lost one.
func TestOpenPortsAreReadBackFromTheKernel(t *testing.T) {
	each(t, func(n filtered) {
		pods := hostport.Pods(append(used("a", "10.0.0.20", "fd00::20"), used("b", "10.0.0.21", "fd00::21")...), n.Firewall)
		if have, err := hostport.Found(n.Firewall, pods); err != nil || len(have) > 0 {
			t.Errorf("without ports: %v, %v", have, err)
		}
		var want []podrecord.Record
		for i, container := range []string{"a", "b"} {
			r := podrecord.Record{Key: key(container), Pod: container, Firewall: n.Firewall,
				Addrs: []netip.Addr{at(fmt.Sprintf("10.0.0.2%d", i)), at(fmt.Sprintf("fd00::2%d", i))}}
			for p := range uint16(300) {
				port := netconf.HostPort{Transport: netconf.TCP, Port: uint16(1000*(i+1)) + p, PodPort: 80}
				switch p {
				case 1:
					port.Host, port.Transport = at("10.0.0.10"), netconf.UDP
				case 2:
					port.Host, port.Transport = at("fd00::10"), netconf.SCTP
				}
				r.Ports = append(r.Ports, port)
			}
			want = append(want, n.open(r))
		}
		have, err := hostport.Found(n.Firewall, pods)
		if err != nil {
			t.Fatal(err)
		}
		got := hostport.Lost(pods, nil, have, nil)
		if len(got) != len(want) {
			t.Fatalf("found %v", got)
		}
		for i := range want {
			w, g := want[i], got[i]
			if fmt.Sprint(w.Key, w.Addrs, netconf.PortsOf(w.Addrs, hostport.Ports(w))) != fmt.Sprint(g.Key, g.Addrs, netconf.PortsOf(g.Addrs, hostport.Ports(g))) || len(w.Ports) != len(g.Ports) {
				t.Errorf("opened %v\nfound %v", w, g)
			}
		}
	})
}
