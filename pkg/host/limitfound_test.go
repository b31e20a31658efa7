package host

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
)

// Who else limits a pod does so by the same kind of queue on the same link. What enipool
// takes for its own comes back when somebody removes it.
func TestOnlyLimitsOfOursAreFound(t *testing.T) {
	nettest.Need(t)
	key := eni.Key{Network: "pods", Container: "found", IfName: "eth0"}
	dev, wait := netconf.HostDevice(key), netconf.LimitDevice(key)
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	in, out := netconf.Limit{Rate: 8e6, Burst: 800000}, netconf.Limit{Rate: 16e6, Burst: 1600000}
	const theirs = "tc qdisc replace dev DEV root HANDLE tbf rate 10mbit burst 32kb latency 25ms"
	set := func(handle string) string { return strings.ReplaceAll(theirs, "HANDLE", handle) }
	// What an earlier release made.
	former := "tc qdisc replace dev DEV root handle 1: tbf rate 8mbit burst 100000 latency 25ms"
	for _, tt := range []struct {
		name   string
		ours   netconf.Limits
		script string
		want   netconf.Limits
	}{
		{"both ways", netconf.Limits{Ingress: in, Egress: out}, "true", netconf.Limits{Ingress: in, Egress: out}},
		{"what the pod receives", netconf.Limits{Ingress: in}, "true", netconf.Limits{Ingress: in}},
		{"what the pod sends", netconf.Limits{Egress: out}, "true", netconf.Limits{Egress: out}},
		{"none", netconf.Limits{}, "true", netconf.Limits{}},
		{"a person's", netconf.Limits{}, set(""), netconf.Limits{}},
		{"a person's beside ours", netconf.Limits{Egress: out}, set(""), netconf.Limits{Egress: out}},
		{"the bandwidth plugin's", netconf.Limits{}, set("handle 1:"), netconf.Limits{}},
		{"the bandwidth plugin's both ways", netconf.Limits{}, set("handle 1:") + `; ip link add bwp0 type ifb; tc qdisc add dev bwp0 root handle 1: tbf rate 10mbit burst 32kb latency 25ms
			tc qdisc add dev DEV ingress; tc filter add dev DEV parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev bwp0`, netconf.Limits{}},
		{"an earlier release's both ways", netconf.Limits{Ingress: in, Egress: out}, "tc qdisc del dev DEV root; " + former + "; tc qdisc del dev WAIT root; tc qdisc add dev WAIT root handle 1: tbf rate 16mbit burst 200000 latency 25ms",
			netconf.Limits{Ingress: in, Egress: out}},
		{"an earlier release's that stands alone", netconf.Limits{}, former, netconf.Limits{}},
		{"ours that the pod's own filters are beside", netconf.Limits{Ingress: in}, `ip link add bwp0 type ifb; tc qdisc add dev DEV ingress
			tc filter add dev DEV parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev bwp0`, netconf.Limits{Ingress: in}},
	} {
		nettest.Run(t, "ip", "link", "add", dev, "up", "type", "veth", "peer", "name", "inside")
		if err := h.SetLimits(Limit{HostDev: dev, Dev: wait, Limits: tt.ours}); err != nil {
			t.Fatal(err)
		}
		nettest.Run(t, "sh", "-ec", strings.NewReplacer("DEV", dev, "WAIT", wait).Replace(tt.script))
		found, err := h.FoundLimits([]eni.Key{key})
		if err != nil || !found[key].Same(tt.want) {
			t.Errorf("%s: found %v, %v; want %v", tt.name, found[key], err, tt.want)
		}
		nettest.Run(t, "sh", "-c", "ip link del "+dev+"; ip link del "+wait+"; ip link del bwp0; true")
	}
}
