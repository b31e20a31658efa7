// Package node keeps a node's kernel and its node cache in step: it loads an
// inventory, puts back what others removed, and finds what does not agree. To
// grow, the kernel comes before the book, so that no pod gets an address the
// kernel can't route; to shrink, the book comes first.
package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/host/firewall"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
	"github.com/enipool/enipool/pkg/nodecache"
)

// Node is the node in whose network namespace the caller's thread is.
type Node struct {
	Cache nodecache.Cache
	Now   func() time.Duration // since boot
}

// applyRounds is how often the kernel is read and corrected until nothing is
// left to do: taking an address off a link can take routes with it.
const applyRounds = 3

// Apply makes the kernel hold what the book says and returns a line for each
// thing it changed; nothing if all was in place. Running pods are not touched.
func (n Node) Apply(ctx context.Context) ([]string, error) {
	return apply(ctx, n.Cache.View, change{})
}

// view hands a book to a function; that of the cache, or one in the making.
type view func(context.Context, func(*ipam.State) error) error

// fixed is the view of a book that is not in the cache.
func fixed(s *ipam.State) view {
	return func(_ context.Context, fn func(*ipam.State) error) error { return fn(s) }
}

// change says how far apply goes.
type change struct {
	obsolete netconf.Node // see netconf.Diff
	addOnly  bool         // leave what is too much
}

func apply(ctx context.Context, book view, c change) (changed []string, err error) {
	h, err := host.New()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	for range applyRounds {
		add, remove, fw, err := diff(ctx, h, book, c.obsolete)
		if err == nil && slices.ContainsFunc(slices.Concat(add.Rules, remove.Rules), podRule) {
			add, remove, fw, err = confirm(ctx, h, book, c.obsolete, add, remove)
		}
		if err != nil {
			return changed, err
		}
		if c.addOnly {
			remove = netconf.Node{}
		}
		lines := append(add.Lines("add "), remove.Lines("remove ")...)
		if err := h.ApplyNode(add, remove); err != nil {
			return changed, err
		}
		more, err := firewall.Apply(ctx, fw)
		lines = append(lines, more...)
		if changed = append(changed, lines...); err != nil || len(lines) == 0 {
			return changed, err
		}
	}
	return changed, nil
}

// confirmTime is longer than the plugin takes between book and kernel.
const confirmTime = 100 * time.Millisecond

// confirm looks a second time: a pod's rule that is missing or too much may be that
// of a pod which is being started or stopped this moment, and its plugin's to set.
func confirm(ctx context.Context, h *host.Host, book view, obsolete, add, remove netconf.Node) (add2, remove2 netconf.Node, fw netconf.Firewall, err error) {
	was, err := usedSince(ctx, book)
	if err != nil {
		return add, remove, fw, err
	}
	select {
	case <-time.After(confirmTime):
	case <-ctx.Done():
		return add, remove, fw, ctx.Err()
	}
	add2, remove2, fw, err = diff(ctx, h, book, obsolete)
	is, err2 := usedSince(ctx, book)
	// The same rule twice may be that of two pods, one after the other.
	doubtful := func(before []netconf.Rule) func(netconf.Rule) bool {
		return func(r netconf.Rule) bool {
			return podRule(r) && (!slices.Contains(before, r) || was[r.From.Addr()] != is[r.From.Addr()])
		}
	}
	add2.Rules = slices.DeleteFunc(add2.Rules, doubtful(add.Rules))
	remove2.Rules = slices.DeleteFunc(remove2.Rules, doubtful(remove.Rules))
	return add2, remove2, fw, errors.Join(err, err2)
}

// usedSince returns since when each used address is its pod's.
func usedSince(ctx context.Context, book view) (map[netip.Addr]time.Duration, error) {
	since := map[netip.Addr]time.Duration{}
	err := book(ctx, func(s *ipam.State) error {
		for _, line := range s.Used() {
			since[line.Addr] = line.Since
		}
		return nil
	})
	return since, err
}

// podRule tells whether the rule is one of a single pod.
func podRule(r netconf.Rule) bool { return r.Priority == netconf.PrioritySource }

// diff compares the kernel with the book. The kernel is read first: a pod that
// starts in between is in the book by the time that is read, so nothing of it
// can look as if it had no owner.
func diff(ctx context.Context, h *host.Host, book view, obsolete netconf.Node) (add, remove netconf.Node, fw netconf.Firewall, err error) {
	loose, err := firewall.LooseRPFilter()
	if err != nil {
		return add, remove, fw, err
	}
	var links netconf.Node
	err = book(ctx, func(s *ipam.State) error {
		links = netconf.NewNode(s)
		return nil
	})
	if err != nil {
		return add, remove, fw, err
	}
	have, err := h.ReadNode(links, obsolete)
	if err != nil {
		return add, remove, fw, err
	}
	err = book(ctx, func(s *ipam.State) error {
		add, remove = netconf.Diff(have, netconf.NewNode(s), obsolete)
		fw = netconf.NewFirewall(s, loose)
		return nil
	})
	return add, remove, fw, err
}

// chooseFirewall settles what the inventory left open, and refuses what can't
// work here.
func chooseFirewall(s *ipam.Settings, any bool) error {
	nft := firewall.Works(ipam.Nftables)
	switch {
	case any && nft == nil:
		s.Firewall = ipam.Nftables
		return nil
	case any && s.Routing == ipam.Map:
		return fmt.Errorf("routing map: %w; use routing: rule", nft)
	case any:
		s.Firewall = ipam.Iptables
	}
	if err := firewall.Works(s.Firewall); err != nil {
		return errors.Join(fmt.Errorf("firewall %s: %w", s.Firewall, err), nft)
	}
	return nil
}
