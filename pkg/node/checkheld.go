package node

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// checkHeld returns a line for each address that others hold, or claim beside a pod of
// ours, and for each that the node state calls held though it is not any more.
func (n Node) checkHeld(ctx context.Context, o netconf.Occupancy) ([]string, error) {
	var lines []string
	err := n.Cache.View(ctx, func(s *ipam.State) error {
		lines = nil
		now := nodecache.SinceBoot()
		causes, gone := o.Held(s), setOf(o.NoLongerHeld(s))
		services := host.NICServices("/", "/host")
		for _, a := range s.Addresses {
			cause, held := causes[a.Addr]
			if _, free := s.FreeSince(&a, now); free {
				a.State = eni.Free
			}
			switch {
			case held && ipam.IsNoLink(cause): // the line of the ENI says it
			case held && a.State != eni.Used:
				lines = append(lines, n.heldLine(a, cause, services))
			case gone[a.Addr]:
				was := "held by others"
				if ipam.IsNoLink(a.HeldBy) {
					was = ipam.HeldText(a.HeldBy)
				}
				lines = append(lines, fmt.Sprintf("%s was %s and is no more", a.Addr, was)+n.remedy("`enipoolctl pool load` takes it back"))
			}
		}
		for _, line := range o.Shared(s) {
			lines = append(lines, line+"; one of the two has no traffic: delete the pod, it gets another address")
		}
		return nil
	})
	return lines, err
}

func setOf(addrs []netip.Addr) map[netip.Addr]bool {
	set := make(map[netip.Addr]bool, len(addrs))
	for _, a := range addrs {
		set[a] = true
	}
	return set
}

// heldLine says what holds the address and what to do about it.
func (n Node) heldLine(a eni.Address, cause string, services []host.NICService) string {
	todo := "no pod gets it until that is gone: drain the pods of the plugin that made it, or remove it if it is left over"
	what := ""
	if strings.HasPrefix(cause, netconf.NodeAddress) {
		// Whoever put it there puts it there again.
		what, todo = "must fix: ", "no service of the node may put pods' addresses on its links"
		for _, s := range services {
			todo += fmt.Sprintf("; %s is here: %s", s.Name, s.Todo)
		}
		todo += "; then `ip " + strings.Replace(cause, "address", "address del", 1) + "`"
	}
	if a.State != eni.Held {
		todo += " (the node cache calls it " + a.State.String() + n.remedy("`enipoolctl pool load` notes it") + ")"
	}
	return fmt.Sprintf("%s%s is held by others: %s; %s", what, a.Addr, cause, todo)
}
