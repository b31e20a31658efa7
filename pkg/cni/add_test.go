package cni

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
)

// words strips what differs between machines from the output of ip(8).
func words(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func TestAddGivesThePodItsAddressAndTheNodeARoute(t *testing.T) {
	l := newLab(t, ipam.Settings{})
	ns := nettest.NewNetns(t, "a")
	res := l.mustAdd("a", ns.Path, plain)
	dev := hostDev("a")
	hostMAC, podMAC := res.Interfaces[0].Mac, res.Interfaces[1].Mac

	want := "default via 169.254.1.1 dev eth0 proto 69\n169.254.1.1 dev eth0 proto 69 scope link"
	if diff := cmp.Diff(want, words(ns.Run(t, "ip", "route"))); diff != "" {
		t.Errorf("pod routes (-want +got):\n%s", diff)
	}
	want = "169.254.1.1 lladdr " + hostMAC + " PERMANENT"
	if diff := cmp.Diff(want, words(ns.Run(t, "ip", "neigh", "show", "dev", "eth0"))); diff != "" {
		t.Errorf("pod neighbours (-want +got):\n%s", diff)
	}
	if got := ns.Run(t, "ip", "-o", "addr", "show", "dev", "eth0"); !strings.Contains(got, "inet 10.0.0.11/32 scope global eth0") {
		t.Errorf("pod addresses:\n%s", got)
	}
	link := words(ns.Run(t, "ip", "link", "show", "dev", "eth0"))
	if !strings.Contains(link, "mtu 9001") || !strings.Contains(link, podMAC) || !strings.Contains(link, "LOWER_UP") {
		t.Errorf("pod link:\n%s", link)
	}
	if got, want := words(nettest.Run(t, "ip", "route", "show", "table", "100", "dev", dev)), "10.0.0.11 proto 70 scope link"; got != want {
		t.Errorf("node route %q, want %q", got, want)
	}
	if got, want := words(nettest.Run(t, "ip", "neigh", "show", "dev", dev)), "10.0.0.11 lladdr "+podMAC+" PERMANENT"; got != want {
		t.Errorf("node neighbour %q, want %q", got, want)
	}
	if got := nettest.Run(t, "ip", "link", "show", "dev", dev); !strings.Contains(got, "alias default/a pods/a/eth0") {
		t.Errorf("node link has no alias:\n%s", got)
	}
	if got := strings.TrimSpace(nettest.Run(t, "cat", "/proc/sys/net/ipv4/conf/"+dev+"/rp_filter")); got != "1" {
		t.Errorf("rp_filter of the pod's link is %s, want 1: it could send with foreign addresses", got)
	}
	if err := l.check("a", ns.Path, plain, res); err != nil {
		t.Errorf("check right after add: %v", err)
	}
	l.mustDel("a", ns.Path, plain)
	if got, want := l.takenAddresses(), "10.0.0.11 cooling"; got != want {
		t.Errorf("node state %q, want %q", got, want)
	}
}

func TestDualStackPodsGetBothAddressesOfOneENI(t *testing.T) {
	for _, routing := range []ipam.Settings{
		{Families: []eni.Family{eni.IPv4, eni.IPv6}},
		{Families: []eni.Family{eni.IPv4, eni.IPv6}, Routing: ipam.Rule},
	} {
		t.Run("routing "+routing.Routing.String(), func(t *testing.T) {
			l := newLab(t, routing)
			var last string
			for _, id := range []string{"a", "b", "c"} {
				ns := nettest.NewNetns(t, id)
				res := l.mustAdd(id, ns.Path, plain)
				if err := l.check(id, ns.Path, plain, res); err != nil {
					t.Errorf("check %s: %v", id, err)
				}
				last = ns.Run(t, "ip", "-6", "route", "show", "default") + ns.Run(t, "ip", "-o", "-6", "addr", "show", "dev", "eth0", "scope", "global")
			}
			if !strings.Contains(last, "default via fe80::1 dev eth0 proto 69") || !strings.Contains(last, "2001:db8::21/128") || strings.Contains(last, "tentative") {
				t.Errorf("IPv6 in the pod:\n%s", last)
			}
			want := "10.0.0.11 used a\n10.0.0.12 used b\n2001:db8::11 used a\n2001:db8::12 used b\n10.0.0.21 used c\n2001:db8::21 used c"
			if diff := cmp.Diff(want, l.takenAddresses()); diff != "" {
				t.Errorf("node state (-want +got):\n%s", diff)
			}
			rules := words(nettest.Run(t, "ip", "rule", "show", "priority", "1538") + nettest.Run(t, "ip", "-6", "rule", "show", "priority", "1538"))
			wantRules := ""
			if routing.Routing == ipam.Rule {
				wantRules = "1538: from 10.0.0.21 lookup 101 proto 69\n1538: from 2001:db8::21 lookup 101 proto 69"
			}
			if diff := cmp.Diff(wantRules, rules); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			for _, id := range []string{"a", "b", "c"} {
				l.mustDel(id, "", plain)
			}
		})
	}
}
