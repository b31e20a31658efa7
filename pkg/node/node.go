// Package node keeps a node's kernel and its node cache in step: it loads an
// inventory, puts back what others removed, and finds what does not agree. To
// grow, the kernel comes before the node state, so that no pod gets an address the
// kernel can't route; to shrink, the node state comes first.
package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/eni"
	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
	"golang.org/x/sys/unix"
)

// Node is the node in whose network namespace the caller's thread is.
type Node struct {
	Cache nodecache.Cache
	Now   func() time.Duration // since boot
	Watch *Watch               // for changes by others; nil: nobody listens
	Fast  *FastPath            // follows what the kernel is told of; nil: there is none
	// Keeper says for Check who puts right what is wrong, "" where it is the reader.
	Keeper string
}

// applyRounds is how often the kernel is read and corrected until nothing is
// left to do: taking an address off a link can take routes with it, and pods of an
// earlier release move to their table in three steps.
const applyRounds = 4

// Apply makes the kernel hold what the node state says and returns a line for each
// thing it changed; nothing if all was in place. Running pods are not touched.
func (n Node) Apply(ctx context.Context) ([]string, error) {
	return n.apply(ctx, n.Cache.View, change{watch: n.Watch})
}

// view hands a node state to a function: that of the cache, or one that is not written yet.
type view func(context.Context, func(*ipam.State) error) error

// fixed is the view of a node state that is not in the cache.
func fixed(s *ipam.State) view {
	return func(_ context.Context, fn func(*ipam.State) error) error { return fn(s) }
}

// change says how far apply goes.
type change struct {
	obsolete netconf.Node // see netconf.Diff
	addOnly  bool         // remove nothing
	fresh    []netip.Addr // that the pool grows by; see newToSNAT
	watch    *Watch       // learns which changes a reading of the kernel covers; nil: there is none
	retried  bool         // the caller compares again after an error
}

// uncover tells the watch that what a reading of the kernel showed was not put right.
func (c change) uncover(cause string) {
	if c.retried {
		c.watch.keepCause()
	} else {
		c.watch.uncover(cause)
	}
}

func (n Node) apply(ctx context.Context, viewState view, c change) (changed []string, err error) {
	h, err := host.New()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	defer c.watch.endComparison()
	var before []string // what the last round did, in part in vain
	for round := range applyRounds {
		cause, err := c.watch.beginComparison(ctx, viewState, round == 0)
		if err != nil {
			return changed, err
		}
		add, remove, fw, err := confirmedDiff(ctx, h, viewState, c.obsolete)
		if err != nil {
			c.uncover(cause)
			return changed, err
		}
		lines, add, remove, fw, err := n.moveMarks(ctx, h, viewState, add, remove, fw)
		if err != nil {
			c.uncover(cause)
			return append(changed, lines...), err
		}
		if c.addOnly && len(remove.Lines("")) > 0 {
			c.watch.uncover(cause)
			if old := netconf.OldMasks(remove.Rules, fw.Mask); len(old) > 0 {
				fw = fw.Understanding(old) // as long as there are rules for their marks
			}
			remove = netconf.Node{}
		}
		lines = slices.Concat(lines, add.Lines("add "), remove.Lines("remove "))
		// An error of routing or of the packet filter does not keep the other from being put right.
		err = h.ApplyNode(add, netconf.Node{})
		more, fwErr := n.applyFirewall(ctx, h, viewState, fw, c.fresh)
		lines, err = append(lines, more...), errors.Join(err, fwErr, h.ApplyNode(netconf.Node{}, remove))
		if slices.ContainsFunc(remove.Rules, netconf.Rule.IsForVPC) {
			lines = append(lines, forgetMisdirected(ctx, h, viewState)...)
		}
		if err != nil {
			c.uncover(cause)
		}
		if round > 0 && err != nil && slices.Equal(lines, before) {
			return changed, err // that of a broken link alone comes again
		}
		changed, before = append(changed, lines...), lines
		if _, only := netconf.BrokenLinks(err); !only || len(lines) == 0 || err != nil && round+1 == applyRounds {
			return changed, err
		}
	}
	return changed, nil
}

// diff compares the kernel with the node state. The kernel is read first: a pod that
// starts in between is in the node state by the time that is read, so nothing of it
// can look as if it had no owner.
func diff(ctx context.Context, h *host.Host, viewState view, obsolete netconf.Node) (add, remove netconf.Node, fw netconf.Firewall, err error) {
	v6 := host.HasIPv6()
	var links netconf.Node
	err = viewState(ctx, func(s *ipam.State) error {
		// It only says what to read of the kernel; what the kernel is compared with is read after it.
		links = wantedNode(s, v6)
		return nil
	})
	if err != nil {
		return add, remove, fw, err
	}
	if !v6 {
		obsolete.Addrs = slices.DeleteFunc(slices.Clone(obsolete.Addrs), func(a netconf.Addr) bool { return a.Prefix.Addr().Is6() })
	}
	have, err := h.ReadNode(links, obsolete)
	if err != nil {
		return add, remove, fw, err
	}
	err = viewState(ctx, func(s *ipam.State) error {
		add, remove = netconf.Diff(have, wantedNode(s, v6), obsolete)
		if !v6 {
			s = withoutIPv6(s)
		}
		fw = netconf.NewFirewall(s)
		return nil
	})
	return add, remove, fw, err
}

// wantedNode is netconf.NewNode for a kernel with IPv6 or without: the cloud may give
// ENIs addresses of both families all the same.
func wantedNode(s *ipam.State, v6 bool) netconf.Node {
	if v6 {
		return netconf.NewNode(s)
	}
	n := netconf.NewNode(withoutIPv6(s))
	for i := range n.Pods {
		// What switches IPv6 off for a pod's link has nothing to switch off.
		n.Pods[i].HostSysctls = slices.DeleteFunc(n.Pods[i].HostSysctls, func(s netconf.Sysctl) bool { return strings.HasPrefix(s.Key, "net/ipv6/") })
	}
	return n
}

// withoutIPv6 returns a copy of the node state without the IPv6 sides of ENIs and without IPv6
// addresses.
func withoutIPv6(s *ipam.State) *ipam.State {
	c := s.Clone()
	for i := range c.ENIs {
		c.ENIs[i].V6 = eni.Net{}
	}
	c.Addresses = slices.DeleteFunc(c.Addresses, func(a eni.Address) bool { return a.Addr.Is6() })
	return c
}

// errNoIPv6 is the answer to settings that ask for what the kernel does not have.
var errNoIPv6 = errors.New("families: ipv6 can't be had: this kernel has no IPv6 (ipv6.disable=1 on its command line); use [ipv4]")

// ChooseFirewall fills in the packet filter where either will do, and refuses what can't work
// on this node.
func ChooseFirewall(s *ipam.Settings, either bool) error {
	if slices.Contains(s.Families, eni.IPv6) && !host.HasIPv6() {
		return errNoIPv6
	}
	nft := firewall.Works(ipam.Nftables)
	switch {
	case either && nft == nil:
		s.Firewall = ipam.Nftables
		return nil
	case either && s.Routing == ipam.Map && errors.Is(nft, unix.EPERM):
		return nft // another routing needs the same rights
	case either && s.Routing == ipam.Map:
		return fmt.Errorf("routing map: %w; use routing: rule", nft)
	case either:
		s.Firewall = ipam.Iptables
	}
	if err := firewall.Works(s.Firewall); err != nil {
		return errors.Join(fmt.Errorf("firewall %s: %w", s.Firewall, err), nft)
	}
	return nil
}
