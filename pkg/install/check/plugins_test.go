package check

import (
	"strings"
	"testing"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/install"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nettest"
	"github.com/google/go-cmp/cmp"
)

// TestLivePodsOfOtherPluginsAreAFault: with enipool beside them new pods would be ours,
// and what runs would live on by a plugin that nobody calls any more.
func TestLivePodsOfOtherPluginsAreAFault(t *testing.T) {
	const todo = ": drain the node first (kubectl drain), or delete its pods one by one after --force: " +
		"enipool leaves their addresses, routes and rules alone until they are gone\n"
	ours := netconf.HostDevice(eni.Key{Network: "pods", Container: "web", IfName: "eth0"})
	for _, tt := range []struct {
		name, script, want string
	}{
		{"none", "", ""},
		{"our own", "ip link add " + ours + " type veth peer name eth0 netns pod; ip link set " + ours + " alias default/web\\ pods/web/eth0; ip link set " + ours + " up; ip route add 10.0.0.4/32 dev " + ours, ""},
		{"aws-vpc-cni", "for i in 1 2; do ip link add eni5f8c1a2b3c$i type veth peer name eth$i netns pod; ip link set eni5f8c1a2b3c$i up; ip route add 10.0.0.$i/32 dev eni5f8c1a2b3c$i; done",
			"must fix  2 pods live on this node by aws-vpc-cni (eni5f8c1a2b3c1 with 10.0.0.1)" + todo},
		{"Cilium, with its own link for health", "ip link add lxc_health type veth peer name cilium netns pod; ip link add lxc4f8c1a2b3c4d type veth peer name eth0 netns pod",
			"must fix  1 pod lives on this node by Cilium (lxc4f8c1a2b3c4d)" + todo},
		{"Calico", "ip link add cali5f8c1a2b3c4 type veth peer name eth0 netns pod", "must fix  1 pod lives on this node by Calico (cali5f8c1a2b3c4)" + todo},
		{"one whose links have any name", "ip link add veth1234 type veth peer name eth0 netns pod; ip link set veth1234 up; ip route add 10.88.0.4/32 dev veth1234",
			"must fix  1 pod lives on this node by another plugin (veth1234 with 10.88.0.4)" + todo},
		{"containers that are no pods", "ip link add docker0 type bridge; ip link add veth5678 master docker0 type veth peer name eth0 netns pod", ""},
		{"a node that is a container itself, with systemd-networkd's routes", "ip link add eth0 type veth peer name node netns pod; ip addr add 10.0.1.10/24 dev eth0; ip link set eth0 up; " +
			"ip route add 10.0.1.1 dev eth0; ip route add 10.0.1.2 dev eth0; ip route add default via 10.0.1.1", ""},
		{"a pair of the node's own", "ip link add veth0 type veth peer name veth1; ip link set veth0 up; ip link set veth1 up; ip route add 10.88.0.4/32 dev veth0", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node, pod := nettest.NewNetns(t, "node"), nettest.NewNetns(t, "pod")
			if tt.script != "" {
				node.Run(t, "sh", "-ec", strings.ReplaceAll(tt.script, "netns pod", "netns "+pod.Path))
			}
			look := func(n Needs, files ...string) (got string) {
				if err := node.Do(func() error { got = texts(findLivePods(newTree(t, files...), n)); return nil }); err != nil {
					t.Fatal(err)
				}
				return got
			}
			if diff := cmp.Diff(tt.want, look(needs())); diff != "" {
				t.Error(diff)
			}
			// An agent that starts again on such a node is not kept from it.
			for _, dir := range []string{install.ConfDir, install.StateDir} {
				again := look(needs(), dir+"/"+install.ConflistName)
				if diff := cmp.Diff(strings.Replace(tt.want, "must fix", "warning ", 1), again); diff != "" {
					t.Errorf("with ours in %s: %s", dir, diff)
				}
			}
			delegated := needs()
			if delegated.Delegated = true; look(delegated) != "" {
				t.Error("a plugin that calls enipool for addresses makes such links itself")
			}
		})
	}
}
