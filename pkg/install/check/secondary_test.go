package check

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/nettest"
)

// TestPodsAddressesOnTheNodesLinksAreTold: services that set up NICs put every address of
// an ENI on its link.
func TestPodsAddressesOnTheNodesLinksAreTold(t *testing.T) {
	node := nettest.NewNetns(t, "node")
	node.Run(t, "sh", "-ec", `for k in 0 1; do ip link add eth$k type veth peer name far$k; ip link set eth$k up; ip addr add 10.0.$k.10/24 dev eth$k; done
ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip addr add 172.17.0.2/16 dev docker0
ip route add default via 10.0.0.1`)
	look := func(files ...string) (got string) {
		if err := node.Do(func() error { got = texts(findSecondaries(newTree(t, files...), needs())); return nil }); err != nil {
			t.Fatal(err)
		}
		return got
	}
	const ec2 = "/usr/lib/systemd/system/policy-routes@.service"
	if got := look(ec2); got != "" {
		t.Errorf("on a node without such addresses: %s", got)
	}
	node.Run(t, "sh", "-ec", "ip addr add 10.0.1.11/24 dev eth1; ip addr add 10.0.1.12/32 dev eth1")
	if got := look(); !strings.HasPrefix(got, "warning   the node has the address 10.0.1.11/24 dev eth1 and 1 more beside its own: ") && !strings.HasPrefix(got, "warning   the node has the address 10.0.1.12/32 dev eth1 and 1 more beside its own: ") {
		t.Errorf("without a known service: %s", got)
	}
	got := look(ec2)
	if !strings.HasPrefix(got, "must fix  amazon-ec2-net-utils is on this node, and the node has the address 10.0.1.1") || !strings.Contains(got, "mask policy-routes@LINK.service") || strings.Count(got, "\n") != 1 {
		t.Errorf("with amazon-ec2-net-utils: %s", got)
	}
}
