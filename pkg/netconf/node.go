package netconf

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/ipam"
)

// Node is what the kernel holds for the node and its ENIs, apart from the
// firewall.
type Node struct {
	Sysctls []Sysctl
	Links   []string // to be up
	Addrs   []Addr
	Routes  []Route
	Rules   []Rule
	Neighs  []Neigh

	// Pods is what the node holds for pods with a link of ours. It is wanted only
	// where the pod's link exists: the plugin makes the link before all the rest,
	// and the rest goes with the link.
	Pods []Pod
	// Moved are the routes to pods whose addresses pods of other nodes have by now. Only what is wanted has them: they go.
	Moved []Route
	// PodLinks are the links of Pods that exist. Only what was read off a kernel
	// has them.
	PodLinks []string
	// Others are the routes of others in the tables of ours. Only what was read off a
	// kernel has them.
	Others []TableRoute
}

// NewNode returns what the kernel should hold for the node state's ENIs and for its used
// addresses.
func NewNode(state *ipam.State) Node {
	node := Node{Sysctls: []Sysctl{{"net/ipv4/ip_forward", "1"}}}
	for _, v6 := range []bool{false, true} {
		if v6 && !hasIPv6(state) {
			continue
		}
		node.Rules = append(node.Rules, podsRule(state.Settings, v6),
			Rule{Priority: PriorityMark, IPv6: v6, Mark: Mark(0, state.Settings.MarkMask), Mask: state.Settings.MarkMask, Table: MainTable})
	}
	for _, nic := range state.ENIs {
		node.Links = append(node.Links, nic.Device)
		// Loose: a reply to the node's address may come in on ENI 0 for a pod
		// whose own way out is another ENI.
		node.Sysctls = append(node.Sysctls, Sysctl{"net/ipv4/conf/" + nic.Device + "/rp_filter", "2"})
		if nic.V4.IsValid() {
			node.Sysctls = append(node.Sysctls, forwardingSysctl(nic.Device))
		}
		if nic.V6.IsValid() {
			node.Sysctls = append(node.Sysctls, Sysctl{"net/ipv6/conf/" + nic.Device + "/accept_ra", acceptRA(nic.Index)})
		}
		for _, net := range nic.Nets() {
			node.addNet(nic.Device, nic.Index, net.Primary, net.Gateway, state.Settings.MarkMask)
		}
	}
	if hasIPv6(state) {
		// After accept_ra: a host that starts to forward forgets its routers.
		node.Sysctls = append(node.Sysctls, Sysctl{"net/ipv6/conf/all/forwarding", "1"})
	}
	for _, a := range state.Used() {
		if !a.HasMoved() {
			node.Rules = append(node.Rules, SourceRules(state.Settings, a)...)
		}
	}
	if !state.Settings.PodsInMain {
		node.Pods = nodePods(state)
		node.dropMoved(state)
	}
	return node
}

// dropMoved takes the routes to pods from what is wanted whose addresses pods of other nodes have by now: what this node sends
// there is for those.
func (n *Node) dropMoved(state *ipam.State) {
	for _, a := range state.Used() {
		if !a.HasMoved() {
			continue
		}
		for i := range n.Pods {
			p := &n.Pods[i]
			p.HostRoutes = slices.DeleteFunc(p.HostRoutes, func(r Route) bool {
				moved := r.Dst == a.Prefix()
				if moved {
					n.Moved = append(n.Moved, r)
				}
				return moved
			})
		}
	}
}

// nodePods returns the pods of the node state that have a link of ours.
func nodePods(state *ipam.State) []Pod {
	leases, order := map[eni.Key]*ipam.Lease{}, []*ipam.Lease{}
	for _, a := range state.Used() {
		if a.Owner.Kind != eni.Veth {
			continue
		}
		lease := leases[a.Owner.Key]
		if lease == nil {
			lease = &ipam.Lease{}
			lease.Interface, _ = state.Interface(a.ENI)
			leases[a.Owner.Key], order = lease, append(order, lease)
		}
		lease.Addresses = append(lease.Addresses, a)
	}
	pods := make([]Pod, len(order))
	for i, lease := range order {
		pods[i] = NewPod(state.Settings, *lease, 0)
	}
	return pods
}

// withPods returns the node with what its pods need listed among the rest, of those
// whose links exist.
func (n Node) withPods(links []string) Node {
	exists := make(map[string]bool, len(links))
	for _, l := range links {
		exists[l] = true
	}
	n.Sysctls, n.Links, n.Routes, n.Neighs = slices.Clone(n.Sysctls), slices.Clone(n.Links), slices.Clone(n.Routes), slices.Clone(n.Neighs)
	for _, p := range n.Pods {
		if exists[p.HostDev] {
			n.Sysctls = append(n.Sysctls, p.HostSysctls...)
			n.Links = append(n.Links, p.HostDev)
			n.Neighs = append(n.Neighs, p.HostNeighs...)
			n.Routes = append(n.Routes, p.HostRoutes...)
		}
	}
	n.Pods = nil
	return n
}

// acceptRA lets a forwarding node go on learning its own default route from the
// router of ENI 0, and no second one from those of the others.
func acceptRA(index int) string {
	if index == 0 {
		return "2"
	}
	return "0"
}

func (n *Node) addNet(dev string, index int, primary netip.Prefix, gateway netip.Addr, mask uint32) {
	n.Addrs = append(n.Addrs, Addr{Prefix: primary, Dev: dev, NoPrefixRoute: index > 0})
	table, v6 := Table(index), gateway.Is6()
	out := Route{Dst: Anywhere(gateway.Is6()), Gateway: gateway, Dev: dev, Table: table, IfNone: index == 0}
	if index == 0 {
		n.Routes = append(n.Routes, out)
		return
	}
	n.Routes = append(n.Routes, Route{Dst: hostPrefix(gateway), Dev: dev, Table: table}, out)
	n.Rules = append(n.Rules,
		Rule{Priority: PriorityMark, IPv6: v6, Mark: Mark(index, mask), Mask: mask, Table: table},
		Rule{Priority: PriorityPrimary, IPv6: v6, From: hostPrefix(primary.Addr()), Table: table})
}

func hasIPv6(s *ipam.State) bool {
	for _, nic := range s.ENIs {
		if nic.V6.IsValid() {
			return true
		}
	}
	return false
}

// String returns the node's state, one line per object, with that of all its pods.
func (n Node) String() string {
	var links []string
	for _, p := range n.Pods {
		links = append(links, p.HostDev)
	}
	return strings.Join(append(n.withPods(links).Lines(""), ""), "\n")
}
