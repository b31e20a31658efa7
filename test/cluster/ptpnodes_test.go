package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/enipool/enipool/pkg/nettest"
	"github.com/enipool/enipool/test/kube"
)

// ptpConflist is a network of the reference plugins, with the range of one node.
const ptpConflist = `{"cniVersion": "1.0.0", "name": "ptp", "plugins": [
	{"type": "ptp", "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.244.%d.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
	{"type": "portmap", "capabilities": {"portMappings": true}}]}`

// addPtpNodes starts two nodes on one link without enipool: each has a range for its pods and a route to the other's.
func (c *cluster) addPtpNodes(o kube.NodeOptions, names [2]string) {
	c.t.Helper()
	spaces := [2]nettest.Netns{nettest.NewNetns(c.t, names[0]), nettest.NewNetns(c.t, names[1])}
	nettest.Run(c.t, "ip", "link", "add", "name", "eth0", "netns", spaces[0].Name, "type", "veth", "peer", "name", "eth0", "netns", spaces[1].Name)
	for i, name := range names {
		ns := spaces[i]
		ns.Run(c.t, "ip", "link", "set", "lo", "up")
		ns.Run(c.t, "ip", "link", "set", "eth0", "up")
		ns.Run(c.t, "ip", "address", "add", fmt.Sprintf("10.0.1.%d/24", i+1), "dev", "eth0")
		ns.Run(c.t, "ip", "route", "add", fmt.Sprintf("10.244.%d.0/24", 2-i), "via", fmt.Sprintf("10.0.1.%d", 2-i))
		ns.Run(c.t, "ip", "route", "add", "default", "via", fmt.Sprintf("10.0.1.%d", 2-i)) // services have to be sent somewhere until kube-proxy changes where
		ns.Run(c.t, "sysctl", "-q", "-w", "net.ipv4.ip_forward=1")
		own := o
		own.Name, own.Netns = name, ns.Path
		n := c.Cluster.AddNode(own)
		for _, plugin := range []string{"ptp", "host-local", "loopback", "portmap"} {
			text, err := os.ReadFile(filepath.Join("..", "..", ".build", "cni", plugin))
			c.must(err)
			c.must(os.WriteFile(n.Path("/opt/cni/bin/"+plugin), text, 0o755)) //nolint:gosec // it is run
		}
		c.must(os.WriteFile(n.Path("/etc/cni/net.d/10-ptp.conflist"), fmt.Appendf(nil, ptpConflist, i+1), 0o600))
		n.WaitReady()
	}
}
