package host

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

func TestLimitsAreTokenBucketsOnBothWays(t *testing.T) {
	nettest.Need(t)
	key := eni.Key{Network: "pods", Container: "limited", IfName: "eth0"}
	l := Limit{HostDev: netconf.HostDevice(key), Dev: netconf.LimitDevice(key), Alias: netconf.Alias(eni.Owner{Key: key, Pod: "web"}),
		Limits: netconf.Limits{Ingress: netconf.Limit{Rate: 8e6, Burst: 800000}, Egress: netconf.Limit{Rate: 80e9, Burst: 34359738351}}}
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	nettest.Run(t, "ip", "link", "add", l.HostDev, "mtu", "9001", "up", "type", "veth", "peer", "name", "inside")
	if err := h.SetLimits(l); err != nil {
		t.Fatal(err)
	}
	for dev, want := range map[string][]string{
		l.HostDev: {"qdisc tbf 454e: root", "rate 8Mbit burst 100000b lat 25ms", "qdisc clsact ffff:"},
		l.Dev:     {"qdisc tbf 454e: root", "rate 80Gbit burst 42949"},
	} {
		have := nettest.Run(t, "tc", "qdisc", "show", "dev", dev)
		for _, w := range want {
			if !strings.Contains(have, w) {
				t.Errorf("%s lacks %q:\n%s", dev, w, have)
			}
		}
	}
	if have := nettest.Run(t, "tc", "filter", "show", "dev", l.HostDev, "ingress"); !strings.Contains(have, "Egress Redirect to device "+l.Dev) {
		t.Errorf("what comes in is not led on:\n%s", have)
	}
	if have := nettest.Run(t, "ip", "-d", "link", "show", l.Dev); !strings.Contains(have, "mtu 9001") || !strings.Contains(have, "alias web pods/limited/eth0") || !strings.Contains(have, "UP") {
		t.Errorf("the link of the egress limit:\n%s", have)
	}
	if lines, err := h.CheckLimits(l); err != nil || len(lines) > 0 {
		t.Errorf("check: %q, %v", lines, err)
	}
	keys, err := h.LimitKeys()
	if err != nil || len(keys) != 1 || keys[0] != key {
		t.Errorf("keys %v, %v", keys, err)
	}
	isWhole := func(after string) {
		t.Helper()
		if lines, err := h.RestoreLimits(l); err != nil || len(lines) > 0 {
			t.Errorf("after %s: %q, %v", after, lines, err)
		}
		if have := nettest.Run(t, "tc", "filter", "show", "dev", l.HostDev, "ingress"); strings.Count(have, "Egress Redirect to device "+l.Dev) != 1 {
			t.Errorf("after %s: what comes in is not led on once:\n%s", after, have)
		}
	}
	isWhole("the limits were set")
	noIngress := "tc qdisc del dev " + l.HostDev + " ingress 2>/dev/null || tc qdisc del dev " + l.HostDev + " clsact"
	for damage, want := range map[string]string{
		"tc qdisc change dev " + l.Dev + " root tbf rate 1gbit burst 100kb latency 25ms":           "link " + l.Dev + " lacks tbf rate 10000000000 bytes/s",
		"tc filter del dev " + l.HostDev + " ingress":                                              "what comes in by " + l.HostDev + " is not led to " + l.Dev,
		"tc qdisc del dev " + l.Dev + " root":                                                      "link " + l.Dev + " lacks tbf rate 10000000000 bytes/s",
		"tc qdisc del dev " + l.Dev + " root; tc qdisc add dev " + l.Dev + " root handle 1: pfifo": "link " + l.Dev + " lacks tbf rate 10000000000 bytes/s",
		"tc qdisc replace dev " + l.HostDev + " root handle 7: pfifo":                              "link " + l.HostDev + " lacks tbf rate 1000000 bytes/s",
		noIngress: "what comes in by " + l.HostDev + " is not led to " + l.Dev,
		noIngress + "; tc qdisc add dev " + l.HostDev + " clsact": "what comes in by " + l.HostDev + " is not led to " + l.Dev,
		"ip link del " + l.Dev: "link " + l.Dev + " is missing: tbf rate 10000000000 bytes/s",
		"tc filter del dev " + l.HostDev + " ingress; tc filter add dev " + l.HostDev + " ingress protocol all pref 1 u32 match u32 0 0 action mirred egress redirect dev lo": "is not led to",
		"tc qdisc del dev " + l.HostDev + " root": "link " + l.HostDev + " lacks tbf rate 1000000 bytes/s",
	} {
		nettest.Run(t, "sh", "-c", damage)
		lines, err := h.CheckLimits(l)
		if err != nil || len(lines) != 1 || !strings.Contains(lines[0], want) {
			t.Errorf("after %s: %q, %v; want %q", damage, lines, err, want)
		}
		if lines, err = h.RestoreLimits(l); err != nil || len(lines) != 1 || !strings.Contains(lines[0], want) {
			t.Errorf("restored after %s: %q, %v; want %q", damage, lines, err, want)
		}
		isWhole(damage)
	}
	for range 2 {
		if err := h.ClearLimits(l.Dev); err != nil {
			t.Fatal(err)
		}
	}
	if links := nettest.Run(t, "ip", "-br", "link"); strings.Contains(links, l.Dev) || !strings.Contains(links, l.HostDev) {
		t.Errorf("after the limits were cleared:\n%s", links)
	}
	nettest.Run(t, "ip", "link", "del", l.HostDev)
	if lines, err := h.RestoreLimits(l); err != nil || len(lines) > 0 {
		t.Errorf("restored without the links: %q, %v", lines, err)
	}
	lines, err := h.CheckLimits(l)
	if err != nil || len(lines) != 2 {
		t.Errorf("without the links: %q, %v", lines, err)
	}
}

