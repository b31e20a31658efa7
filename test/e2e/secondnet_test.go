package e2e

import (
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/google/go-cmp/cmp"
)

// So it is where Multus calls enipool for a second network: the pod's first one is another plugin's, with the default route.
func TestTheNetworkOfAnotherPluginMayComeFirst(t *testing.T) {
	v := newVPC(t, ipam.Settings{Firewall: ipam.Nftables, SNAT: true, Families: []eni.Family{eni.IPv4}})
	v.plugin("DEL", "a")
	v.plugin("DEL", "b")                                                                 // its address is for the second network
	v.pods["a"].Run(t, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/conf/default/rp_filter") // as systems have it
	others := v.newAttachment(`{"cniVersion":"1.0.0","name":"others","plugins":[{"type":"ptp","ipMasq":true,`+
		`"ipam":{"type":"host-local","subnet":"172.30.0.0/24","routes":[{"dst":"0.0.0.0/0"}],"dataDir":"`+t.TempDir()+`"}}]}`, "a", nil)
	v.must(others.add())
	goesOut := func(when string) {
		t.Helper()
		if out, err := v.pods["a"].Try("ping", "-c", "1", "-W", "2", internet4); err != nil {
			t.Errorf("%s the first network's default route does not work: %s\n%s", when, out, v.podNetwork())
		}
	}
	goesOut("alone,")
	before := v.podNetwork()
	result := v.call("ADD", inStorage)
	v.reaches("second network", result)
	goesOut("beside a second network")
	v.call("CHECK", inStorage, `"prevResult":`+result)
	v.must(others.check())
	v.call("DEL", inStorage)
	if diff := cmp.Diff(before, v.podNetwork()); diff != "" {
		t.Errorf("the second network has left something (-before +after):\n%s", diff)
	}
	goesOut("after the second network went,")
}
