package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/fastpath"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// Remove takes out of the kernel what enipool holds there for a node: rules, routes,
// addresses of ENIs, the packet filter, links of limits, and the fast path, which is
// pinned in the folder. It returns a line for each thing that it removed, and what stays
// though it was enipool's to set. It does nothing, and says why, as long as pods of
// enipool live (*LivingError), nobody can tell whether they do (*UnknownError), or an
// agent would put all back (*nodecache.AgentError). The node cache stays, without
// addresses: it does not outlive the boot.
func (n Node) Remove(ctx context.Context, pins string) (removed, stays []string, err error) {
	remove := func() (err error) {
		removed, stays, err = n.removeAll(ctx, pins)
		return err
	}
	// Where there is no folder there is no agent, and none is made.
	if _, missing := os.Stat(filepath.Dir(n.Cache.Path)); errors.Is(missing, fs.ErrNotExist) {
		err = remove()
	} else {
		err = n.Cache.WithoutAgent(remove)
	}
	if agent := (*nodecache.AgentError)(nil); errors.As(err, &agent) {
		agent.Todo = "end it first, and in a cluster take this node out of its DaemonSet, which would start it again"
	}
	return removed, stays, err
}

func (n Node) removeAll(ctx context.Context, pins string) (removed, stays []string, err error) {
	h, err := host.New()
	if err != nil {
		return nil, nil, err
	}
	defer h.Close()
	state, err := n.emptyCache(ctx, h, pins)
	if err != nil {
		return nil, nil, err
	}
	was := netconf.NewNode(state)
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

// uninstalled is what an ADD says that gets no address from then on.
const uninstalled = "enipool was uninstalled from this node"

// Uninstalled tells whether enipool was taken off the node, and neither an agent nor
// `enipoolctl pool load` has set it up again since.
func (n Node) Uninstalled() bool {
	_, running := n.Cache.Agent()
	return !running && n.Cache.Why() == uninstalled
}

// errAsItIs: the node cache need not be written.
var errAsItIs = errors.New("the node cache stays as it is")

// emptyCache removes all addresses from the node cache where no pod lives, under one lock:
// an ADD that had it before counts as living, one that has it later gets no address. It
// returns what the cache has then. An agent that starts later fills it again.
func (n Node) emptyCache(ctx context.Context, h *host.Host, pins string) (*ipam.State, error) {
	state := &ipam.State{}
	if _, err := os.Lstat(n.Cache.Path); errors.Is(err, fs.ErrNotExist) {
		// Without it no ADD gets an address either, and Replace would make one.
		return state, n.checkUnread(ctx, h, pins, fmt.Errorf("%w: %s", nodecache.ErrMissing, n.Cache.Path))
	}
	err := n.Cache.Replace(ctx, func(old *ipam.State, unread error) (*ipam.State, error) {
		if unread != nil {
			if err := n.checkUnread(ctx, h, pins, unread); err != nil {
				return nil, err
			}
			return nil, errAsItIs
		}
		if err := n.checkLiving(h, old); err != nil {
			return nil, err
		}
		state = old.Clone()
		state.Addresses = nil
		if len(old.Addresses) == 0 {
			return nil, errAsItIs
		}
		return state, nil
	})
	if err != nil && !errors.Is(err, errAsItIs) {
		return nil, err
	}
	_ = n.Cache.SetWhy(uninstalled) // it only explains: an ADD fails without it too
	return state, nil
}

// obsoleteRouting returns the rules and routes of ours that there are, and the addresses
// of ENIs that was gives them. The primary ENI keeps its address and its default route.
func obsoleteRouting(h *host.Host, was netconf.Node) (netconf.Node, error) {
	was.Addrs = slices.DeleteFunc(slices.Clone(was.Addrs), func(a netconf.Addr) bool { return !a.NoPrefixRoute })
	have, err := h.ReadNode(netconf.Node{}, was)
	if err != nil {
		return netconf.Node{}, err
	}
	_, remove := netconf.Diff(have, netconf.Node{}, was)
	return remove, nil
}

func removeRouting(h *host.Host, was netconf.Node) ([]string, error) {
	remove, err := obsoleteRouting(h, was)
	if err != nil {
		return nil, err
	}
	return remove.Lines(""), h.ApplyNode(netconf.Node{}, remove)
}

// removeFastPath removes what is pinned in the folder; there may be nothing.
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
