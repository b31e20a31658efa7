package node

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// addTime is longer than an ADD takes from the node cache to the pod's link.
const addTime = 10 * time.Second

// LivingError is returned where pods need what is to be removed.
type LivingError struct{ Pods []string }

// Error counts the pods, names some, and says what to do.
func (e *LivingError) Error() string {
	noun := "pods of enipool live"
	if len(e.Pods) == 1 {
		noun = "pod of enipool lives"
	}
	return fmt.Sprintf("%d %s on this node (%s): routes, rules and the packet filter stay, for pods would be cut off; drain the node and run this again",
		len(e.Pods), noun, listSome(e.Pods))
}

// UnknownError is returned where the node cache does not tell whether pods need what is
// to be removed. Those of other plugins that have an address of enipool leave no other
// trace that is always there.
type UnknownError struct {
	Cause error
	Addrs []string // that rules in the kernel are for: pods have or had them
}

// Error says what is missing and what to do.
func (e *UnknownError) Error() string {
	traces := ""
	if len(e.Addrs) > 0 {
		traces = "; rules of enipool are there for " + listSome(e.Addrs)
	}
	return fmt.Sprintf("nobody can tell whether pods of enipool live on this node: %v%s: routes, rules and the packet filter stay, for pods would be cut off; "+
		"start an agent, which rebuilds the node cache, end it and run this again, or drain the node and reboot it, which takes all out of the kernel", e.Cause, traces)
}

// Unwrap returns why nobody can tell.
func (e *UnknownError) Unwrap() error { return e.Cause }

func listSome(names []string) string {
	if len(names) > 5 {
		names = append(slices.Clone(names[:5]), "...")
	}
	return strings.Join(names, ", ")
}

// checkLiving returns *LivingError if pods live by the node state or the kernel, and
// *UnknownError if a damaged address may be a pod's.
func (n Node) checkLiving(h *host.Host, state *ipam.State) error {
	pods, err := n.livingPods(h, state)
	if err != nil {
		return err
	}
	if len(pods) > 0 {
		return &LivingError{pods}
	}
	if len(state.Damaged) == 0 {
		return nil
	}
	var lines []string
	for _, d := range state.Damaged {
		line := d.Cause
		if d.Addr.IsValid() {
			line += ", " + d.Addr.String()
		}
		if d.Owner != nil {
			line += " of " + d.Owner.PodName()
		}
		lines = append(lines, line)
	}
	return &UnknownError{Cause: fmt.Errorf("the node cache has damaged addresses (%s)", listSome(lines))}
}

// checkUnread is checkLiving where the node state can't be read. There is nothing to refuse
// where the kernel has nothing of ours that pods could need.
func (n Node) checkUnread(ctx context.Context, h *host.Host, pins string, cause error) error {
	if err := n.checkLiving(h, &ipam.State{}); err != nil {
		return err
	}
	routing, err := obsoleteRouting(h, netconf.Node{})
	if err != nil {
		return err
	}
	filter, err := firewall.Found(ctx)
	if err != nil {
		return err
	}
	_, unpinned := os.Lstat(pins)
	if len(routing.Lines(""))+len(filter) == 0 && unpinned != nil {
		return nil
	}
	// Rules name the pods' addresses where the cache can't: a person can look the pods up by them.
	var addrs []netip.Addr
	for _, r := range routing.Rules {
		if r.Priority == netconf.PrioritySource {
			addrs = append(addrs, r.From.Addr())
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	unknown := &UnknownError{Cause: cause}
	for _, a := range slices.Compact(addrs) {
		unknown.Addrs = append(unknown.Addrs, a.String())
	}
	return unknown
}

// livingPods names the pods that need what the kernel holds: those with a link of ours,
// those of other plugins with an address of ours whose namespace is not provably gone,
// and those that wait for an address. An address that was handed out a moment ago is that
// of a pod whose link comes.
func (n Node) livingPods(h *host.Host, state *ipam.State) ([]string, error) {
	links, err := h.PodLinks()
	if err != nil {
		return nil, err
	}
	var pods []string
	known := map[eni.Key]bool{}
	for _, l := range links {
		known[l.Owner.Key] = true
		pods = append(pods, l.Owner.PodName())
	}
	for _, a := range state.Used() {
		if known[a.Owner.Key] {
			continue
		}
		known[a.Owner.Key] = true
		alive, err := n.isAlive(h, a)
		if err != nil {
			return nil, err
		}
		if alive {
			pods = append(pods, a.Owner.PodName())
		}
	}
	waiting, err := n.pendingPods()
	if err != nil {
		return nil, err
	}
	slices.Sort(pods)
	return append(pods, waiting...), nil
}

// isAlive tells whether the pod of a used address may live.
func (n Node) isAlive(h *host.Host, a eni.Address) (bool, error) {
	switch {
	case n.Now()-a.Since < addTime:
		return true, nil
	case a.Owner.Kind == eni.Veth:
		// One whose names are too long for an alias is not among the links of pods.
		return h.HasLink(netconf.HostDevice(a.Owner.Key))
	}
	return !host.NetnsGone(a.Owner.Netns, a.Owner.NetnsInode), nil
}

// pendingPods names the pods of pending ADDs, which may get an address at any moment. The
// queue tells how many there are, and their announcements who they are.
func (n Node) pendingPods() ([]string, error) {
	queued, err := n.Cache.Waiting()
	if err != nil {
		return nil, err
	}
	announced, err := n.Cache.PendingADDs(n.Now())
	if err != nil {
		return nil, err
	}
	var pods []string
	for _, w := range announced {
		if !w.Failed {
			pods = append(pods, w.Owner.PodName()+" (waits for an address)")
		}
	}
	for len(pods) < len(queued) {
		pods = append(pods, "one that waits for an address")
	}
	return pods, nil
}
