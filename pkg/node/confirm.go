package node

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/enipool/enipool/pkg/host"
	"github.com/enipool/enipool/pkg/ipam"
	"github.com/enipool/enipool/pkg/netconf"
)

// confirmTime is longer than the plugin takes between node state and kernel.
const confirmTime = 100 * time.Millisecond

// podLooks is how often what is a pod's is looked at before it counts. Two would not do for a pod
// that lives no longer than confirmTime: one may see it half set up, the next half taken down.
const podLooks = 3

// confirmedDiff is diff, taken again where it names something of a pod: what is missing or too
// much may belong to a pod which the plugin is starting or stopping at this moment. Only what all
// looks name counts.
func confirmedDiff(ctx context.Context, h *host.Host, viewState view, obsolete netconf.Node) (add, remove netconf.Node, fw netconf.Firewall, err error) {
	add, remove, fw, err = diff(ctx, h, viewState, obsolete)
	if err != nil || len(add.Lines(""))+len(remove.Lines("")) == 0 {
		return add, remove, fw, err
	}
	var c confirmation
	if c.was, err = usedSince(ctx, viewState); err != nil {
		return add, remove, fw, err
	}
	c.is = c.was
	for range podLooks - 1 {
		if !c.namesPod(add) && !c.namesPod(remove) {
			return add, remove, fw, nil
		}
		select {
		case <-time.After(confirmTime):
		case <-ctx.Done():
			return add, remove, fw, ctx.Err()
		}
		var add2, remove2 netconf.Node
		if add2, remove2, fw, err = diff(ctx, h, viewState, obsolete); err != nil {
			return add2, remove2, fw, err
		}
		if c.is, err = usedSince(ctx, viewState); err != nil {
			return add2, remove2, fw, err
		}
		add, remove = c.confirm(add, add2), c.confirm(remove, remove2)
	}
	return add, remove, fw, nil
}

// confirmation knows since when each used address, and each link of a pod, was its
// pod's when the kernel was read for the first time, and is after a later one.
type confirmation struct{ was, is map[string]time.Duration }

// usedSince returns since when each used address is its pod's, a time since boot, by each
// subject of what the kernel holds for the pod: the address, its source rule and the link.
func usedSince(ctx context.Context, viewState view) (map[string]time.Duration, error) {
	since := map[string]time.Duration{}
	err := viewState(ctx, func(s *ipam.State) error {
		for _, a := range s.Used() {
			for _, subject := range []string{a.Addr.String(), sourceRule + a.Addr.String(), netconf.HostDevice(a.Owner.Key)} {
				since[subject] = a.Since
			}
		}
		return nil
	})
	return since, err
}

// confirm returns of second what is no pod's, or was in first too and is the same
// pod's: the same object twice may be that of two pods, one after the other.
func (c confirmation) confirm(first, second netconf.Node) netconf.Node {
	second.Sysctls = confirmed(c, first.Sysctls, second.Sysctls, sysctlSubject)
	second.Links = confirmed(c, first.Links, second.Links, linkSubject)
	second.Routes = confirmed(c, first.Routes, second.Routes, routeSubject)
	second.Rules = confirmed(c, first.Rules, second.Rules, ruleSubject)
	second.Neighs = confirmed(c, first.Neighs, second.Neighs, neighSubject)
	return second
}

func confirmed[T comparable](c confirmation, first, second []T, subject func(T) string) []T {
	return slices.DeleteFunc(second, func(item T) bool {
		name := subject(item)
		return c.isPods(name) && (c.was[name] != c.is[name] || !slices.Contains(first, item))
	})
}

// namesPod tells whether anything of the node is a pod's.
func (c confirmation) namesPod(n netconf.Node) bool {
	return slices.ContainsFunc(subjectsOf(n), c.isPods)
}

// subjectsOf returns what each line of n.Lines is about, "" for nothing of a pod.
func subjectsOf(n netconf.Node) []string {
	return slices.Concat(subjects(n.Sysctls, sysctlSubject), n.Links, make([]string, len(n.Addrs)),
		subjects(n.Routes, routeSubject), subjects(n.Rules, ruleSubject), subjects(n.Neighs, neighSubject))
}

func subjects[T any](items []T, subject func(T) string) []string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = subject(item)
	}
	return names
}

// isPods tells whether the subject is a pod's.
func (c confirmation) isPods(subject string) bool {
	_, was := c.was[subject]
	_, is := c.is[subject]
	return was || is || strings.HasPrefix(subject, sourceRule)
}

// sourceRule begins the subject of a rule of a single pod, which is a pod's even if
// the node state does not know the address any more.
const sourceRule = "from "

func ruleSubject(r netconf.Rule) string {
	if r.Priority == netconf.PrioritySource {
		return sourceRule + r.From.Addr().String()
	}
	return ""
}

func routeSubject(r netconf.Route) string { return r.Dst.Addr().String() }

func neighSubject(n netconf.Neigh) string { return n.Addr.String() }

func linkSubject(dev string) string { return dev }

func sysctlSubject(s netconf.Sysctl) string {
	dev, _ := s.Link()
	return dev
}