// A DEL that was killed after it removed the pod's record knows of the limit by its name.
func TestAPodsLinkTakesTheLimitsLinkWithIt(t *testing.T) {
	nettest.Need(t)
	key := eni.Key{Network: "pods", Container: "limited", IfName: "eth0"}
	host, wait := netconf.HostDevice(key), netconf.LimitDevice(key)
	limits := netconf.Limits{Egress: netconf.Limit{Rate: 8e6, Burst: 800000}}
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	for name, before := range map[string]func(){
		"both are there":         func() {},
		"the sandbox is gone":    func() { nettest.Run(t, "ip", "link", "del", host) },
		"the limit is half made": func() { nettest.Run(t, "ip", "link", "set", host, "group", "0") },
		"the limit's link is alone": func() {
			nettest.Run(t, "ip", "link", "del", host)
			nettest.Run(t, "ip", "link", "set", wait, "group", "0")
		},
	} {
		nettest.Run(t, "ip", "link", "add", host, "address", netconf.HostMAC(key).String(), "up", "type", "veth", "peer", "name", "inside")
		if err := h.SetLimits(Limit{HostDev: host, Dev: wait, Limits: limits}); err != nil {
			t.Fatal(err)
		}
		before()
		for range 2 {
			if err := h.DelPod(key, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if links := nettest.Run(t, "ip", "-br", "link"); strings.Contains(links, host) || strings.Contains(links, wait) {
			t.Errorf("%s: left over:\n%s", name, links)
		}
	}
}

// systemd-networkd and others give links groups as they like.
func TestDELSparesLinksOfOthersInTheSameGroup(t *testing.T) {
	nettest.Need(t)
	key := eni.Key{Network: "pods", Container: "grouped", IfName: "eth0"}
	host, wait := netconf.HostDevice(key), netconf.LimitDevice(key)
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	group := func(links ...string) func(group string) {
		return func(group string) {
			for _, l := range links {
				nettest.Run(t, "ip", "link", "set", l, "group", group)
			}
		}
	}
	for name, c := range map[string]struct {
		limited bool
		join    func(group string) // others' link joins our group, or ours theirs
	}{
		"a pod without limits":                   {false, group(host, "other")},
		"a pod with a limit, both of its links":  {true, group(host, wait, "other")},
		"a pod with a limit, its link":           {true, group(host, "other")},
		"a pod with a limit, the limit's link":   {true, group(wait, "other")},
		"a pod with a limit, by the limit's own": {true, group("other")},
	} {
		for _, number := range []string{"0", "7", "2147483647", "1879048192", "ours"} {
			nettest.Run(t, "ip", "link", "add", "other", "type", "ifb")
			nettest.Run(t, "ip", "link", "add", host, "address", netconf.HostMAC(key).String(), "up", "type", "veth", "peer", "name", "inside")
			if c.limited {
				if err := h.SetLimits(Limit{HostDev: host, Dev: wait, Limits: netconf.Limits{Egress: netconf.Limit{Rate: 8e6, Burst: 800000}}}); err != nil {
					t.Fatal(err)
				}
			}
			if number == "ours" {
				link, err := h.findLink(host)
				if err != nil {
					t.Fatal(err)
				}
				number = fmt.Sprint(limitGroup(link.index))
			}
			c.join(number)
			if err := h.DelPod(key, nil); err != nil {
				t.Errorf("%s, group %s: %v", name, number, err)
			}
			if links := nettest.Run(t, "ip", "-br", "link"); strings.Contains(links, host) || strings.Contains(links, wait) || !strings.Contains(links, "other") {
				t.Errorf("%s, group %s: left over:\n%s", name, number, links)
			}
			_ = exec.Command("ip", "link", "del", "other").Run()
		}
	}
}

func TestALinkOfSomebodyElsesIsNotRemoved(t *testing.T) {
	nettest.Need(t)
	dev := netconf.LimitDevice(eni.Key{Network: "pods"})
	nettest.Run(t, "ip", "link", "add", dev, "type", "veth", "peer", "name", "other")
	defer nettest.Run(t, "ip", "link", "del", dev)
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.ClearLimits(dev); err == nil || !strings.Contains(err.Error(), "somebody else's") {
		t.Errorf("error %v", err)
	}
}
