package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/fastpath"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// addTime is longer than an ADD takes from the node cache to the pod's link.
const addTime = 10 * time.Second

// LivingError is returned where pods need what is to be removed.
type LivingError struct{ Pods []string }

// Error counts the pods, names some, and says what to do.
func (e *LivingError) Error() string {
	names := e.Pods
	if len(names) > 5 {
		names = append(slices.Clone(names[:5]), "...")
	}
	noun := "pods of enipool live"
	if len(e.Pods) == 1 {
		noun = "pod of enipool lives"
	}
	return fmt.Sprintf("%d %s on this node (%s): routes, rules and the packet filter stay, for pods would be cut off; drain the node and run this again",
		len(e.Pods), noun, strings.Join(names, ", "))
}

// Remove takes out of the kernel what enipool holds there for a node: rules, routes,
// addresses of ENIs, the packet filter, links of limits, and the fast path, which is
// pinned in the folder. It returns a line for each thing that it removed, and what stays
// though it was enipool's to set. It does nothing, and says why, as long as pods of
// enipool live (*LivingError) or an agent would put all back (*nodecache.AgentError).
// The node cache stays: it does not outlive the boot.
func (n Node) Remove(ctx context.Context, pins string) (removed, stays []string, err error) {
	if pid, running := n.Cache.Agent(); running {
		return nil, nil, &nodecache.AgentError{PID: pid}
	}
	h, err := host.New()
	if err != nil {
		return nil, nil, err
	}
	defer h.Close()
	book, err := n.lastBook(ctx)
	if err != nil {
		return nil, nil, err
	}
	pods, err := n.livingPods(h, book)
	if err != nil {
		return nil, nil, err
	}
	if len(pods) > 0 {
		return nil, nil, &LivingError{pods}
	}
	was := netconf.NewNode(book)
	for _, remove := range []func() ([]string, error){
		func() ([]string, error) { return removeFastPath(pins) },
		func() ([]string, error) { return removeRouting(h, was) },
		func() ([]string, error) { return firewall.Remove(ctx) },
		func() ([]string, error) { return removeLimits(h) },
	} {
		lines, failed := remove()
		removed, err = append(removed, lines...), errors.Join(err, failed)
	}
	if len(removed) > 0 {
		for _, s := range was.Sysctls {
			stays = append(stays, s.String())
		}
	}
	return removed, stays, err
}

// lastBook returns the book, an empty one where there is none that can be used. Unlike
// View it makes no folder.
func (n Node) lastBook(ctx context.Context) (*ipam.State, error) {
	book := &ipam.State{}
	if _, err := os.Stat(n.Cache.Path); errors.Is(err, fs.ErrNotExist) {
		return book, nil
	}
	err := n.Cache.View(ctx, func(s *ipam.State) error { book = s.Clone(); return nil })
	if nodecache.Unusable(err) {
		return &ipam.State{}, nil
	}
	return book, err
}

// livingPods names the pods that need what the kernel holds: those with a link of ours,
// and those of other plugins with an address of ours whose namespace is not provably
// gone. An address that was handed out a moment ago is that of a pod whose link comes.
func (n Node) livingPods(h *host.Host, book *ipam.State) ([]string, error) {
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
	for _, a := range book.Used() {
		if known[a.Owner.Key] {
			continue
		}
		known[a.Owner.Key] = true
		alive := n.Now()-a.Since < addTime
		if a.Owner.Kind != eni.Veth {
			alive = !host.NetnsGone(a.Owner.Netns, a.Owner.NetnsInode)
		}
		if alive {
			pods = append(pods, a.Owner.PodName())
		}
	}
	slices.Sort(pods)
	return pods, nil
}

// removeRouting removes rules and routes of ours, and the addresses that was gives ENIs.
// The node's own ENI keeps its address and its way out.
func removeRouting(h *host.Host, was netconf.Node) ([]string, error) {
	was.Addrs = slices.DeleteFunc(slices.Clone(was.Addrs), func(a netconf.Addr) bool { return !a.NoPrefixRoute })
	have, err := h.ReadNode(netconf.Node{}, was)
	if err != nil {
		return nil, err
	}
	_, remove := netconf.Diff(have, netconf.Node{}, was)
	return remove.Lines(""), h.ApplyNode(netconf.Node{}, remove)
}

// removeFastPath removes what is pinned in the folder, which nothing may be.
func removeFastPath(pins string) ([]string, error) {
	if _, err := os.Stat(pins); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err := fastpath.Remove(pins); err != nil {
		return nil, fmt.Errorf("remove the fast path: %w", err)
	}
	_ = os.Remove(filepath.Dir(pins)) // unless that of another node cache is in it
	return []string{"fast path " + pins}, nil
}

// removeLimits removes the links of limits of pods that are gone.
func removeLimits(h *host.Host) (lines []string, err error) {
	keys, err := h.LimitKeys()
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		dev := netconf.LimitDevice(k)
		if err := h.ClearLimits(dev); err != nil {
			return lines, err
		}
		lines = append(lines, "link "+dev)
	}
	return lines, nil
}
