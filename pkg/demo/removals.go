package demo

import (
	"fmt"
	"slices"
	"sync"

	"github.com/enipool/enipool/pkg/isolate"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// removals notes what a node's kernel loses: links and routes as it tells, rules
// by comparison.
type removals struct {
	ns    isolate.Namespace
	rules []string
	done  chan struct{}
	work  sync.WaitGroup

	mu   sync.Mutex
	list []string
}

// watchRemovals begins to listen. close must be called.
func watchRemovals(ns isolate.Namespace) (*removals, error) {
	r := &removals{ns: ns, done: make(chan struct{})}
	links, routes := make(chan netlink.LinkUpdate), make(chan netlink.RouteUpdate)
	err := ns.Do(func() (err error) {
		if err := netlink.LinkSubscribe(links, r.done); err != nil {
			return err
		}
		if err := netlink.RouteSubscribe(routes, r.done); err != nil {
			return err
		}
		r.rules, err = ruleTexts()
		return err
	})
	if err != nil {
		close(r.done)
		return nil, fmt.Errorf("listen to the kernel of %s: %w", ns.Name, err)
	}
	// Until the channels are closed: who sends on them must not be left hanging.
	r.work.Go(func() {
		for l := range links {
			if l.Header.Type == unix.RTM_DELLINK {
				r.noteRemoval("link " + l.Attrs().Name)
			}
		}
	})
	r.work.Go(func() {
		for u := range routes {
			if u.Type == unix.RTM_DELROUTE {
				r.noteRemoval("route " + u.Route.String())
			}
		}
	})
	return r, nil
}

func (r *removals) noteRemoval(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, what)
}

// allRemoved returns what has gone since the beginning.
func (r *removals) allRemoved() []string {
	var now []string
	err := r.ns.Do(func() (err error) {
		now, err = ruleTexts()
		return err
	})
	if err != nil {
		r.noteRemoval(err.Error())
	}
	for _, rule := range r.rules {
		if !slices.Contains(now, rule) {
			r.noteRemoval(rule)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list
}

func (r *removals) close() {
	close(r.done)
	r.work.Wait()
}

// ruleTexts returns the routing rules of the thread's namespace.
func ruleTexts() ([]string, error) {
	rules, err := netlink.RuleList(netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	var texts []string
	for _, r := range rules {
		mask := uint32(0)
		if r.Mask != nil {
			mask = *r.Mask
		}
		texts = append(texts, fmt.Sprintf("%s mark %#x/%#x", r, r.Mark, mask))
	}
	return texts, nil
}
