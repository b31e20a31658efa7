package host

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

// Others may have filters for what comes in by a pod's link, made before or after ours.
func TestAnEgressLimitAndFiltersOfOthersOnTheSameLink(t *testing.T) {
	nettest.Need(t)
	key := eni.Key{Network: "pods", Container: "filtered", IfName: "eth0"}
	l := Limit{HostDev: netconf.HostDevice(key), Dev: netconf.LimitDevice(key),
		Limits: netconf.Limits{Ingress: netconf.Limit{Rate: 8e6, Burst: 800000}, Egress: netconf.Limit{Rate: 8e6, Burst: 800000}}}
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	sh := func(command string) string {
		return nettest.Run(t, "sh", "-c", strings.NewReplacer("LINK", l.HostDev, "WAIT", l.Dev).Replace(command))
	}
	const (
		nobody = ""
		all    = "tc filter add dev LINK ingress pref 1 protocol all u32 match u32 7 7 flowid 7:7"
		ipv4   = "tc filter add dev LINK ingress pref 1 protocol ip u32 match u32 7 7 flowid 7:7"
		free   = "tc filter add dev LINK ingress protocol ip u32 match u32 7 7 flowid 7:7" // the kernel chooses the priority
		leads  = "tc filter add dev LINK ingress pref 1 protocol all u32 match u32 7 7 flowid 7:7 action mirred egress redirect dev lo"
		both   = "; tc filter add dev LINK egress pref 2 protocol ip u32 match u32 7 7 flowid 7:7"
	)
	for name, c := range map[string]struct{ before, after string }{
		"ingress before":                 {"tc qdisc add dev LINK ingress", nobody},
		"clsact before, filters after":   {"tc qdisc add dev LINK clsact", ipv4 + both},
		"filters before":                 {"tc qdisc add dev LINK clsact;" + ipv4 + both, nobody},
		"a filter of our kind before":    {"tc qdisc add dev LINK ingress;" + all, nobody},
		"a filter that redirects before": {"tc qdisc add dev LINK clsact;" + leads, nobody},
		"filters after":                  {nobody, "tc qdisc replace dev LINK clsact;" + ipv4 + both},
		"a filter of any priority after": {nobody, free},
	} {
		theirs := strings.Count(c.before+c.after, "tc filter")
		isWhole := func(when string) {
			t.Helper()
			if lines, err := h.CheckLimits(l); err != nil || len(lines) > 0 {
				t.Errorf("%s, %s: check: %q, %v", name, when, lines, err)
			}
			filters := sh("tc filter show dev LINK ingress; if tc qdisc show dev LINK | grep -q clsact; then tc filter show dev LINK egress; fi")
			at, last := strings.Index(filters, "Egress Redirect to device "+l.Dev), strings.LastIndex(filters, "flowid 7:7")
			if n := strings.Count(filters, "flowid 7:7"); n != theirs {
				t.Errorf("%s, %s: %d filters of others, were %d:\n%s", name, when, n, theirs, filters)
			}
			if n := strings.Count(filters, "flowid 1:1"); n != 1 || at < 0 || theirs == 1 && last > at {
				t.Errorf("%s, %s: ours is not there once, after the others:\n%s", name, when, filters)
			}
		}
		sh("ip link add LINK up address " + netconf.HostMAC(key).String() + " type veth peer name inside")
		sh(c.before)
		if err := h.SetLimits(l); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sh(c.after)
		isWhole("set")
		for _, damage := range []string{"ip link del WAIT", "tc filter del dev LINK ingress pref 65349"} {
			sh(damage)
			lines, err := h.RestoreLimits(l)
			if err != nil || len(lines) == 0 {
				t.Errorf("%s: restored after %s: %q, %v", name, damage, lines, err)
			}
			isWhole("restored after " + damage)
		}
		if err := h.DelPod(key, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The filter that an earlier release made has priority 1, in a queue of the kind ingress.
func TestTheFilterOfAnEarlierReleaseIsPutBackToo(t *testing.T) {
	nettest.Need(t)
	key := eni.Key{Network: "pods", Container: "earlier", IfName: "eth0"}
	l := Limit{HostDev: netconf.HostDevice(key), Dev: netconf.LimitDevice(key), Limits: netconf.Limits{Egress: netconf.Limit{Rate: 8e6, Burst: 800000}}}
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	sh := func(command string) string {
		return nettest.Run(t, "sh", "-c", strings.NewReplacer("LINK", l.HostDev, "WAIT", l.Dev).Replace(command))
	}
	sh("ip link add LINK up address " + netconf.HostMAC(key).String() + " type veth peer name inside")
	if err := h.SetLimits(l); err != nil {
		t.Fatal(err)
	}
	sh(`tc qdisc del dev LINK clsact; tc qdisc add dev LINK ingress
		tc filter add dev LINK ingress pref 1 protocol all u32 match u32 0 0 flowid 1:1 action mirred egress redirect dev WAIT`)
	if lines, err := h.RestoreLimits(l); err != nil || len(lines) > 0 {
		t.Errorf("the earlier release's is not good enough: %q, %v", lines, err)
	}
	sh("ip link del WAIT")
	if lines, err := h.RestoreLimits(l); err != nil || len(lines) == 0 {
		t.Errorf("restored: %q, %v", lines, err)
	}
	if filters := sh("tc filter show dev LINK ingress"); strings.Count(filters, "flowid 1:1") != 1 || !strings.Contains(filters, "device "+l.Dev) {
		t.Errorf("the filters are\n%s", filters)
	}
	if err := h.DelPod(key, nil); err != nil {
		t.Error(err)
	}
}
