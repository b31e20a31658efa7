package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// A DHCP client that renews takes the system's default route away for a moment. What
// the agent puts in its place must not stay before it.
func TestTheSystemsDefaultRouteComesBackBeforeOurs(t *testing.T) {
	t.Parallel()
	s := newSite(t, plan{name: "default", limits: tiny})
	s.configure("pool.batch: 2", "resync: 1h")
	const system = "default via 172.31.0.1 dev mgmt0 proto dhcp metric 100"
	s.node.Run(t, "sh", "-c", "ip link add mgmt0 type ifb; ip link set mgmt0 arp off up; ip addr add 172.31.0.2/24 dev mgmt0; ip route del default; ip route add "+system)
	s.start()
	s.poolOf(2)
	s.add("pod")
	defaults := func(want string) func() error {
		return func() error {
			if has := strings.TrimSpace(s.node.Run(t, "ip", "route", "show", "default")); has != want {
				return fmt.Errorf("the node has\n%s\nand should have\n%s", has, want)
			}
			return nil
		}
	}
	s.eventually("the system's route is left alone", defaults(system))
	s.node.Run(t, "sh", "-c", "ip route del "+system)
	s.eventually("the node has a default route", defaults("default via 10.0.1.1 dev eth0 proto 69"))
	s.node.Run(t, "sh", "-c", "ip route add "+system)
	s.eventually("the system's route is the only one again", defaults(system))
}
